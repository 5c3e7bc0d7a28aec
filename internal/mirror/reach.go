package mirror

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/recipe"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// Reaches reports whether a claim's mirror volume reaches the data of an origin
// volume: whether it has the source that the recipe makes of it, or, as other
// provisioners make mirrors, the very same.
func Reaches(volume, origin *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, driver *storagev1.CSIDriver) bool {
	made := recipe.Make(recipe.Request{
		Origin:   origin,
		ClaimUID: MadeFor(volume.Name),
		ReadOnly: Access(claim) == grant.ReadOnly,
		Driver:   driver,
	})
	return isSameSource(volume.Spec.PersistentVolumeSource, origin.Spec.PersistentVolumeSource) ||
		made.Outcome == recipe.Made && isSameSource(volume.Spec.PersistentVolumeSource, made.Source)
}

// isSameSource compares where the data are, not how they are mounted.
func isSameSource(a, b corev1.PersistentVolumeSource) bool {
	switch {
	case a.NFS != nil && b.NFS != nil:
		return a.NFS.Server == b.NFS.Server && a.NFS.Path == b.NFS.Path
	case a.CSI != nil && b.CSI != nil:
		return a.CSI.Driver == b.CSI.Driver && a.CSI.VolumeHandle == b.CSI.VolumeHandle && maps.Equal(a.CSI.VolumeAttributes, b.CSI.VolumeAttributes)
	default:
		return false
	}
}

// IsFormer reports whether a volume is a mirror volume without a record: one of
// a provisioner that had the name before, or one whose record somebody removed.
func IsFormer(names mooringapi.Names, volume *corev1.PersistentVolume) bool {
	return !RecordOf(names, volume).IsMirror() && volumeNameForm.MatchString(volume.Name) &&
		(volume.Annotations[mooringapi.ProvisionedBy] == names.Provisioner() || IsStripped(names, volume))
}

// IsStripped reports whether a volume without a record was Mooring's: its label
// is left, or nothing but its class of nobody.
func IsStripped(names mooringapi.Names, volume *corev1.PersistentVolume) bool {
	return volume.Labels[names.OriginLabel()] != "" || IsNameless(volume)
}

// IsNameless reports whether nothing is left of a mirror volume's record and
// label but its class of nobody, which does not say under which provisioner name
// it was made: the class of its claim does.
func IsNameless(volume *corev1.PersistentVolume) bool {
	return nobodysClass.MatchString(volume.Spec.StorageClassName) &&
		volume.Annotations[mooringapi.ProvisionedBy] == "" && !mooringapi.IsMirrorVolume(volume.Annotations)
}

// hasNameOf reports whether a volume has the name of a claim's mirror volume. One
// of Mooring's may have come back from a backup with its claim.
func hasNameOf(facts Facts, volume *corev1.PersistentVolume) bool {
	return Owns(facts.Claim, volume) || IsStripped(facts.Names, volume) && NameOf(facts.Claim) == volume.Name
}

// Proof is what a mirror volume without a record was shown to mirror.
type Proof struct {
	Origin types.NamespacedName
	Record map[string]string
}

// Prove returns the record of a mirror volume that has none, or a sentence that
// says what is missing. Nothing is guessed: the claim and its origin are bound
// by UID both ways, the claim names the origin, and both volumes have the same
// data.
func Prove(facts Facts, volume *corev1.PersistentVolume) (proof Proof, missing string) {
	c := &climber{Facts: facts}
	if facts.Claim == nil {
		return Proof{}, "the claim that it is bound to does not exist"
	}
	found, said := origin(facts.Names, facts.Claim)
	if said != nil {
		return Proof{}, "its claim names no origin: " + said.message
	}
	c.origin = found
	switch {
	case !hasNameOf(facts, volume) || !boundByUID(facts.Claim, volume):
		return Proof{}, "it and its claim do not name each other by UID"
	case facts.Origin == nil || facts.OriginVolume == nil:
		return Proof{}, "the origin " + found.String() + " that its claim names does not exist, or is not bound"
	case !boundByUID(facts.Origin, facts.OriginVolume):
		return Proof{}, "the origin " + found.String() + " and its volume do not name each other by UID"
	case originIsNoMirror(c) != nil:
		return Proof{}, "the origin " + found.String() + " is itself a mirror"
	case !Reaches(volume, facts.OriginVolume, facts.Claim, facts.Driver):
		return Proof{}, "the volume of origin " + found.String() + " has other data"
	}
	c.grant = grant.Evaluate(c.Names, c.Origin.Annotations, c.NamespaceLabels, c.Now)
	return Proof{Origin: found, Record: c.record()}, ""
}
