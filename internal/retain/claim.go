package retain

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// bindCompleted is the annotation that the binder gives a claim once it is
// bound (component-helpers, storage/volume, AnnBindCompleted).
const bindCompleted = "pv.kubernetes.io/bind-completed"

// betaClass is the annotation that outranks storageClassName
// (component-helpers, storage/volume, GetPersistentVolumeClaimClass).
const betaClass = "volume.beta.kubernetes.io/storage-class"

// checkClaim refuses a claim that exists, is not bound to the volume, and could
// never be. The conditions are those of the binder (pkg/controller/volume/
// persistentvolume, checkVolumeSatisfyClaim; component-helpers,
// FindMatchingVolume); class and selector are asked for although the binder
// forgives them to a pre-bound volume, since the claim's owner meant something
// else by them.
func checkClaim(m Manifest, volumeExists bool, claim *corev1.PersistentVolumeClaim) *Error {
	if err := checkClaimLife(m, volumeExists, claim); err != nil {
		return err
	}
	want, have := claim.Spec, m.Volume.Spec
	// 1. Size.
	request, capacity := want.Resources.Requests[corev1.ResourceStorage], have.Capacity[corev1.ResourceStorage]
	if capacity.Cmp(request) < 0 {
		return refusef(ClaimTooLarge, "claim %s asks for %s; the volume has %s", claimName(m), request.String(), capacity.String())
	}
	// 2. Class.
	if class := classOf(claim); class != have.StorageClassName {
		return refusef(ClaimOtherClass, "claim %s has the class %q; the volume has %q", claimName(m), class, have.StorageClassName)
	}
	// 3. Modes.
	for _, mode := range want.AccessModes {
		if !slices.Contains(have.AccessModes, mode) {
			return refusef(ClaimOtherModes, "claim %s asks for the access mode %s; the volume has %v", claimName(m), mode, have.AccessModes)
		}
	}
	if mode := volumeMode(want.VolumeMode); mode != volumeMode(have.VolumeMode) {
		return refusef(ClaimOtherMode, "claim %s asks for the volume mode %s; the volume has %s", claimName(m), mode, volumeMode(have.VolumeMode))
	}
	// 4. Selector.
	if want.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(want.Selector)
		if err != nil || !selector.Matches(labels.Set(m.Volume.Labels)) {
			return refusef(ClaimSelector, "claim %s has a selector that does not match the volume's labels", claimName(m))
		}
	}
	// 5. Attributes class.
	if mine, theirs := text(have.VolumeAttributesClassName), text(want.VolumeAttributesClassName); mine != theirs {
		return refusef(ClaimOtherAttrs, "claim %s has the volume attributes class %q; the volume has %q", claimName(m), theirs, mine)
	}
	return nil
}

// checkClaimLife refuses a claim that is past binding.
func checkClaimLife(m Manifest, volumeExists bool, claim *corev1.PersistentVolumeClaim) *Error {
	if claim.DeletionTimestamp != nil {
		return refusef(ClaimTerminating, "claim %s is being deleted", claimName(m))
	}
	if claim.Status.Phase == corev1.ClaimLost {
		return refusef(ClaimLost, "claim %s has lost its volume %s", claimName(m), claim.Spec.VolumeName)
	}
	bound := claim.Status.Phase == corev1.ClaimBound || claim.Annotations[bindCompleted] != ""
	volume := claim.Spec.VolumeName
	switch {
	case !bound && (volume == "" || volume == m.Name()):
		return nil
	case !bound:
		return refusef(ClaimOtherVolume, "claim %s asks for the volume %s by name", claimName(m), volume)
	case volume == "":
		return refusef(BoundUnproven, "claim %s says that it is bound, and names no volume", claimName(m))
	case volume != m.Name():
		return refusef(ClaimBoundElse, "claim %s is bound to the volume %s", claimName(m), volume)
	case volumeExists:
		return refusef(BoundUnproven, "claim %s is bound to volume %s; the volume does not name the claim by its UID", claimName(m), volume)
	}
	return refusef(ClaimLost, "claim %s was bound to a volume %s, which is not there", claimName(m), volume)
}

func classOf(claim *corev1.PersistentVolumeClaim) string {
	if class, annotated := claim.Annotations[betaClass]; annotated {
		return class
	}
	return text(claim.Spec.StorageClassName)
}

func volumeMode(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if mode == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *mode
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// checkContest refuses another volume that the claim could bind to instead: one
// reserved for the claim's name whose UID is open or the claim's own.
func checkContest(m Manifest, claim *corev1.PersistentVolumeClaim, n Neighbour) *Error {
	if n.ClaimRef == nil || !sameClaim(n.ClaimRef, m.Volume.Spec.ClaimRef) {
		return nil
	}
	if n.ClaimRef.UID == "" || claim != nil && n.ClaimRef.UID == claim.UID {
		return refusef(ClaimContested, "volume %s is reserved for the same claim %s", n.Name, claimName(m))
	}
	return nil // left behind by an earlier claim of that name
}

// The parts of a live volume that decisions read. Live volumes stay JSON, so
// that fields which this version of the API does not know are seen.

func livePhase(live map[string]any) corev1.PersistentVolumePhase {
	phase, _ := child(live, "status")["phase"].(string)
	return corev1.PersistentVolumePhase(phase)
}

func liveUID(live map[string]any) types.UID {
	uid, _ := child(live, "metadata")["uid"].(string)
	return types.UID(uid)
}

func claimRefUID(live map[string]any) types.UID {
	uid, _ := child(child(live, "spec"), "claimRef")["uid"].(string)
	return types.UID(uid)
}

func liveClaim(live map[string]any) string {
	ref := child(child(live, "spec"), "claimRef")
	namespace, _ := ref["namespace"].(string)
	name, _ := ref["name"].(string)
	return namespace + "/" + name
}
