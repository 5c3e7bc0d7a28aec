package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// originReconciler keeps the finalizer on a claim as long as mirror volumes of
// it exist, and tells its owner of a broken grant.
type originReconciler struct {
	options Options
	cache   reader
	live    reader
	write   writer
	say     *teller
	locks   *originLocks
	told    told
	// heldTold are the deletions that owners were told are held.
	heldTold told
	// losses are the namespaces that have lost access, as told last.
	losses *losses
	pace   pace
	began  *beginning
}

// Reconcile brings one origin claim to its right state.
func (r *originReconciler) Reconcile(ctx context.Context, request reconcile.Request) (ctrl.Result, error) {
	origin, err := r.cache.claim(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	// 1. Gone.
	if origin == nil {
		r.told.forget(request.NamespacedName)
		r.losses.forget(request.NamespacedName)
		r.pace.forget(request.NamespacedName)
		r.heldTold.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	// 2. Its grant is broken: its owner is told, once for each change.
	r.checkGrant(origin)
	return r.reconcile(ctx, origin)
}

// reconcile brings an origin claim that exists to its right state.
func (r *originReconciler) reconcile(ctx context.Context, origin *corev1.PersistentVolumeClaim) (ctrl.Result, error) {
	key := client.ObjectKeyFromObject(origin)
	held := slices.Contains(origin.Finalizers, r.options.Names.Finalizer())
	if rest := r.settled(ctx, origin, held); rest > 0 {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	began := time.Now()
	mirrors, err := volumesWhere(ctx, r.cache, volumesOf, key.String())
	if err != nil {
		return ctrl.Result{}, err
	}
	// 3. It is being deleted while it has mirrors: it is held, unless its owner
	// allows it.
	if held && origin.DeletionTimestamp != nil && len(mirrors) > 0 {
		return ctrl.Result{}, r.deleted(ctx, origin, mirrors)
	}
	// 4. It has mirrors, or it has none: so has it the finalizer, or has it not.
	switch {
	case !held && origin.DeletionTimestamp == nil && r.isOriginOf(origin, mirrors):
		return ctrl.Result{}, r.hold(ctx, key)
	case len(mirrors) == 0 && held:
		return r.letGo(ctx, key)
	}
	// 5. Namespaces have lost access, or have it again: its owner is told.
	return r.tellChanges(ctx, origin, mirrors, began)
}

// settled returns for how long nothing is to be done for an origin that has the
// finalizer and mirrors, and whose mirrors were looked at a moment ago: where
// they are thousands, merely listing them for each one's change takes long.
func (r *originReconciler) settled(ctx context.Context, origin *corev1.PersistentVolumeClaim, held bool) time.Duration {
	key := client.ObjectKeyFromObject(origin)
	rest := r.pace.rest(key, time.Now())
	if rest == 0 || !held || origin.DeletionTimestamp != nil {
		return 0
	}
	if some, err := volumesWhere(ctx, r.cache, volumesOf, key.String(), client.Limit(1)); err != nil || len(some) == 0 {
		return 0
	}
	return rest
}

// isOriginOf reports whether any of the mirrors is of this very claim, not of
// one that had its name before.
func (r *originReconciler) isOriginOf(origin *corev1.PersistentVolumeClaim, mirrors []corev1.PersistentVolume) bool {
	return slices.ContainsFunc(mirrors, func(volume corev1.PersistentVolume) bool {
		return mirror.RecordOf(r.options.Names, &volume).OriginUID == origin.UID
	})
}

// hold puts the finalizer back on an origin that has mirrors: somebody took it
// off, or another leader did while a mirror was being made.
func (r *originReconciler) hold(ctx context.Context, key types.NamespacedName) error {
	origin, err := r.live.claim(ctx, key)
	if err != nil || origin == nil || origin.DeletionTimestamp != nil ||
		slices.Contains(origin.Finalizers, r.options.Names.Finalizer()) {
		return err
	}
	if err := r.write.addFinalizer(ctx, origin); err != nil {
		return fmt.Errorf("add the finalizer to origin %s: %w", key, err)
	}
	log.FromContext(ctx).Info("put the finalizer on an origin that has mirrors")
	return nil
}

// doubtPatience is how long an origin is left that a volume names by its label
// alone: nothing tells the origin when that volume is put back, or goes.
const doubtPatience = 5 * time.Second

// letGo takes the finalizer off an origin of which a live list finds no mirror
// volume of any instance, while no worker can be making one.
func (r *originReconciler) letGo(ctx context.Context, key types.NamespacedName) (ctrl.Result, error) {
	release := r.locks.alone(key)
	defer release()

	// The volume for which the finalizer was put there may be there by now.
	if mirrors, err := volumesWhere(ctx, r.cache, volumesOf, key.String()); err != nil || len(mirrors) > 0 {
		return ctrl.Result{}, err
	}
	origin, err := r.live.claim(ctx, key)
	if err != nil || origin == nil || !slices.Contains(origin.Finalizers, r.options.Names.Finalizer()) {
		return ctrl.Result{}, err
	}
	mirrored, err := r.isMirrored(ctx, key)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("look for mirror volumes of origin %s: %w", key, err)
	}
	if mirrored && !r.isAllowed(origin) {
		return ctrl.Result{RequeueAfter: doubtPatience}, nil
	}
	if err := r.write.removeFinalizer(ctx, origin); err != nil {
		return ctrl.Result{}, fmt.Errorf("remove the finalizer from origin %s: %w", key, err)
	}
	log.FromContext(ctx).Info("took the finalizer off an origin that has no mirrors left")
	return ctrl.Result{}, nil
}

// mayBeMirror reports whether a volume that has an origin's label is a mirror
// volume. Its record may be edited, so that it names another origin for a moment,
// or be gone: the label is enough to keep an origin. A volume to which somebody
// copied it is none, by its name.
func (r *originReconciler) mayBeMirror(volume corev1.PersistentVolume) bool {
	return mirror.RecordOf(r.options.Names, &volume).IsMirror() || mirror.IsFormer(r.options.Names, &volume)
}

// isAllowed reports whether an origin's owner lets it go whatever mirrors it.
func (r *originReconciler) isAllowed(origin *corev1.PersistentVolumeClaim) bool {
	return origin.DeletionTimestamp != nil && origin.Annotations[r.options.Names.AllowDeletion()] == "true"
}

// isMirrored reports, by live reads, whether an origin has a mirror volume. One
// whose record was removed or edited counts, until it is put back: its label
// says so, or the claim that is bound to it does. A volume of another name to
// which the label was copied is none.
func (r *originReconciler) isMirrored(ctx context.Context, origin types.NamespacedName) (bool, error) {
	names := r.options.Names
	var labelled corev1.PersistentVolumeList
	byLabel := client.MatchingLabels{names.OriginLabel(): mirror.OriginHash(origin)}
	if err := r.live.List(ctx, &labelled, byLabel); err != nil || slices.ContainsFunc(labelled.Items, r.mayBeMirror) {
		return true, err
	}
	claims, err := claimsWhere(ctx, r.cache, claimsByOrigin, origin.String())
	if err != nil {
		return true, err
	}
	for i := range claims {
		if !isBound(&claims[i]) {
			continue
		}
		volume, err := r.live.volume(ctx, claims[i].Spec.VolumeName)
		if err != nil {
			return true, err
		}
		if volume != nil && r.mayBeMirror(*volume) && isWithoutWord(names, volume) {
			return true, nil
		}
	}
	return false, nil
}

// isWithoutWord reports whether a mirror volume's record and label do not agree
// on what it mirrors, or are missing.
func isWithoutWord(names mooringapi.Names, volume *corev1.PersistentVolume) bool {
	record := mirror.RecordOf(names, volume)
	return !record.IsMirror() || volume.Labels[names.OriginLabel()] != mirror.OriginHash(record.Origin)
}

func (r *originReconciler) checkGrant(origin *corev1.PersistentVolumeClaim) {
	var sentences []string
	for _, problem := range grant.Parse(r.options.Names, origin.Annotations).Problems() {
		sentences = append(sentences, problem.Error())
	}
	said := strings.Join(sentences, "; ")
	if r.told.isNews(client.ObjectKeyFromObject(origin), said) {
		r.say.brokenGrant(origin, said)
	}
}
