package integration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// driftRow is an edit of a bound mirror volume by somebody with the right to.
type driftRow struct {
	name string
	// edit returns a merge patch of the volume.
	edit func(claim *corev1.PersistentVolumeClaim) string
	// says is what the event DriftRepaired about the volume names.
	says []string
	// rerecorded marks edits that cannot be told from a restore: they are put
	// back, and reported on the claim. silent ones are put back without a word.
	rerecorded, silent bool
}

const aMirrorUID = "12345678-1234-4123-8123-123456789abc"

func annotated(key, value string) func(*corev1.PersistentVolumeClaim) string {
	return metadata("annotations", map[string]string{key: value})
}

// metadata returns a patch of annotations or labels; "-" removes one.
func metadata(field string, values map[string]string) func(*corev1.PersistentVolumeClaim) string {
	return func(*corev1.PersistentVolumeClaim) string {
		var parts []string
		for key, value := range values {
			if value == "-" {
				parts = append(parts, fmt.Sprintf("%q:null", key))
				continue
			}
			parts = append(parts, fmt.Sprintf("%q:%q", key, value))
		}
		return fmt.Sprintf(`{"metadata":{%q:{%s}}}`, field, strings.Join(parts, ","))
	}
}

func patching(text string) func(*corev1.PersistentVolumeClaim) string {
	return func(*corev1.PersistentVolumeClaim) string { return text }
}

