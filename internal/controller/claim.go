package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mooring-k8s/mooring/internal/grant"
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
	metrics *metrics
	// made are the claims whose volume was just made, and sharing which claim of
	// a namespace was just given an origin's handle, by pair; finalized are the
	// origins that just got the finalizer.
	made      recently[types.UID, madeVolume]
	sharing   recently[string, mirror.Rival]
	finalized recently[types.UID, struct{}]
	// held are the mirrors that this instance looks after, and drifted what was
	// said of references that no longer name what is mirrored.
	held    held
	drifted told
	brake   *brake
	began   *beginning
	losses  *losses
}

// madeVolume is all there is to remember of a volume that was made.
type madeVolume struct{}

// Reconcile brings one claim to its right state.
func (r *claimReconciler) Reconcile(ctx context.Context, request reconcile.Request) (ctrl.Result, error) {
	// 1. Gone or going: nothing to decide; the volume's reconciler clears up.
	claim, err := r.cache.claim(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if claim == nil {
		r.drifted.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if claim.DeletionTimestamp != nil {
		r.held.forget(claim.UID)
		return ctrl.Result{}, nil
	}
	return r.reconcile(ctx, claim)
}

// reconcile brings one claim that lives to its right state.
func (r *claimReconciler) reconcile(ctx context.Context, claim *corev1.PersistentVolumeClaim) (ctrl.Result, error) {
	volume, err := r.cache.volume(ctx, mirror.NameOf(claim))
	if err != nil {
		return ctrl.Result{}, err
	}
	// 2. Not a mirror claim.
	ours, err := r.isMirrorClaim(ctx, claim, volume)
	if err != nil || !ours {
		return ctrl.Result{}, err
	}
	// 3. Bound: it is a mirror for as long as its grant lasts.
	if isBound(claim) && (volume != nil || !mirror.IsRestored(claim)) {
		return r.bound(ctx, claim, volume)
	}
	facts, err := r.facts(ctx, r.cache, claim)
	if err != nil {
		return ctrl.Result{}, err
	}
	// 4. Another instance serves its namespace.
	if !r.isServed(facts.NamespaceLabels) && !r.isMakerOf(volume) {
		return ctrl.Result{}, nil
	}
	return r.serve(ctx, facts, volume)
}

// isBound reports whether a claim is bound or was, so that it is no more a
// question whether it gets a volume. One that was restored from a backup is, as
// long as its volume is there; without it, it gets another of that name.
func isBound(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase == corev1.ClaimBound || claim.Status.Phase == corev1.ClaimLost
}

// isMakerOf reports whether this instance made a volume, which it looks after
// until it is bound, whoever serves its namespace by then.
func (r *claimReconciler) isMakerOf(volume *corev1.PersistentVolume) bool {
	return volume != nil && mirror.RecordOf(r.options.Names, volume).ServedBy == r.options.Instance
}

// serve decides about a claim that is not bound yet, and does what follows.
func (r *claimReconciler) serve(ctx context.Context, facts mirror.Facts, volume *corev1.PersistentVolume) (ctrl.Result, error) {
	decision, err := r.decide(ctx, &facts)
	if err != nil {
		return ctrl.Result{}, err
	}
	again, err := r.follow(ctx, facts, decision, volume)
	if err != nil {
		return ctrl.Result{}, err
	}
	return untilEnd(again, decision.Grant), nil
}

// untilEnd lets a claim be looked at again when its grant ends by itself, if not
// before; also where something else stands in its way: who has no grant any more
// is told nothing about the origin.
func untilEnd(again ctrl.Result, by grant.Grant) ctrl.Result {
	if by.Expires.IsZero() {
		return again
	}
	rest := max(time.Until(by.Expires), time.Millisecond)
	if again.RequeueAfter == 0 || rest < again.RequeueAfter {
		again.RequeueAfter = rest
	}
	return again
}

// follow does what follows from the cache's decision.
func (r *claimReconciler) follow(ctx context.Context, facts mirror.Facts, decision mirror.Decision, volume *corev1.PersistentVolume) (ctrl.Result, error) {
	claim := facts.Claim
	switch {
	// 5. The cache refuses, or says wait. A volume made before that is not to
	// be bound any more.
	case decision.Verdict != mirror.Allow:
		return r.refuse(ctx, facts, decision, volume)
	// 6. Its volume is there already, or was made a moment ago: the rest is the
	// binder's.
	case volume != nil:
		r.made.forget(claim.UID)
		return r.meet(ctx, facts, decision, volume)
	case r.made.rest(claim.UID, madeVolume{}, facts.Now) > 0:
		return ctrl.Result{RequeueAfter: r.made.rest(claim.UID, madeVolume{}, facts.Now)}, nil
	}
	// 7. The cache says yes: confirm it live, and do it.
	return r.provision(ctx, facts)
}

// refuse says why a claim is not mirrored, after having taken back a volume
// that was made for it and is not bound yet.
func (r *claimReconciler) refuse(ctx context.Context, facts mirror.Facts, decision mirror.Decision, volume *corev1.PersistentVolume) (ctrl.Result, error) {
	if volume != nil && mirror.IsMadeFor(r.options.Names, volume, facts.Claim) {
		taken, err := r.withdraw(ctx, facts.Claim)
		if err != nil || !taken {
			return ctrl.Result{}, err // bound, or allowed by now: the cache will know
		}
	}
	if rest := untilBinderWrote(facts.Claim, facts.Now); rest > 0 {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	return r.tell(ctx, facts.Claim, decision)
}

// tell says why a claim is not mirrored. Where another claim stands in its way
// whose volume the cache does not know yet, it is to be looked at again: should
// that volume go before the cache has shown it, nothing else would tell.
func (r *claimReconciler) tell(ctx context.Context, claim *corev1.PersistentVolumeClaim, decision mirror.Decision) (ctrl.Result, error) {
	result, err := r.say.refusal(ctx, claim, decision)
	if decision.Reason == mirror.DuplicateMirror && result.RequeueAfter == 0 {
		_, result.RequeueAfter = r.sharing.last(pair(mirror.Origin(r.options.Names, claim), claim.Namespace), time.Now())
	}
	return result, err
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
	age := now.Sub(claim.CreationTimestamp.Time)
	if age < -binderPatience {
		return 0 // by a clock that cannot be compared with this one
	}
	return max(binderPatience-age, 0)
}
