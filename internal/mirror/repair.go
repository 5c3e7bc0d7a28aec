package mirror

import (
	"encoding/json"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/recipe"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// Repair is what puts a mirror volume back that somebody edited: merge patches
// of its parts, empty where nothing is to be done.
type Repair struct {
	// Fields name what was edited, for people.
	Fields      []string
	Annotations map[string]string
	Labels      map[string]string
	Spec        map[string]any
}

func (r *Repair) annotate(key, value string) {
	r.Fields = append(r.Fields, "metadata.annotations["+key+"]")
	r.Annotations[key] = value
}

func (r *Repair) set(field string, value any) {
	r.Fields = append(r.Fields, "spec."+field)
	r.Spec[field] = value
}

// IsNeeded reports whether anything is to be put back.
func (r Repair) IsNeeded() bool { return len(r.Fields) > 0 }

var nobodysClass = regexp.MustCompile(`^mirror-[0-9a-f]{20}$`)

// RepairOf returns what of a mirror volume is not as Mooring made it. The claim
// is the one with the UID of the record; origin and driver are nil where they
// are not certainly those of the record, and what hangs on them is left alone.
func RepairOf(names mooringapi.Names, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, origin *corev1.PersistentVolume, driver *storagev1.CSIDriver) Repair {
	repair := Repair{Annotations: map[string]string{}, Labels: map[string]string{}, Spec: map[string]any{}}
	record := RecordOf(names, volume)
	// 1. What keeps the data.
	if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		repair.set("persistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain)
	}
	if volume.Annotations[mooringapi.ProvisionedBy] != names.Provisioner() {
		repair.annotate(mooringapi.ProvisionedBy, names.Provisioner())
	}
	// 2. The record. Adopted volumes keep the class name that they came with.
	if access := accessRecorded(volume.Annotations[names.GrantedBy()]); access != Access(claim).String() {
		repair.annotate(names.GrantedBy(), grantedBy(grant.Grant{}, Access(claim)))
	}
	if !record.Adopted && !nobodysClass.MatchString(volume.Spec.StorageClassName) {
		repair.set("storageClassName", classOfNobody(record.OriginVolumeUID, record.ClaimUID))
	}
	if origin == nil {
		return repair
	}
	if hash := OriginHash(record.Origin); volume.Labels[names.OriginLabel()] != hash {
		repair.Fields = append(repair.Fields, "metadata.labels["+names.OriginLabel()+"]")
		repair.Labels[names.OriginLabel()] = hash
	}
	// 3. How it is mounted; not where another provisioner has chosen that.
	if record.Adopted {
		return repair
	}
	repair.mounting(volume, claim, origin, driver)
	return repair
}

func (r *Repair) mounting(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, origin *corev1.PersistentVolume, driver *storagev1.CSIDriver) {
	made := recipe.Make(recipe.Request{
		Origin:   origin,
		ClaimUID: madeFor(volume.Name),
		ReadOnly: Access(claim) == grant.ReadOnly,
		Driver:   driver,
	})
	if made.Outcome != recipe.Made {
		return
	}
	c := &climber{Facts: Facts{Claim: claim}, mirror: made}
	if modes := c.modes(); !slices.Equal(modes, volume.Spec.AccessModes) {
		r.set("accessModes", modes)
	}
	if !slices.Equal(made.MountOptions, volume.Spec.MountOptions) {
		r.set("mountOptions", made.MountOptions)
	}
}

func accessRecorded(text string) string { return readGrantedBy(text).Access }

// readGrantedBy is empty where the text cannot be read.
func readGrantedBy(text string) GrantedBy {
	var recorded GrantedBy
	if json.Unmarshal([]byte(text), &recorded) != nil {
		return GrantedBy{}
	}
	return recorded
}

// GrantedByOf returns by which grant a mirror volume was made; empty where its
// record does not say.
func GrantedByOf(names mooringapi.Names, volume *corev1.PersistentVolume) GrantedBy {
	return readGrantedBy(volume.Annotations[names.GrantedBy()])
}
