package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// volumeReconciler sees to it that a mirror volume lives only while the claim
// that it was made for needs it, so that nobody can be bound to a leftover.
type volumeReconciler struct {
	options Options
	cache   reader
	live    reader
	write   writer
	say     *teller
	metrics *metrics
	told    told
	// unproven are the volumes without a record of which it is not certain what
	// they mirror.
	unproven *nameSet
	// repairs are spread out, volume by volume.
	repairs pace
}

// Reconcile brings one mirror volume to its right state.
func (r *volumeReconciler) Reconcile(ctx context.Context, request reconcile.Request) (ctrl.Result, error) {
	// 1. Gone, or without a record.
	volume, err := r.cache.volume(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if volume == nil || !r.isMirror(volume) {
		return ctrl.Result{}, r.unrecorded(ctx, request, volume)
	}
	// 2. Going.
	if volume.DeletionTimestamp != nil {
		return ctrl.Result{}, r.going(ctx, volume)
	}
	// 3. A leftover, if live reads say so too: its object goes.
	claim, err := r.owner(ctx, volume)
	if err != nil {
		return ctrl.Result{}, err
	}
	if mirror.Leftover(r.options.Names, volume, claim) != "" {
		return ctrl.Result{}, r.release(ctx, request.Name)
	}
	// 4. Its claim was restored from a backup: the claim's reconciler decides, and
	// until then the volume is kept safe.
	if claim.UID != mirror.RecordOf(r.options.Names, volume).ClaimUID && !mirror.Owns(claim, volume) {
		return ctrl.Result{}, r.keepForRestored(ctx, volume, claim)
	}
	return ctrl.Result{}, r.keep(ctx, volume, claim)
}

// going sees to a volume whose object is being deleted, which takes as long as
// its claim lives, if somebody deleted it by hand: until then it is a mirror.
func (r *volumeReconciler) going(ctx context.Context, volume *corev1.PersistentVolume) error {
	claim, err := r.owner(ctx, volume)
	if err != nil {
		return err
	}
	switch {
	case mirror.Leftover(r.options.Names, volume, claim) != "":
	case claim.UID == mirror.RecordOf(r.options.Names, volume).ClaimUID:
		return client.IgnoreNotFound(r.keep(ctx, volume, claim))
	default:
		return client.IgnoreNotFound(r.keepForRestored(ctx, volume, claim))
	}
	// Another claim was bound to it meanwhile: it would stay as long as that one.
	if r.isTaken(volume) {
		return r.mend(ctx, volume.Name)
	}
	return client.IgnoreNotFound(r.harden(ctx, volume)) // somebody else may hold it for long
}

// keepForRestored sees to a volume that is Released until its restored claim is
// granted again, if ever: all the while a driver must not take it for its own,
// and nobody else may be bound to it.
func (r *volumeReconciler) keepForRestored(ctx context.Context, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	if repaired, err := r.repair(ctx, volume, claim); err != nil || repaired {
		return err
	}
	// With the claim's own UID it is on its way to be bound; without any it would be
	// Available to whoever has that name.
	if ref := volume.Spec.ClaimRef; ref != nil && ref.UID != "" && ref.Namespace == claim.Namespace && ref.Name == claim.Name {
		return nil
	}
	return r.mend(ctx, volume.Name)
}

// unrecorded deals with a volume that is gone, was never a mirror, or is one
// whose record is missing.
func (r *volumeReconciler) unrecorded(ctx context.Context, request reconcile.Request, volume *corev1.PersistentVolume) error {
	if volume != nil && mirror.IsFormer(r.options.Names, volume) {
		return r.adopt(ctx, request.Name)
	}
	r.told.forget(request.NamespacedName)
	r.unproven.remove(request.Name)
	r.repairs.forget(request.NamespacedName)
	return nil
}

// keep sees to a volume that serves its claim.
func (r *volumeReconciler) keep(ctx context.Context, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	// 5. Somebody edited it: it is put back, and comes here once more.
	repaired, err := r.repair(ctx, volume, claim)
	if err != nil || repaired {
		return err
	}
	// 6. Its claimRef was changed, so that another claim could be bound to it.
	if !mirror.HasOwnClaimRef(r.options.Names, volume) {
		return r.mend(ctx, volume.Name)
	}
	// 7. It follows its origin.
	if err := r.followSize(ctx, volume, claim); err != nil {
		return err
	}
	return r.followAffinity(ctx, volume)
}

// isTaken reports whether a mirror volume's claimRef names another claim by UID.
func (r *volumeReconciler) isTaken(volume *corev1.PersistentVolume) bool {
	ref := volume.Spec.ClaimRef
	return ref != nil && ref.UID != "" && !mirror.HasOwnClaimRef(r.options.Names, volume)
}

// mend puts back the claimRef of a mirror volume, if live reads say that it was
// changed.
func (r *volumeReconciler) mend(ctx context.Context, name string) error {
	volume, err := r.live.volume(ctx, name)
	if err != nil || volume == nil || !r.isMirror(volume) {
		return err
	}
	return r.putBackClaimRef(ctx, volume)
}

// putBackClaimRef undoes a change of a mirror volume's claimRef; the volume is
// afterwards as the cluster has it. A claim that was bound to the volume in the
// meantime loses it, and is told.
func (r *volumeReconciler) putBackClaimRef(ctx context.Context, volume *corev1.PersistentVolume) error {
	if mirror.HasOwnClaimRef(r.options.Names, volume) {
		return nil
	}
	record := mirror.RecordOf(r.options.Names, volume)
	if err := r.expel(ctx, volume, record); err != nil {
		return err
	}
	if err := r.write.putBackClaimRef(ctx, volume, record.ClaimRef()); err != nil {
		return fmt.Errorf("put back the claimRef of volume %s: %w", volume.Name, err)
	}
	log.FromContext(ctx).Info("put back the claimRef that somebody had changed", "claim", record.Claim.String())
	return nil
}

// expel tells a claim that a mirror volume is another's, if it is bound to it, and
// about to lose it.
func (r *volumeReconciler) expel(ctx context.Context, volume *corev1.PersistentVolume, own mirror.Record) error {
	intruder, err := r.intruder(ctx, volume, own)
	if err != nil || intruder == nil {
		return err
	}
	_, err = r.say.refusal(ctx, intruder, mirror.Decision{
		Verdict: mirror.Refuse,
		Reason:  mirror.MirrorOfAnother,
		Message: fmt.Sprintf("volume %s is the mirror of another claim, and is taken from this one: delete this claim", volume.Name),
	})
	return err
}

// intruder returns the claim that a mirror volume's claimRef names instead of
// its own, if it is bound to the volume; else nil.
func (r *volumeReconciler) intruder(ctx context.Context, volume *corev1.PersistentVolume, record mirror.Record) (*corev1.PersistentVolumeClaim, error) {
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.Name == "" || ref.Namespace == "" {
		return nil, nil
	}
	claim, err := r.live.claim(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil || claim == nil || claim.UID == record.ClaimUID || claim.Spec.VolumeName != volume.Name {
		return nil, err
	}
	return claim, nil
}

func (r *volumeReconciler) isMirror(volume *corev1.PersistentVolume) bool {
	return mirror.RecordOf(r.options.Names, volume).IsMirror()
}

// leftover tells by live reads why a volume is one, or "".
func (r *volumeReconciler) leftover(ctx context.Context, volume *corev1.PersistentVolume) (string, error) {
	owner, err := r.owner(ctx, volume) // by UID, whatever somebody wrote into the record
	if err != nil {
		return "", err
	}
	key := mirror.RecordOf(r.options.Names, volume).Claim
	if owner != nil {
		key = client.ObjectKeyFromObject(owner)
	}
	claim, err := r.live.claim(ctx, key)
	if err != nil {
		return "", err
	}
	return mirror.Leftover(r.options.Names, volume, claim), nil
}

func (r *volumeReconciler) release(ctx context.Context, name string) error {
	volume, err := r.live.volume(ctx, name)
	if err != nil || volume == nil || volume.DeletionTimestamp != nil || !r.isMirror(volume) {
		return err
	}
	why, err := r.leftover(ctx, volume)
	if err != nil || why == "" {
		return err
	}
	if err := r.putBackClaimRef(ctx, volume); err != nil {
		return err
	}
	// Whatever its reclaim policy was edited to, the sooner the object is gone
	// the less anybody can do with it: a driver acts on Released volumes.
	if err := r.write.deleteVolume(ctx, volume); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("delete volume %s: %w", name, err)
	}
	r.metrics.deleted.Inc()
	log.FromContext(ctx).Info("deleted the volume's object; the data stays", "why", why)
	return nil
}

// followAffinity lets a mirror volume be reachable from where its origin is,
// as far as the API allows: an affinity can be set where there was none, and
// changed only with the gate MutablePVNodeAffinity (kubernetes
// pkg/apis/core/validation, ValidatePersistentVolumeUpdate).
func (r *volumeReconciler) followAffinity(ctx context.Context, volume *corev1.PersistentVolume) error {
	record := mirror.RecordOf(r.options.Names, volume)
	origin, err := r.cache.volume(ctx, record.OriginVolume)
	if err != nil || origin == nil || origin.UID != record.OriginVolumeUID ||
		equality.Semantic.DeepEqual(origin.Spec.NodeAffinity, volume.Spec.NodeAffinity) {
		return err
	}
	key, wanted := client.ObjectKeyFromObject(volume), origin.Spec.NodeAffinity.String()
	if r.told.last(key) == wanted {
		return nil // it was tried, and cannot be
	}
	err = r.write.setNodeAffinity(ctx, volume.DeepCopy(), origin.Spec.NodeAffinity)
	if !apierrors.IsInvalid(err) {
		return client.IgnoreNotFound(err)
	}
	if r.told.isNews(key, wanted) {
		r.say.affinityDiffers(volume, origin)
	}
	return nil
}
