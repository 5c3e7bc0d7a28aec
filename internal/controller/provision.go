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
// have one: no other such volume is made meanwhile, and the decision is made
// once more after the wait.
func (r *claimReconciler) createAlone(ctx context.Context, facts mirror.Facts, began time.Time) (ctrl.Result, error) {
	both := pair(mirror.Origin(r.options.Names, facts.Claim), facts.Claim.Namespace)
	release := r.locks.one(both)
	defer release()

	decision, err := r.confirmed(ctx, &facts)
	if err != nil {
		return ctrl.Result{}, err
	}
	result, err := r.create(ctx, facts, decision, began)
	if r.made.rest(facts.Claim.UID, madeVolume{}, time.Now()) > 0 {
		rival, _ := mirror.RivalOf(r.options.Names, facts.Claim, true)
		r.sharing.remember(both, rival, time.Now())
	}
	return result, err
}

// create makes the volume of a decision, or says why there is none.
func (r *claimReconciler) create(ctx context.Context, facts mirror.Facts, decision mirror.Decision, began time.Time) (ctrl.Result, error) {
	if decision.Verdict != mirror.Allow {
		return r.tell(ctx, facts.Claim, decision)
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
	gone := false
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		origin, err := r.live.claim(ctx, mirror.Origin(r.options.Names, facts.Claim))
		if err != nil {
			return err
		}
		gone = origin == nil || origin.UID != facts.Origin.UID || origin.DeletionTimestamp != nil && !r.holds(origin)
		if gone || r.holds(origin) {
			return nil
		}
		return r.write.addFinalizer(ctx, origin)
	})
	if err != nil || !gone {
		return err
	}
	log.FromContext(ctx).Info("the origin went while its mirror was made", "volume", decision.Volume.Name)
	return client.IgnoreNotFound(r.write.deleteVolume(ctx, decision.Volume))
}

// holds reports whether an origin has Mooring's finalizer.
func (r *claimReconciler) holds(origin *corev1.PersistentVolumeClaim) bool {
	return slices.Contains(origin.Finalizers, r.options.Names.Finalizer())
}

// decideLive decides on live facts and, on a yes, puts the finalizer on the
// origin, where it is not yet. That write is the live read of the origin too: it
// fails unless the origin is as the decision took it to be. Who else writes it
// meanwhile makes it read and decide again.
func (r *claimReconciler) decideLive(ctx context.Context, facts *mirror.Facts) (mirror.Decision, error) {
	confirmed := r.confirmed
	if !r.holds(facts.Origin) {
		confirmed = r.confirmedBarOrigin
	}
	decision, err := confirmed(ctx, facts)
	if err != nil || decision.Verdict != mirror.Allow || r.holds(facts.Origin) {
		return decision, err
	}
	release, again := r.locks.oneOf(mirror.Origin(r.options.Names, facts.Claim).String()) // of many workers one writes
	defer release()
	again = again || r.finalized.rest(facts.Origin.UID, struct{}{}, time.Now()) > 0 // and the cache does not show it yet
	err = retry.OnError(retry.DefaultBackoff, hasChanged, func() error {
		if again {
			decision, err = r.confirmed(ctx, facts)
			if err != nil || decision.Verdict != mirror.Allow || r.holds(facts.Origin) {
				return err
			}
		}
		again = true
		err := r.write.addFinalizer(ctx, facts.Origin)
		if err == nil {
			r.finalized.remember(facts.Origin.UID, struct{}{}, time.Now())
		}
		return err
	})
	return decision, err
}

// hasChanged reports whether a write failed since its object is not as it was
// read, or is gone.
func hasChanged(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

// confirmedBarOrigin decides on live facts but for the origin, of which the
// cache knows; a yes holds once a write to the origin did not conflict.
func (r *claimReconciler) confirmedBarOrigin(ctx context.Context, facts *mirror.Facts) (mirror.Decision, error) {
	labels, err := r.live.namespaceLabels(ctx, facts.Claim.Namespace)
	if err != nil {
		return mirror.Decision{}, err
	}
	facts.Now, facts.NamespaceLabels = time.Now(), labels
	return r.decide(ctx, facts)
}

// confirmed decides on live facts.
func (r *claimReconciler) confirmed(ctx context.Context, facts *mirror.Facts) (mirror.Decision, error) {
	if err := r.confirm(ctx, facts); err != nil {
		return mirror.Decision{}, err
	}
	return r.decide(ctx, facts)
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
