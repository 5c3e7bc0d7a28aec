package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// rejectedPatience is how long a volume that the API server rejects is left
// before it is tried again: nothing that is watched tells when that would help.
const rejectedPatience = 30 * time.Second

// provision makes the mirror volume, if the decision still holds on what is
// read live.
func (r *claimReconciler) provision(ctx context.Context, facts mirror.Facts) (ctrl.Result, error) {
	began := time.Now()
	release := r.locks.share(mirror.Origin(r.options.Names, facts.Claim))
	defer release()

	decision, err := r.decideLive(ctx, &facts)
	if err != nil {
		return ctrl.Result{}, err
	}
	if decision.Verdict == mirror.Allow && decision.SharesHandle {
		return r.createAlone(ctx, facts, began)
	}
	return r.create(ctx, facts, decision, began)
}

// createAlone makes a volume with its origin's handle, of which a namespace may
// have one: no other such volume of the origin is made meanwhile.
func (r *claimReconciler) createAlone(ctx context.Context, facts mirror.Facts, began time.Time) (ctrl.Result, error) {
	origin := mirror.Origin(r.options.Names, facts.Claim)
	release := r.locks.write(origin)
	defer release()

	var err error
	if facts.Rivals, err = r.rivals(ctx, origin, facts.Claim.Namespace); err != nil {
		return ctrl.Result{}, err
	}
	result, err := r.create(ctx, facts, mirror.Decide(facts), began)
	if r.made.rest(facts.Claim.UID, madeVolume{}, time.Now()) > 0 {
		rival, _ := mirror.RivalOf(r.options.Names, facts.Claim, true)
		r.sharing.remember(pair(origin, facts.Claim.Namespace), rival, time.Now())
	}
	return result, err
}

// create makes the volume of a decision, or says why there is none.
func (r *claimReconciler) create(ctx context.Context, facts mirror.Facts, decision mirror.Decision, began time.Time) (ctrl.Result, error) {
	if decision.Verdict != mirror.Allow {
		return r.say.refusal(ctx, facts.Claim, decision)
	}
	switch err := r.write.createVolume(ctx, decision.Volume); {
	case apierrors.IsAlreadyExists(err):
		return r.meetLive(ctx, facts, decision)
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		_, said := r.say.refusal(ctx, facts.Claim, mirror.Decision{Verdict: mirror.Refuse, Reason: mirror.VolumeRejected,
			Message: "the API server rejects the mirror volume: " + cut(err.Error(), longestNote/2)})
		return ctrl.Result{RequeueAfter: rejectedPatience}, said
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("create volume %s: %w", decision.Volume.Name, err)
	}
	r.made.remember(facts.Claim.UID, madeVolume{}, time.Now())
	r.metrics.provisioned(time.Since(began))
	r.say.mirrored(ctx, facts.Claim, decision)
	return ctrl.Result{}, r.secure(ctx, facts, decision)
}

// secure looks at the origin once more after its volume was made: another
// instance, or a leader that was, may have taken the finalizer off in between,
// since it saw no volume; and then the origin may be gone.
func (r *claimReconciler) secure(ctx context.Context, facts mirror.Facts, decision mirror.Decision) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		origin, err := r.live.claim(ctx, mirror.Origin(r.options.Names, facts.Claim))
		if err != nil {
			return err
		}
		if origin == nil || origin.UID != facts.Origin.UID || origin.DeletionTimestamp != nil && !r.holds(origin) {
			log.FromContext(ctx).Info("the origin went while its mirror was made", "volume", decision.Volume.Name)
			return r.write.deleteVolume(ctx, decision.Volume)
		}
		if r.holds(origin) {
			return nil
		}
		return r.write.addFinalizer(ctx, origin)
	})
}

// holds reports whether an origin has Mooring's finalizer.
func (r *claimReconciler) holds(origin *corev1.PersistentVolumeClaim) bool {
	return slices.Contains(origin.Finalizers, r.options.Names.Finalizer())
}

