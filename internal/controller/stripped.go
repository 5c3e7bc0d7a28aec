package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// This file is about mirror volumes of Mooring's that have lost their record:
// somebody removed it. Name and label are left, or the class of nobody.

// reserve gives a volume that has lost its record back to the claim whose UID is
// its name, where the claimRef does not name that one: else it would be Available,
// or another claim be bound to it, which then loses it. One whose claim is not
// there, and whose claimRef has no UID, is Released by that. Without a claimRef and
// without a claim nothing says whose it was, and it stays as it is: its class is
// nobody's.
func (r *volumeReconciler) reserve(ctx context.Context, volume *corev1.PersistentVolume) (reserved bool, err error) {
	if !mirror.IsStripped(r.options.Names, volume) {
		return false, nil
	}
	claim, err := r.bearer(ctx, volume)
	if err != nil {
		return false, err
	}
	own, ref := mirror.Record{ClaimUID: mirror.MadeFor(volume.Name)}, volume.Spec.ClaimRef
	switch {
	case claim != nil && !hasClaimRef(volume, claim):
		own.Claim = client.ObjectKeyFromObject(claim)
	case claim == nil && ref != nil && ref.Name != "" && ref.UID == "":
		own.Claim = types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	default:
		return false, nil
	}
	if err := r.expel(ctx, volume, own); err != nil {
		return false, err
	}
	if err := r.write.putBackClaimRef(ctx, volume, own.ClaimRef()); err != nil {
		return false, fmt.Errorf("put back the claimRef of volume %s, which has no record: %w", volume.Name, err)
	}
	log.FromContext(ctx).Info("reserved a volume without a record for the claim of its name", "claim", own.Claim.String())
	return true, nil
}

// bearer returns the claim that bears a volume's name as its UID, and names it,
// as it is live; nil if there is none.
func (r *volumeReconciler) bearer(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, error) {
	claims, err := claimsWhere(ctx, r.cache, claimsByVolume, volume.Name)
	if err != nil {
		return nil, err
	}
	for i := range claims {
		if !mirror.Owns(&claims[i], volume) {
			continue
		}
		claim, err := r.live.claim(ctx, client.ObjectKeyFromObject(&claims[i]))
		if err != nil || claim == nil || !mirror.Owns(claim, volume) {
			return nil, err
		}
		return claim, nil
	}
	return nil, nil
}

// isLeftover reports whether a volume of Mooring's that has lost its record serves
// nobody: by its label it was a mirror, and by its name and its claimRef it was
// made for a claim that is no more. It would keep its origin for ever.
func (r *volumeReconciler) isLeftover(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := volume.Spec.ClaimRef
	if volume.Labels[r.options.Names.OriginLabel()] == "" || ref == nil || ref.Name == "" || mirror.VolumeName(ref.UID) != volume.Name {
		return false
	}
	return claim == nil || claim.UID != ref.UID && claim.Spec.VolumeName != volume.Name
}

// broken tells of a volume of Mooring's whose record somebody removed, and which
// cannot be proven to mirror what; the claim is told as well.
func (r *volumeReconciler) broken(ctx context.Context, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, missing string) error {
	if r.told.isNews(types.NamespacedName{Name: volume.Name}, missing) {
		r.say.recordMissing(volume, missing)
	}
	if claim == nil || claim.Spec.VolumeName != volume.Name || !isBound(claim) {
		return nil // the claim's reconciler has its own to say, and two would not come to an end
	}
	_, err := r.say.refusal(ctx, claim, mirror.Decision{Reason: mirror.RecordBroken,
		Message: "the record of volume " + volume.Name + " is missing, and what it mirrors is not certain: an administrator must look at it"})
	return err
}