func driftRows() []driftRow {
	n := names
	key := func(name string) []string { return []string{"metadata.annotations[" + name + "]"} }
	label := []string{"metadata.labels[" + n.OriginLabel() + "]"}
	theRecord := []string{"the record"}
	class := []string{"spec.storageClassName"}
	return []driftRow{
		{name: "reclaim policy", edit: patching(`{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`), says: []string{"spec.persistentVolumeReclaimPolicy"}},
		{name: "mount options added", edit: patching(`{"spec":{"mountOptions":["noatime"]}}`), says: []string{"spec.mountOptions"}},
		{name: "access modes narrowed", edit: patching(`{"spec":{"accessModes":["ReadOnlyMany"]}}`), says: []string{"spec.accessModes"}},
		{name: "access modes widened", edit: patching(`{"spec":{"accessModes":["ReadWriteMany","ReadWriteOnce"]}}`), says: []string{"spec.accessModes"}},
		{name: "a real class", edit: patching(`{"spec":{"storageClassName":"pvc-mirror"}}`), says: class},
		{name: "no class", edit: patching(`{"spec":{"storageClassName":null}}`), says: class},
		{name: "capacity raised", edit: patching(`{"spec":{"capacity":{"storage":"20Gi"}}}`), says: []string{"spec.capacity"}},
		{name: "capacity lowered", edit: patching(`{"spec":{"capacity":{"storage":"5Gi"}}}`), silent: true},

		{name: "provisioned-by changed", edit: annotated(mooringapi.ProvisionedBy, "nfs.csi.k8s.io"), says: key(mooringapi.ProvisionedBy)},
		{name: "provisioned-by removed", edit: annotated(mooringapi.ProvisionedBy, "-"), says: key(mooringapi.ProvisionedBy)},
		{name: "mirror-claim changed", edit: annotated(n.MirrorClaim(), "elsewhere/other"), says: key(n.MirrorClaim())},
		{name: "mirror-claim removed", edit: annotated(n.MirrorClaim(), "-"), says: theRecord},
		{name: "mirror-claim-uid changed", edit: annotated(n.MirrorClaimUID(), aMirrorUID), says: theRecord},
		{name: "mirror-claim-uid removed", edit: annotated(n.MirrorClaimUID(), "-"), says: theRecord},
		{name: "origin-claim changed", edit: annotated(n.OriginClaim(), "elsewhere/other"), says: key(n.OriginClaim())},
		{name: "origin-claim removed", edit: annotated(n.OriginClaim(), "-"), says: theRecord},
		{name: "origin-claim-uid changed", edit: annotated(n.OriginClaimUID(), aMirrorUID), rerecorded: true},
		{name: "origin-claim-uid removed", edit: annotated(n.OriginClaimUID(), "-"), rerecorded: true},
		{name: "origin-volume changed", edit: annotated(n.OriginVolume(), "other"), rerecorded: true},
		{name: "origin-volume removed", edit: annotated(n.OriginVolume(), "-"), rerecorded: true},
		{name: "origin-volume-uid changed", edit: annotated(n.OriginVolumeUID(), aMirrorUID), rerecorded: true},
		{name: "origin-volume-uid removed", edit: annotated(n.OriginVolumeUID(), "-"), rerecorded: true},
		{name: "granted-by unreadable", edit: annotated(n.GrantedBy(), "everybody"), says: key(n.GrantedBy())},
		{name: "granted-by of another access", edit: annotated(n.GrantedBy(), `{"access":"ReadOnly"}`), says: key(n.GrantedBy())},
		{name: "granted-by removed", edit: annotated(n.GrantedBy(), "-"), says: key(n.GrantedBy())},
		{name: "served-by removed", edit: annotated(n.ServedBy(), "-"), silent: true},
		{name: "marked as adopted", edit: annotated(n.AdoptedAt(), "2027-01-01T00:00:00Z"), says: key(n.AdoptedAt())},
		{name: "a name of its own", edit: annotated(n.VolumeName(), "other"), says: key(n.VolumeName())},
		{name: "label changed", edit: metadata("labels", map[string]string{n.OriginLabel(): "other"}), says: label},
		{name: "label removed", edit: metadata("labels", map[string]string{n.OriginLabel(): "-"}), says: label},

		{name: "all annotations removed", edit: patching(`{"metadata":{"annotations":null}}`), says: theRecord},
		{name: "all annotations and the label removed", edit: patching(`{"metadata":{"annotations":null,"labels":null}}`), says: theRecord},
		{name: "policy and origin-claim", edit: patching(fmt.Sprintf(`{"metadata":{"annotations":{%q:"elsewhere/other"}},"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`, n.OriginClaim())),
			says: append(key(n.OriginClaim()), "spec.persistentVolumeReclaimPolicy")},
		{name: "origin-claim and label", edit: func(c *corev1.PersistentVolumeClaim) string {
			other := client.ObjectKey{Namespace: c.Namespace, Name: "other"} // both agree on another origin
			return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q},"labels":{%q:%q}}}`, n.OriginClaim(), other, n.OriginLabel(), mirror.OriginHash(other))
		}, says: append(key(n.OriginClaim()), label...)},
		{name: "whose it is, in all its parts", edit: func(*corev1.PersistentVolumeClaim) string {
			return fmt.Sprintf(`{"metadata":{"annotations":{%q:"elsewhere/other",%q:%q,%q:"pvc-%s"}}}`,
				n.MirrorClaim(), n.MirrorClaimUID(), aMirrorUID, n.VolumeName(), aMirrorUID)
		}, says: theRecord},
		{name: "policy and all annotations", edit: patching(`{"metadata":{"annotations":null},"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`), says: theRecord},
	}
}

// drifting is a mirror whose volume is edited.
type drifting struct {
	row    driftRow
	claim  *corev1.PersistentVolumeClaim
	before *corev1.PersistentVolume
}

func (w *world) drifting(row driftRow, tenant, name string, o origin) drifting {
	w.Helper()
	claim := w.mirror(tenant, name, o)
	return drifting{row: row, claim: claim, before: w.isBound(claim)}
}

func (d drifting) edit(w *world) {
	w.Helper()
	w.merge(d.before.DeepCopy(), d.row.edit(d.claim))
}

