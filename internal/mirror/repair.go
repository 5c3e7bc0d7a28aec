package mirror

import (
	"encoding/json"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/recipe"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// Repair is what puts a mirror volume back that somebody edited: merge patches
// of its parts, empty where nothing is to be done.
type Repair struct {
	// Fields name what was edited, for people.
	Fields      []string
	Annotations map[string]any // nil removes one
	Labels      map[string]string
	Spec        map[string]any
}

func (r *Repair) annotate(key string, value any) {
	r.Fields = append(r.Fields, "metadata.annotations["+key+"]")
	r.Annotations[key] = value
}

func (r *Repair) label(key, value string) {
	r.Fields = append(r.Fields, "metadata.labels["+key+"]")
	r.Labels[key] = value
}

func (r *Repair) set(field string, value any) {
	r.Fields = append(r.Fields, "spec."+field)
	r.Spec[field] = value
}

// IsNeeded reports whether anything is to be put back.
func (r Repair) IsNeeded() bool { return len(r.Fields) > 0 }

var nobodysClass = regexp.MustCompile(`^mirror-[0-9a-f]{20}$`)

// Kept are the facts about a mirror volume that serves its claim.
type Kept struct {
	Names  mooringapi.Names
	Volume *corev1.PersistentVolume
	Claim  *corev1.PersistentVolumeClaim
	// Origin is the origin volume and Driver its driver's object; nil where they
	// are not certainly those of the record, and what hangs on them is left alone.
	Origin *corev1.PersistentVolume
	Driver *storagev1.CSIDriver
	// Grant is what lets the claim in now, if anything does.
	Grant grant.Grant
}

// RepairOf returns what of a mirror volume is not as Mooring made it.
func RepairOf(kept Kept) Repair {
	names, volume, claim := kept.Names, kept.Volume, kept.Claim
	repair := Repair{Annotations: map[string]any{}, Labels: map[string]string{}, Spec: map[string]any{}}
	record := RecordOf(names, volume)
	// 1. What keeps the data.
	if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		repair.set("persistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain)
	}
	if volume.Annotations[mooringapi.ProvisionedBy] != names.Provisioner() {
		repair.annotate(mooringapi.ProvisionedBy, names.Provisioner())
	}
	// 2. The record: whose it is, of what, and by which grant.
	repair.claim(kept, record)
	repair.origin(kept, record)
	if access := accessRecorded(volume.Annotations[names.GrantedBy()]); access != Access(claim).String() {
		repair.annotate(names.GrantedBy(), grantedBy(kept.Grant, Access(claim)))
	}
	// 3. A class that no claim asks for. Adopted volumes keep the name that they
	// came with, which is never such a one.
	isNobodys := nobodysClass.MatchString(volume.Spec.StorageClassName)
	if record.Adopted && isNobodys {
		repair.annotate(names.AdoptedAt(), nil)
	}
	if !record.Adopted && !isNobodys {
		repair.set("storageClassName", classOfNobody(record.OriginVolumeUID, claim.UID))
	}
	// 4. How it is mounted; not where another provisioner has chosen that.
	if kept.Origin != nil && (!record.Adopted || isNobodys) {
		repair.mounting(volume, claim, kept.Origin, kept.Driver)
	}
	return repair
}

// claim puts back whose mirror the volume is: the claim's whose UID is its name.
func (r *Repair) claim(kept Kept, record Record) {
	names, claim := kept.Names, kept.Claim
	if own := (types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}); record.Claim != own {
		r.annotate(names.MirrorClaim(), own.String())
	}
	if !Owns(claim, kept.Volume) {
		return
	}
	if record.ClaimUID != claim.UID {
		r.annotate(names.MirrorClaimUID(), string(claim.UID))
	}
	if kept.Volume.Annotations[names.VolumeName()] != "" {
		r.annotate(names.VolumeName(), nil)
	}
}

// origin puts back the origin's name, in the record and hashed in the label.
func (r *Repair) origin(kept Kept, record Record) {
	names := kept.Names
	origin, known := TrueOrigin(names, kept.Volume, kept.Claim, kept.Origin)
	if !known {
		return
	}
	if record.Origin != origin {
		r.annotate(names.OriginClaim(), origin.String())
	}
	if hash := OriginHash(origin); kept.Volume.Labels[names.OriginLabel()] != hash {
		r.label(names.OriginLabel(), hash)
	}
}

func (r *Repair) mounting(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, origin *corev1.PersistentVolume, driver *storagev1.CSIDriver) {
	made := recipe.Make(recipe.Request{
		Origin:   origin,
		ClaimUID: MadeFor(volume.Name),
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
