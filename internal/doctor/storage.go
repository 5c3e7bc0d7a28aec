package doctor

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/mooring-k8s/mooring/internal/inventory"
	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/internal/recipe"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

type flaw struct{ message, remedy string }

// unfit returns what of a class makes Mooring refuse its claims, or means
// nothing.
func unfit(names mooringapi.Names, class *storagev1.StorageClass) []flaw {
	var flaws []flaw
	for _, key := range slices.Sorted(maps.Keys(class.Parameters)) {
		value := class.Parameters[key]
		if key != mooringapi.ParameterAccess || value != mooringapi.AccessReadWrite && value != mooringapi.AccessReadOnly {
			flaws = append(flaws, flaw{"its parameter " + key + ": " + value + " refuses every claim", "create the class anew without it; parameters are immutable"})
		}
	}
	if class.AllowVolumeExpansion != nil && *class.AllowVolumeExpansion {
		flaws = append(flaws, flaw{"it allows expansion, which refuses every claim", "set allowVolumeExpansion: false"})
	}
	policy, said := mirror.PolicyOf(names, class), class.Annotations[names.OnRevoke()]
	if said != "" && said != mooringapi.OnRevokeReport && !policy.Delete {
		flaws = append(flaws, flaw{names.OnRevoke() + ": " + said + " with " + names.RevokeAfter() + ": " + class.Annotations[names.RevokeAfter()] + " is not understood and means Report",
			"write Report or Delete, and a duration such as 5m"})
	}
	return flaws
}

// drivers finds drivers whose shared volumes cannot be mirrored, or only by the
// rule for unknown ones.
func drivers(p *Patient, _ time.Time) []Finding {
	attach := map[string]bool{} // by driver: whether its object says attachRequired: false
	for _, driver := range p.Drivers {
		attach[driver.Name] = driver.Spec.AttachRequired != nil && !*driver.Spec.AttachRequired
	}
	count, found := map[string]int{}, []Finding{}
	for i := range p.Volumes {
		volume := &p.Volumes[i]
		if volume.Spec.CSI == nil || recipe.Knows(volume) || !slices.Contains(volume.Spec.AccessModes, corev1.ReadWriteMany) {
			continue
		}
		count[volume.Spec.CSI.Driver]++
	}
	for driver, volumes := range count {
		how := "its CSIDriver object does not say attachRequired: false, so they cannot be mirrored"
		if attach[driver] {
			how = "they are mirrored with the origin's own handle, once in each namespace, unless Mooring is told to refuse unknown drivers"
		}
		found = append(found, note("csidriver/"+driver, "see docs/drivers.md", "%d of its volumes are ReadWriteMany, and there is no recipe for it: %s", volumes, how))
	}
	return found
}

// handles finds namespaces with two volumes of one handle, of which a Pod with
// both would get one mount twice.
func handles(p *Patient, _ time.Time) []Finding {
	type place struct{ namespace, driver, handle string }
	seen := map[place][]string{}
	for i := range p.Volumes {
		volume := &p.Volumes[i]
		if csi, ref := volume.Spec.CSI, volume.Spec.ClaimRef; csi != nil && ref != nil {
			at := place{ref.Namespace, csi.Driver, csi.VolumeHandle}
			seen[at] = append(seen[at], ref.Name)
		}
	}
	var found []Finding
	for at, claims := range seen {
		if len(claims) > 1 {
			slices.Sort(claims)
			found = append(found, problem("namespace/"+at.namespace, "keep one of the claims", "the claims %s are volumes of one handle of %s: a Pod with both gets one mount twice",
				strings.Join(claims, " and "), at.driver))
		}
	}
	return found
}

// mirrors finds mirrors that are not what they should be.
func mirrors(p *Patient, _ time.Time) []Finding {
	var found []Finding
	volumes := map[string]*corev1.PersistentVolume{}
	for i := range p.Volumes {
		volume := &p.Volumes[i]
		record := mirror.RecordOf(p.Names, volume)
		if !record.IsMirror() {
			continue
		}
		volumes[volume.Name] = volume
		object := "pv/" + volume.Name
		if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
			found = append(found, problem(object, "see why Mooring does not put it back: is its controller running?", "it is a mirror and %s, not Retain", volume.Spec.PersistentVolumeReclaimPolicy))
		}
	}
	classes := map[string]storagev1.StorageClass{}
	for _, class := range p.Classes {
		classes[class.Name] = class
	}
	for i := range p.Claims {
		claim := &p.Claims[i]
		volume := volumes[claim.Spec.VolumeName]
		if !inventory.IsMirrorClaim(p.Names, claim, classes, volume) {
			continue
		}
		row := inventory.RowOf(p.Names, claim, volume)
		switch row.State {
		case inventory.Revoked, inventory.Unclear, inventory.Lost, inventory.Refused:
			found = append(found, problem(claimObject(claim), "mooring explain "+row.Key().String(), "%s: %s (%s)", row.State, row.Message, row.Reason))
		case inventory.Pending:
			found = append(found, problem(claimObject(claim), "is its namespace selected by any instance? "+"mooring explain "+row.Key().String(), "nobody has said anything about it yet"))
		case inventory.Bound, inventory.Waiting, inventory.Ending, inventory.Gone:
		}
	}
	return found
}

// served finds mirrors of instances that are no more.
func served(p *Patient, _ time.Time) []Finding {
	if p.isHidden("deployments") {
		return nil
	}
	running, lost := map[string]bool{}, map[string]int{}
	for _, deployment := range p.Deployments {
		running[instanceOf(deployment)] = true
	}
	for i := range p.Volumes {
		if record := mirror.RecordOf(p.Names, &p.Volumes[i]); record.IsMirror() && !running[record.ServedBy] {
			lost[record.ServedBy]++
		}
	}
	var found []Finding
	for instance, count := range lost {
		found = append(found, problem("instance/"+instance, "install it again under that name, or let another instance select the namespaces",
			"%d mirrors are looked after by this instance, of which no Deployment is there", count))
	}
	return found
}

// origins finds origins that somebody wants to delete and that are held.
func origins(p *Patient, _ time.Time) []Finding {
	users := map[string]int{}
	for i := range p.Volumes {
		if record := mirror.RecordOf(p.Names, &p.Volumes[i]); record.IsMirror() {
			users[record.Origin.String()]++
		}
	}
	var found []Finding
	for i := range p.Claims {
		claim := &p.Claims[i]
		if claim.DeletionTimestamp == nil || !slices.Contains(claim.Finalizers, p.Names.Finalizer()) {
			continue
		}
		found = append(found, problem(claimObject(claim), "the mirror claims go (mooring access "+claim.Namespace+"/"+claim.Name+"), or its owner writes "+p.Names.AllowDeletion()+`: "true"`,
			"its deletion is held: %d mirrors reach its data", users[claim.Namespace+"/"+claim.Name]))
	}
	return found
}
