package mirror

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// Record is what a mirror volume says about itself. The zero value is that of
// a volume which is no mirror of this provisioner name.
type Record struct {
	Claim           types.NamespacedName
	ClaimUID        types.UID
	Origin          types.NamespacedName
	OriginVolume    string
	OriginVolumeUID types.UID
}

// RecordOf reads a volume's record.
func RecordOf(names mooringapi.Names, volume *corev1.PersistentVolume) Record {
	uid := volume.Annotations[names.MirrorClaimUID()]
	if uid == "" {
		return Record{}
	}
	return Record{
		Claim:           split(volume.Annotations[names.MirrorClaim()]),
		ClaimUID:        types.UID(uid),
		Origin:          split(volume.Annotations[names.OriginClaim()]),
		OriginVolume:    volume.Annotations[names.OriginVolume()],
		OriginVolumeUID: types.UID(volume.Annotations[names.OriginVolumeUID()]),
	}
}

// IsMirror reports whether the record is one.
func (r Record) IsMirror() bool { return r.ClaimUID != "" }

func split(text string) types.NamespacedName {
	namespace, name, _ := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// IsMirrorOf reports whether a volume is the mirror volume made for this claim
// and nobody else's: by its record, by its claimRef, and by who made it. A
// volume that merely has the right name is a stranger.
func IsMirrorOf(names mooringapi.Names, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := volume.Spec.ClaimRef
	return volume.Name == VolumeName(claim.UID) &&
		RecordOf(names, volume).ClaimUID == claim.UID &&
		volume.Annotations[mooringapi.ProvisionedBy] == names.Provisioner() &&
		ref != nil && ref.UID == claim.UID && ref.Namespace == claim.Namespace && ref.Name == claim.Name
}

// Leftover returns why a mirror volume no longer serves the claim that it was
// made for, or "" while it does. A leftover's object is deleted, so that nobody
// can be bound to it without a decision; that never touches the data.
//
// The claim is the one that the record names, nil if none of that name exists.
func Leftover(names mooringapi.Names, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) string {
	record, ref := RecordOf(names, volume), volume.Spec.ClaimRef
	switch {
	case claim == nil:
		return "its claim is gone"
	case claim.UID != record.ClaimUID:
		return "its claim was replaced by another of the same name"
	case ref == nil || ref.UID == "":
		return "its claimRef was cleared, so that any claim could take it"
	case ref.UID != record.ClaimUID || ref.Namespace != record.Claim.Namespace || ref.Name != record.Claim.Name:
		return "its claimRef names another claim"
	case claim.Spec.VolumeName != "" && claim.Spec.VolumeName != volume.Name:
		return "its claim is bound to another volume"
	case volume.Status.Phase == corev1.VolumeAvailable:
		return "it is Available, so that any claim could take it"
	}
	return ""
}
