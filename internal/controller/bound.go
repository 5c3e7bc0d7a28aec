package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

// bound sees to it that a bound mirror is as true as the grant behind it. The
// volume is the one that the claim names, nil if there is none.
func (r *claimReconciler) bound(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (ctrl.Result, error) {
	r.made.forget(claim.UID)
	names := r.options.Names
	// 1. Somebody deleted the volume's object, and it is gone.
	if volume == nil {
		return r.lost(ctx, claim, nil)
	}
	// 2. The volume has no record, or that of another claim: the volume's
	// reconciler deals with both.
	isRestored := mirror.IsRestoredFor(names, volume, claim)
	if !mirror.IsMirrorOf(names, volume, claim) && !isRestored {
		return ctrl.Result{}, nil
	}
	// 3. Another instance looks after it.
	ours, again, err := r.isLookedAfter(ctx, claim, volume)
	if err != nil || !ours {
		return again, err
	}
	facts, err := r.boundFacts(ctx, r.cache, claim, volume)
	if err != nil {
		return ctrl.Result{}, err
	}
	review := mirror.Judge(facts)
	if again, err = r.stands(ctx, facts, review); err != nil {
		return ctrl.Result{}, err
	}
	return untilEnd(again, review.Grant), nil
}

// stands does what follows from how a mirror stands.
func (r *claimReconciler) stands(ctx context.Context, facts mirror.Bound, review mirror.Review) (ctrl.Result, error) {
	if review.Reason != mirror.RecordBroken { // it is certain what the record names
		r.checkReference(facts.Claim, facts.Volume)
	}
	switch review.Standing {
	// 4. The grant is there.
	case mirror.Valid:
		return r.valid(ctx, facts, review)
	// 5. The grant has ended.
	case mirror.Revoked:
		return r.revoked(ctx, facts, review)
	// 6. Nothing is certain: it is said, and nothing is taken; but for what the
	// volume's reconciler is about to put back.
	default:
		if review.Mending {
			return ctrl.Result{}, nil
		}
		return r.unclear(ctx, facts, review)
	}
}

// unclear says that it is not certain how a mirror stands. Where the owner grants
// it, and merely the origin cannot be seen, a revocation is over: the time until
// its claim is deleted begins anew should the grant end once more.
func (r *claimReconciler) unclear(ctx context.Context, facts mirror.Bound, review mirror.Review) (ctrl.Result, error) {
	names := r.options.Names
	if review.Grant.Access != grant.None && !mirror.RecordOf(names, facts.Volume).RevokedAt.IsZero() {
		if err := r.write.annotateVolume(ctx, facts.Volume, map[string]any{names.RevokedAt(): nil}); err != nil {
			return ctrl.Result{}, err
		}
	}
	return r.say.refusal(ctx, facts.Claim, mirror.Decision{Reason: review.Reason, Message: review.Message})
}

// boundFacts gathers what is to be known of a bound mirror, from the cache or
// live.
func (r *claimReconciler) boundFacts(ctx context.Context, from reader, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (mirror.Bound, error) {
	return boundFacts(ctx, r.options, from, claim, volume)
}

func boundFacts(ctx context.Context, options Options, from reader, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (mirror.Bound, error) {
	facts := mirror.Bound{Names: options.Names, Now: time.Now(), Claim: claim, Volume: volume}
	record := mirror.RecordOf(options.Names, volume)
	var err error
	if facts.NamespaceLabels, err = from.namespaceLabels(ctx, claim.Namespace); err != nil {
		return facts, err
	}
	if facts.RecordedVolume, err = from.volume(ctx, record.OriginVolume); err != nil {
		return facts, err
	}
	facts.Origin, err = from.claim(ctx, record.Origin)
	if err != nil || facts.Origin == nil {
		return facts, err
	}
	facts.OriginVolume = facts.RecordedVolume
	if facts.Origin.Spec.VolumeName != record.OriginVolume {
		facts.OriginVolume, err = from.volume(ctx, facts.Origin.Spec.VolumeName)
	}
	if err != nil || facts.OriginVolume == nil || facts.OriginVolume.Spec.CSI == nil {
		return facts, err
	}
	facts.Driver, err = from.driver(ctx, facts.OriginVolume.Spec.CSI.Driver)
	return facts, err
}

// lost tells the owner of a claim whose volume's object somebody deleted.
func (r *claimReconciler) lost(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (ctrl.Result, error) {
	if volume == nil && claim.Status.Phase != corev1.ClaimLost {
		return ctrl.Result{}, nil // not in the cache yet, or not seen lost yet
	}
	return r.say.refusal(ctx, claim, mirror.Decision{Reason: mirror.VolumeLost,
		Message: "somebody deleted the object of volume " + claim.Spec.VolumeName + ", by which this claim reached its origin's data: " +
			"delete this claim and create it anew; the data are untouched"})
}

// valid brings the record up to date, takes back what was said of a revocation,
// and says until when access is given.
func (r *claimReconciler) valid(ctx context.Context, facts mirror.Bound, review mirror.Review) (ctrl.Result, error) {
	claim, volume := facts.Claim, facts.Volume
	// 1. The claim or its origin came back under another UID, with the same
	// data: on a yes, live reads must agree.
	if review.Record != nil {
		return ctrl.Result{}, r.rerecord(ctx, claim, volume)
	}
	// 2. What was said of a revocation is withdrawn, first where it counts.
	say := r.say.condition
	if record := mirror.RecordOf(r.options.Names, volume); !record.RevokedAt.IsZero() {
		r.losses.withdraw(record, r.began.at(facts.Now))
		if err := r.write.annotateVolume(ctx, volume, map[string]any{r.options.Names.RevokedAt(): nil}); err != nil {
			return ctrl.Result{}, err
		}
		say = r.say.recovered
	}
	// 3. Somebody deletes the volume's object, which Kubernetes keeps for as long
	// as the claim: until then it is a mirror, whose grant can end like any other's.
	if volume.DeletionTimestamp != nil {
		return r.lost(ctx, claim, volume)
	}
	// 4. The condition, where there is something to say.
	if conditionOf(r.options.Names, claim) == nil && review.Grant.Expires.IsZero() {
		return ctrl.Result{}, nil
	}
	return say(ctx, claim, mirror.Decision{Verdict: mirror.Allow, Reason: mirror.Mirrored, Message: review.Message})
}

// rerecord writes on a volume under which UIDs its claim and its origin are
// known now, after a restore.
func (r *claimReconciler) rerecord(ctx context.Context, cached *corev1.PersistentVolumeClaim, known *corev1.PersistentVolume) error {
	claim, volume, review, err := r.judgeLive(ctx, cached, known)
	if err != nil || claim == nil || review.Standing != mirror.Valid || review.Record == nil {
		return err
	}
	// Somebody deleted the former claim's volume, it is as good as gone: once it is,
	// the claim gets a new one of that name.
	if volume.DeletionTimestamp != nil && !hasClaimRef(volume, claim) {
		return nil
	}
	r.losses.withdraw(mirror.RecordOf(r.options.Names, known), r.began.at(time.Now()))
	record := map[string]any{r.options.Names.RevokedAt(): nil}
	for key, value := range review.Record {
		record[key] = value
	}
	spec := map[string]any{}
	if !hasClaimRef(volume, claim) {
		spec["claimRef"] = claimRefPatch(mirror.RefTo(claim))
	}
	if err := r.write.patchVolume(ctx, volume, map[string]any{"annotations": record}, spec); err != nil {
		return err
	}
	r.say.rerecorded(claim, mirror.RecordOf(r.options.Names, known).Origin)
	log.FromContext(ctx).Info("recorded a restored claim or origin", "volume", volume.Name)
	return nil
}

func hasClaimRef(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := volume.Spec.ClaimRef
	return ref != nil && ref.UID == claim.UID
}

// judgeLive judges a mirror on live reads alone. The claim is nil if it, or its
// volume, is no more what it was.
func (r *claimReconciler) judgeLive(ctx context.Context, cached *corev1.PersistentVolumeClaim, known *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, mirror.Review, error) {
	var none mirror.Review
	claim, err := r.live.claim(ctx, types.NamespacedName{Namespace: cached.Namespace, Name: cached.Name})
	if err != nil || claim == nil || claim.UID != cached.UID || claim.DeletionTimestamp != nil || claim.Spec.VolumeName != known.Name {
		return nil, nil, none, err
	}
	volume, err := r.live.volume(ctx, known.Name)
	if err != nil || volume == nil || volume.UID != known.UID {
		return nil, nil, none, err
	}
	facts, err := r.boundFacts(ctx, r.live, claim, volume)
	return claim, volume, mirror.Judge(facts), err
}

// checkReference tells of a reference that was edited after binding: the record
// says what is mirrored, and the reference is neither followed nor a reason to
// take anything.
func (r *claimReconciler) checkReference(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) {
	recorded := mirror.RecordOf(r.options.Names, volume).Origin
	drift := driftOf(r.options.Names, claim, recorded)
	if r.drifted.isNews(types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, drift) {
		r.say.referenceDrifted(claim, recorded, drift)
		r.metrics.drift.WithLabelValues(driftReference).Inc()
	}
}
