package mirror

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// TrueOrigin returns the origin that a mirror volume's record must name, whatever
// somebody wrote into it, and whether anything says so. The origin's name stands
// in the record and, hashed, in the label; and it follows from the recorded
// volume, nil where there is none of that name.
func TrueOrigin(names mooringapi.Names, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, recorded *corev1.PersistentVolume) (types.NamespacedName, bool) {
	record := RecordOf(names, volume)
	// 1. The recorded volume, by its UID, is the recorded claim's, by its UID.
	if IsOriginOf(record, recorded) {
		ref := recorded.Spec.ClaimRef
		return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, true
	}
	// 2. Record and label agree.
	label := volume.Labels[names.OriginLabel()]
	if label == OriginHash(record.Origin) {
		return record.Origin, true
	}
	// 3. The claim and the label do.
	for _, named := range Origins(names, claim) {
		if label == OriginHash(named) {
			return named, true
		}
	}
	return types.NamespacedName{}, false
}

// IsOriginOf reports whether a volume is the origin volume of a record,
// and still its origin claim's. Both are known by UID; their names may have been
// edited.
func IsOriginOf(record Record, volume *corev1.PersistentVolume) bool {
	if volume == nil || volume.Spec.ClaimRef == nil || record.OriginUID == "" {
		return false
	}
	return volume.Name == record.OriginVolume && volume.UID == record.OriginVolumeUID && volume.Spec.ClaimRef.UID == record.OriginUID
}

// Owns reports whether a mirror volume was made for a claim by its name, which
// is the claim's UID and cannot be edited as a record can.
func Owns(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	return VolumeName(claim.UID) == volume.Name
}
