package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// meet goes on with the claim's own volume, made a moment ago, by another leader
// or before a crash; takes it back if it is of an origin that is no more; and
// refuses a stranger, which is never adopted.
func (r *claimReconciler) meet(ctx context.Context, facts mirror.Facts, decision mirror.Decision, volume *corev1.PersistentVolume) (ctrl.Result, error) {
	names := r.options.Names
	switch {
	case mirror.IsRestoredFor(names, volume, facts.Claim):
		return r.meetRestored(ctx, facts.Claim, volume)
	case r.options.Adopt != AdoptOff && mirror.IsFormer(names, volume) && hasClaimRef(volume, facts.Claim):
		return ctrl.Result{}, nil // the former provisioner made it; it is adopted once it is bound
	case isBeingRepaired(names, volume, facts.Claim):
		return ctrl.Result{RequeueAfter: repairPause}, nil
	case !mirror.IsMadeFor(names, volume, facts.Claim):
		return r.say.refusal(ctx, facts.Claim, mirror.Decision{
			Verdict: mirror.Refuse,
			Reason:  mirror.VolumeNameTaken,
			Message: fmt.Sprintf("a volume %s exists and is not this claim's mirror: an administrator must look at it and remove it", volume.Name),
		})
	case !mirror.RecordOf(names, volume).SameOrigin(mirror.RecordOf(names, decision.Volume)):
		_, err := r.withdraw(ctx, facts.Claim)
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, nil // the binder's turn
}

// isBeingRepaired reports whether a volume is this claim's by its record and its
// claimRef, both by UID, and only lacks who made it or names another claim, which
// the volume's reconciler puts back.
func isBeingRepaired(names mooringapi.Names, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return !mirror.IsMadeFor(names, volume, claim) && mirror.RecordOf(names, volume).ClaimUID == claim.UID &&
		hasClaimRef(volume, claim)
}

// meetRestored goes on with the volume of a restored claim, or says why it is not
// given back to it: its origin may have other data by now.
func (r *claimReconciler) meetRestored(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (ctrl.Result, error) {
	facts, err := r.boundFacts(ctx, r.cache, claim, volume)
	if err != nil {
		return ctrl.Result{}, err
	}
	if review := mirror.Judge(facts); review.Standing != mirror.Valid {
		return r.say.refusal(ctx, claim, mirror.Decision{Reason: review.Reason, Message: review.Message})
	}
	return ctrl.Result{}, r.rerecord(ctx, claim, volume)
}

// withdraw deletes a volume that was made for a claim and not bound yet, if
// live reads say that the claim would not get this volume now. It reports
// whether there is none that the claim could be bound to. A volume that is
// bound meanwhile has changed, so that its deletion fails as a conflict.
func (r *claimReconciler) withdraw(ctx context.Context, cached *corev1.PersistentVolumeClaim) (taken bool, err error) {
	names := r.options.Names
	volume, err := r.live.volume(ctx, mirror.NameOf(cached))
	if err != nil {
		return false, err
	}
	if volume == nil || volume.DeletionTimestamp != nil {
		return true, nil
	}
	claim, err := r.live.claim(ctx, client.ObjectKeyFromObject(cached))
	if err != nil {
		return false, err
	}
	if !r.isWaiting(claim, volume, cached) {
		return false, nil
	}
	facts, err := r.facts(ctx, r.live, claim)
	if err != nil {
		return false, err
	}
	decision, err := r.decide(ctx, &facts)
	if err != nil {
		return false, err
	}
	if decision.Verdict == mirror.Allow && mirror.RecordOf(names, volume).SameOrigin(mirror.RecordOf(names, decision.Volume)) {
		return false, nil
	}
	r.made.forget(claim.UID)
	r.sharing.forget(pair(mirror.RecordOf(names, volume).Origin, claim.Namespace))
	if err := client.IgnoreNotFound(r.write.deleteVolume(ctx, volume)); err != nil {
		return false, err
	}
	log.FromContext(ctx).Info("took back a volume that was not bound yet", "volume", volume.Name, "reason", decision.Reason)
	return true, nil
}

// isWaiting reports whether a claim and the volume that this instance made for
// it, as they are now, are still waiting for each other.
func (r *claimReconciler) isWaiting(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, cached *corev1.PersistentVolumeClaim) bool {
	return claim != nil && claim.UID == cached.UID && claim.Status.Phase != corev1.ClaimBound &&
		volume.Status.Phase != corev1.VolumeBound && mirror.IsMirrorOf(r.options.Names, volume, claim) &&
		volume.Annotations[r.options.Names.ServedBy()] == r.options.Instance
}
