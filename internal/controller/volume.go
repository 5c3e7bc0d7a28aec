package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
}

// Reconcile brings one mirror volume to its right state.
func (r *volumeReconciler) Reconcile(ctx context.Context, request reconcile.Request) (ctrl.Result, error) {
	// 1. Gone, going, or not a mirror volume.
	volume, err := r.cache.volume(ctx, request.Name)
	if err != nil || volume == nil || volume.DeletionTimestamp != nil || !r.isMirror(volume) {
		r.told.forget(request.NamespacedName)
		return ctrl.Result{}, err
	}
	// 2. It serves its claim, as far as the cache knows: it follows its origin.
	// Repairs of what somebody edited, and growth, have their room here.
	why, err := r.leftover(ctx, r.cache, volume)
	if err != nil {
		return ctrl.Result{}, err
	}
	if why == "" {
		return ctrl.Result{}, r.followAffinity(ctx, volume)
	}
	// 3. A leftover, if live reads say so too: its object goes.
	return ctrl.Result{}, r.release(ctx, request.Name)
}

func (r *volumeReconciler) isMirror(volume *corev1.PersistentVolume) bool {
	return mirror.RecordOf(r.options.Names, volume).IsMirror()
}

func (r *volumeReconciler) leftover(ctx context.Context, from reader, volume *corev1.PersistentVolume) (string, error) {
	claim, err := from.claim(ctx, mirror.RecordOf(r.options.Names, volume).Claim)
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
	why, err := r.leftover(ctx, r.live, volume)
	if err != nil || why == "" {
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
	err = r.write.setNodeAffinity(ctx, volume, origin.Spec.NodeAffinity)
	if !apierrors.IsInvalid(err) {
		return client.IgnoreNotFound(err)
	}
	if r.told.isNews(client.ObjectKeyFromObject(volume), origin.Spec.NodeAffinity.String()) {
		r.say.affinityDiffers(volume, origin)
	}
	return nil
}