// isPutBack waits until the volume is what it was, and somebody was told; and
// checks that the claim is bound, as before, and was never told of a refusal.
func (d drifting) isPutBack(w *world) {
	w.Helper()
	volume := &corev1.PersistentVolume{}
	volume.Name = d.before.Name
	w.until("the volume is put back", func(ctx context.Context) string {
		if err := w.Get(ctx, keyOf(volume), volume); err != nil {
			return err.Error()
		}
		return cmp.Diff(withoutServerFields(d.before.DeepCopy()), withoutServerFields(volume.DeepCopy()))
	}, volume, d.claim)
	if d.row.says != nil {
		w.saysAbout(volume, "DriftRepaired", d.row.says...)
	}
	wantEvents := []string{string(mirror.Mirrored)}
	if d.row.rerecorded {
		w.saysAbout(d.claim, "Rerecorded")
		wantEvents = append(wantEvents, "Rerecorded")
	}
	w.must(w.Get(w.Context(), keyOf(d.claim), d.claim), "get the claim")
	if d.claim.Status.Phase != corev1.ClaimBound || d.claim.DeletionTimestamp != nil || conditionOf(d.claim).Type != "" {
		w.Errorf("the claim is not what it was:\n%s", w.show(d.claim))
	}
	for _, event := range w.events(d.claim) {
		if !contains(strings.Join(wantEvents, " "), event.Reason) {
			w.Errorf("the claim was told %s: %s", event.Reason, event.Note)
		}
	}
}

// eventsAbout returns Mooring's events of a reason about an object; those about
// objects without a namespace are in namespace default.
func (w *world) eventsAbout(object client.Object, reason string) []eventsv1.Event {
	w.Helper()
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = corev1.NamespaceDefault
	}
	var all eventsv1.EventList
	w.must(w.List(w.Context(), &all, client.InNamespace(namespace)), "list events")
	var about []eventsv1.Event
	for _, event := range all.Items {
		if event.Regarding.UID == object.GetUID() && event.Reason == reason && event.ReportingController == "mooring-controller" {
			about = append(about, event)
		}
	}
	return about
}

// saysAbout waits until an event of a reason about an object has all these texts,
// and returns it.
func (w *world) saysAbout(object client.Object, reason string, texts ...string) eventsv1.Event {
	w.Helper()
	var told eventsv1.Event
	w.until(fmt.Sprintf("event %s about %s says %v", reason, object.GetName(), texts), func(context.Context) string {
		notes := ""
	events:
		for _, event := range w.eventsAbout(object, reason) {
			notes += event.Note + "\n"
			for _, text := range texts {
				if !contains(event.Note, text) {
					continue events
				}
			}
			told = event
			return ""
		}
		return "there are only: " + notes
	}, object)
	return told
}

// TestDriftIsRepaired edits bound mirror volumes in every way: each is put back
// and reported, and no claim is told, deleted or revoked for it.
func TestDriftIsRepaired(t *testing.T) {
	onEachGate(t, func(w *world) {
		t := w.T
		owner, tenant := w.namespace("owner", nil), w.namespace("tenant", map[string]string{"type": "tenant"})
		o := w.origin(owner, "data", granting(tenantsOnly))
		for i, row := range driftRows() {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				w := w.in(t)
				d := w.drifting(row, tenant, fmt.Sprintf("m%d", i), o)
				d.edit(w)
				d.isPutBack(w)
			})
		}
	})
}

// TestDriftWhileAway makes all those edits while no controller runs.
func TestDriftWhileAway(t *testing.T) {
	t.Parallel()
	w, own := ownWorld(t, controlplane.Options{})
	controller := own.replica(t, "mooring-0", "--leader-elect=false").start(t)
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
	var all []drifting
	for i, row := range driftRows() {
		all = append(all, w.drifting(row, tenant, fmt.Sprintf("m%d", i), o))
	}
	w.must(controller.Kill(), "kill the controller")
	for _, d := range all {
		d.edit(w)
	}
	w.must(controller.Start(t.Context()), "start the controller")
	for _, d := range all {
		d.isPutBack(w)
	}
	// What is a mirror by its record alone, or by its label alone, is one.
	w.isHeld(o)
}
