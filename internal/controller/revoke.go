package controller

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// brakePatience is how long a deletion that the brake holds waits until it is
// tried again.
const brakePatience = 15 * time.Second

// revoked tells of a grant that has ended, records since when, and, where the
// class says so, ends the mirror after the class's delay.
func (r *claimReconciler) revoked(ctx context.Context, facts mirror.Bound, review mirror.Review) (ctrl.Result, error) {
	claim, volume, names := facts.Claim, facts.Volume, r.options.Names
	result, err := r.say.refusal(ctx, claim, mirror.Decision{Reason: review.Reason, Message: review.Message})
	if err != nil {
		return result, err
	}
	// 1. Since when, on the volume, so that it outlives every restart.
	record := mirror.RecordOf(names, volume)
	if record.RevokedAt.IsZero() {
		r.began.at(facts.Now)
		now := map[string]any{names.RevokedAt(): facts.Now.UTC().Format(time.RFC3339Nano)}
		if err := r.write.annotateVolume(ctx, volume, now); err != nil {
			return result, err
		}
		r.metrics.revocations.WithLabelValues(string(review.Reason)).Inc()
		return result, nil // the cache will tell, and wake this again
	}
	// 2. The class only reports.
	policy, err := r.policy(ctx, r.cache, facts)
	if err != nil || !policy.Delete {
		return result, err
	}
	// 3. Not yet.
	if rest := time.Until(record.RevokedAt.Add(policy.After)); rest > 0 {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	// 4. Nothing is deleted at all: no need to read everything again for each of
	// thousands, time and again.
	if r.brake.isKnownToHold(time.Now()) {
		return ctrl.Result{RequeueAfter: brakePatience}, nil
	}
	return r.end(ctx, facts)
}

// policy returns what is to happen to a revoked mirror. An adopted one is only
// reported until an administrator has opted in.
func (r *claimReconciler) policy(ctx context.Context, from reader, facts mirror.Bound) (mirror.Policy, error) {
	if mirror.RecordOf(r.options.Names, facts.Volume).Adopted && r.options.Adopt != AdoptEnforce {
		return mirror.Policy{}, nil
	}
	class, err := from.class(ctx, className(facts.Claim))
	return mirror.PolicyOf(r.options.Names, class), err
}

// end deletes a mirror claim whose grant has ended, if live reads of everything
// that this rests on say so too, and the brake lets it. Running Pods keep the
// claim until they end; new ones cannot start.
func (r *claimReconciler) end(ctx context.Context, known mirror.Bound) (ctrl.Result, error) {
	names := r.options.Names
	// 1. Everything once more, live.
	claim, volume, review, err := r.judgeLive(ctx, known.Claim, known.Volume)
	if err != nil || claim == nil || review.Standing != mirror.Revoked {
		return ctrl.Result{}, err // the cache will learn of it
	}
	record := mirror.RecordOf(names, volume)
	policy, err := r.policy(ctx, r.live, mirror.Bound{Claim: claim, Volume: volume})
	if err != nil || !policy.Delete || record.RevokedAt.IsZero() || record.ServedBy != r.options.Instance {
		return ctrl.Result{}, err
	}
	if rest := time.Until(record.RevokedAt.Add(policy.After)); rest > 0 {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	// 2. Not one of too many.
	if held, err := r.brake.holds(ctx, volume, time.Now()); err != nil || held {
		return ctrl.Result{RequeueAfter: brakePatience}, err
	}
	// 3. The claim as it was just read, or none.
	if err := client.IgnoreNotFound(r.write.deleteClaim(ctx, claim)); err != nil {
		return ctrl.Result{}, fmt.Errorf("delete claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	r.metrics.ended.Inc()
	r.say.ended(claim, review, record, policy)
	log.FromContext(ctx).Info("deleted a claim whose grant has ended", "reason", review.Reason, "revokedAt", record.RevokedAt)
	return ctrl.Result{}, nil
}
