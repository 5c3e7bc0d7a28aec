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
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// claimReconciler decides about mirror claims, makes their volumes, and tells
// their owners why there is none.
type claimReconciler struct {
	options Options
	cache   reader
	live    reader
	write   writer
	say     *teller
	locks   *originLocks
	made    recently[madeVolume]
	metrics *metrics
}

// madeVolume is all there is to remember of a volume that was made.
type madeVolume struct{}

// Reconcile brings one claim to its right state.
func (r *claimReconciler) Reconcile(ctx context.Context, request reconcile.Request) (ctrl.Result, error) {
	// 1. Gone or going: nothing to decide; the volume's reconciler clears up.
	claim, err := r.cache.claim(ctx, request.NamespacedName)
	if err != nil || claim == nil || claim.DeletionTimestamp != nil {
		return ctrl.Result{}, err
	}
	// 2. Not a mirror claim.
	ours, err := r.isMirrorClaim(ctx, claim)
	if err != nil || !ours {
		return ctrl.Result{}, err
	}
	// 3. Bound: what was said before it was is settled now. What happens to a
	// bound mirror whose grant ends has its room here.
	if claim.Status.Phase == corev1.ClaimBound || claim.Status.Phase == corev1.ClaimLost {
		return ctrl.Result{}, r.settle(ctx, claim)
	}
	facts, err := r.facts(ctx, claim)
	if err != nil {
		return ctrl.Result{}, err
	}
	// 4. Another instance serves its namespace.
	if !r.isServed(facts.NamespaceLabels) {
		return ctrl.Result{}, nil
	}
	return r.serve(ctx, facts)
}

// serve decides about a claim that is not bound yet, and does what follows.
func (r *claimReconciler) serve(ctx context.Context, facts mirror.Facts) (ctrl.Result, error) {
	claim := facts.Claim
	// 5. The cache refuses, or says wait.
	if decision := mirror.Decide(facts); decision.Verdict != mirror.Allow {
		if rest := untilBinderWrote(claim, facts.Now); rest > 0 {
			return ctrl.Result{RequeueAfter: rest}, nil
		}
		return ctrl.Result{}, r.say.refusal(ctx, claim, decision)
	}
	// 6. Its volume is there already, or was made a moment ago: the rest is the
	// binder's.
	volume, err := r.cache.volume(ctx, mirror.VolumeName(claim.UID))
	if err != nil {
		return ctrl.Result{}, err
	}
	if volume != nil {
		r.made.forget(claim.UID)
		return ctrl.Result{}, r.meet(ctx, claim, volume)
	}
	if rest := r.made.rest(claim.UID, madeVolume{}, time.Now()); rest > 0 {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	// 7. The cache says yes: confirm it live, and do it.
	return ctrl.Result{}, r.provision(ctx, facts)
}

// settle tells a bound claim that had been refused or told to wait that it is
// mirrored now.
func (r *claimReconciler) settle(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	isMirrored := claim.Status.Phase == corev1.ClaimBound && claim.Spec.VolumeName == mirror.VolumeName(claim.UID)
	if !isMirrored || conditionOf(r.options.Names, claim) == nil {
		return nil
	}
	_, err := r.say.condition(ctx, claim, mirror.Decision{Verdict: mirror.Allow, Reason: mirror.Mirrored, Message: "bound to its mirror volume"})
	return err
}

// binderPatience is how long a new claim is left to kube-controller-manager's
// first write before a refusal is written to it.
const binderPatience = 2 * time.Second

// untilBinderWrote returns how long to wait with a refusal: until
// kube-controller-manager has named the provisioner on a new claim. Were the
// condition written between its read and its write, that write would fail and
// tell the claim's owner of a conflict that is nobody's business.
func untilBinderWrote(claim *corev1.PersistentVolumeClaim, now time.Time) time.Duration {
	if _, written := claim.Annotations[storageProvisioner]; written {
		return 0
	}
	age := max(now.Sub(claim.CreationTimestamp.Time), 0) // another clock's time
	return max(binderPatience-age, 0)
}

// provision makes the mirror volume, if the decision still holds on what is
// read live.
func (r *claimReconciler) provision(ctx context.Context, facts mirror.Facts) error {
	began := time.Now()
	release := r.locks.share(mirror.Origin(r.options.Names, facts.Claim))
	defer release()

	decision, err := r.decideLive(ctx, &facts)
	if err != nil {
		return err
	}
	if decision.Verdict != mirror.Allow {
		return r.say.refusal(ctx, facts.Claim, decision)
	}
	switch err := r.write.createVolume(ctx, decision.Volume); {
	case apierrors.IsAlreadyExists(err):
		return r.meetLive(ctx, facts.Claim)
	case err != nil:
		return fmt.Errorf("create volume %s: %w", decision.Volume.Name, err)
	}
	r.made.remember(facts.Claim.UID, madeVolume{}, time.Now())
	r.metrics.provisioned(time.Since(began))
	r.say.mirrored(ctx, facts.Claim, decision)
	return nil
}

// decideLive decides on live facts and, on a yes, puts the finalizer on the
// origin, where it is not yet. Who else writes the origin meanwhile makes it
// read and decide again.
func (r *claimReconciler) decideLive(ctx context.Context, facts *mirror.Facts) (mirror.Decision, error) {
	decision, held, err := r.confirmed(ctx, facts)
	if err != nil || held || decision.Verdict != mirror.Allow {
		return decision, err
	}
	release := r.locks.write(mirror.Origin(r.options.Names, facts.Claim)) // of many workers one writes
	defer release()
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		decision, held, err = r.confirmed(ctx, facts)
		if err != nil || held || decision.Verdict != mirror.Allow {
			return err
		}
		return r.write.addFinalizer(ctx, facts.Origin)
	})
	return decision, err
}

// confirmed decides on live facts, and says whether the origin has the
// finalizer.
func (r *claimReconciler) confirmed(ctx context.Context, facts *mirror.Facts) (mirror.Decision, bool, error) {
	if err := r.confirm(ctx, facts); err != nil {
		return mirror.Decision{}, false, err
	}
	held := facts.Origin != nil && slices.Contains(facts.Origin.Finalizers, r.options.Names.Finalizer())
	return mirror.Decide(*facts), held, nil
}

// meetLive looks at the volume that has the name of the one to be made, which
// the cache does not know yet.
func (r *claimReconciler) meetLive(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	name := mirror.VolumeName(claim.UID)
	volume, err := r.live.volume(ctx, name)
	if err != nil {
		return err
	}
	if volume == nil {
		return fmt.Errorf("volume %s existed and is gone: will try again", name)
	}
	return r.meet(ctx, claim, volume)
}

// meet goes on with the claim's own volume, made by another leader or before a
// crash, and refuses a stranger, which is never adopted.
func (r *claimReconciler) meet(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) error {
	if mirror.IsMirrorOf(r.options.Names, volume, claim) {
		return nil
	}
	return r.say.refusal(ctx, claim, mirror.Decision{
		Verdict: mirror.Refuse,
		Reason:  mirror.VolumeNameTaken,
		Message: fmt.Sprintf("a volume %s exists and is not this claim's mirror: an administrator must look at it and remove it", volume.Name),
	})
}