// decideLive decides on live facts and, on a yes, puts the finalizer on the
// origin, where it is not yet. Who else writes the origin meanwhile makes it
// read and decide again.
func (r *claimReconciler) decideLive(ctx context.Context, facts *mirror.Facts) (mirror.Decision, error) {
	decision, err := r.confirmed(ctx, facts)
	if err != nil || decision.Verdict != mirror.Allow || r.holds(facts.Origin) {
		return decision, err
	}
	release := r.locks.write(mirror.Origin(r.options.Names, facts.Claim)) // of many workers one writes
	defer release()
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		decision, err = r.confirmed(ctx, facts)
		if err != nil || decision.Verdict != mirror.Allow || r.holds(facts.Origin) {
			return err
		}
		return r.write.addFinalizer(ctx, facts.Origin)
	})
	return decision, err
}

// confirmed decides on live facts.
func (r *claimReconciler) confirmed(ctx context.Context, facts *mirror.Facts) (mirror.Decision, error) {
	if err := r.confirm(ctx, facts); err != nil {
		return mirror.Decision{}, err
	}
	return mirror.Decide(*facts), nil
}

// meetLive looks at the volume that has the name of the one to be made, which
// the cache does not know yet.
func (r *claimReconciler) meetLive(ctx context.Context, facts mirror.Facts, decision mirror.Decision) (ctrl.Result, error) {
	volume, err := r.live.volume(ctx, decision.Volume.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if volume == nil {
		return ctrl.Result{}, fmt.Errorf("volume %s existed and is gone: will try again", decision.Volume.Name)
	}
	return r.meet(ctx, facts, decision, volume)
}

// meet goes on with the claim's own volume, made by another leader or before a
// crash; takes it back if it is of an origin that is no more; and refuses a
// stranger, which is never adopted.
func (r *claimReconciler) meet(ctx context.Context, facts mirror.Facts, decision mirror.Decision, volume *corev1.PersistentVolume) (ctrl.Result, error) {
	names := r.options.Names
	switch {
	case !mirror.IsMirrorOf(names, volume, facts.Claim):
		return r.say.refusal(ctx, facts.Claim, mirror.Decision{
			Verdict: mirror.Refuse,
			Reason:  mirror.VolumeNameTaken,
			Message: fmt.Sprintf("a volume %s exists and is not this claim's mirror: an administrator must look at it and remove it", volume.Name),
		})
	case !mirror.RecordOf(names, volume).SameOrigin(mirror.RecordOf(names, decision.Volume)):
		return ctrl.Result{}, r.withdraw(ctx, facts)
	}
	return ctrl.Result{}, nil
}

// withdraw deletes a volume that was made for a claim and not bound yet, if
// live reads agree that the claim would not get this volume now. A volume that
// is bound meanwhile has changed, so that its deletion fails as a conflict.
func (r *claimReconciler) withdraw(ctx context.Context, facts mirror.Facts) error {
	volume, err := r.unbound(ctx, facts.Claim)
	if err != nil || volume == nil {
		return err
	}
	decision, err := r.confirmed(ctx, &facts)
	if err != nil {
		return err
	}
	names := r.options.Names
	if decision.Verdict == mirror.Allow && mirror.RecordOf(names, volume).SameOrigin(mirror.RecordOf(names, decision.Volume)) {
		return nil
	}
	if err := r.write.deleteVolume(ctx, volume); err != nil {
		return client.IgnoreNotFound(err)
	}
	log.FromContext(ctx).Info("took back a volume that was not bound yet", "volume", volume.Name, "reason", decision.Reason)
	return nil
}

// unbound returns a claim's own mirror volume, read live, if neither it nor the
// claim is bound; else nil.
func (r *claimReconciler) unbound(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	volume, err := r.live.volume(ctx, mirror.VolumeName(claim.UID))
	if err != nil || volume == nil || volume.DeletionTimestamp != nil || volume.Status.Phase == corev1.VolumeBound {
		return nil, err
	}
	now, err := r.live.claim(ctx, client.ObjectKeyFromObject(claim))
	if err != nil || now == nil || now.UID != claim.UID || now.Status.Phase == corev1.ClaimBound ||
		!mirror.IsMirrorOf(r.options.Names, volume, now) {
		return nil, err
	}
	return volume, nil
}
