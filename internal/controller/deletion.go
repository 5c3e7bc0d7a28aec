package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// deleted deals with an origin that somebody deletes while it has mirrors: it is
// held until they are gone, or its owner allows it to go without waiting.
func (r *originReconciler) deleted(ctx context.Context, origin *corev1.PersistentVolumeClaim, mirrors []corev1.PersistentVolume) error {
	key := client.ObjectKeyFromObject(origin)
	if r.isAllowed(origin) {
		return r.allowDeletion(ctx, origin, mirrors)
	}
	r.losses.remember(key, r.namespacesOf(mirrors), true, time.Now()) // told with the same event
	namespace, err := get(ctx, r.cache, types.NamespacedName{Name: origin.Namespace}, newNamespace())
	if err != nil {
		return err
	}
	// Told once; and once more when its namespace is being deleted too.
	held := string(origin.UID)
	if namespace != nil && namespace.DeletionTimestamp != nil {
		held = "with namespace " + string(namespace.UID)
	}
	if r.heldTold.isNews(key, held) {
		r.say.deletionHeld(origin, namespace, r.namespacesOf(mirrors))
	}
	return nil
}

// allowDeletion lets an origin go although it has mirrors, as its owner wrote,
// and records it on every mirror volume first.
func (r *originReconciler) allowDeletion(ctx context.Context, cached *corev1.PersistentVolumeClaim, mirrors []corev1.PersistentVolume) error {
	names, key := r.options.Names, client.ObjectKeyFromObject(cached)
	if err := r.recordRelease(ctx, mirrors); err != nil {
		return fmt.Errorf("record that origin %s was let go: %w", key, err)
	}
	release := r.locks.alone(key)
	defer release()
	origin, err := r.live.claim(ctx, key)
	if err != nil || origin == nil || origin.UID != cached.UID || !r.isAllowed(origin) || !slices.Contains(origin.Finalizers, names.Finalizer()) {
		return err
	}
	if err := r.write.removeFinalizer(ctx, origin); err != nil {
		return fmt.Errorf("remove the finalizer from origin %s: %w", key, err)
	}
	r.say.deletionAllowed(origin, r.namespacesOf(mirrors))
	log.FromContext(ctx).Info("let an origin go although it has mirrors, as its owner allowed", "mirrors", len(mirrors))
	return nil
}

func (r *originReconciler) recordRelease(ctx context.Context, mirrors []corev1.PersistentVolume) error {
	key := r.options.Names.OriginReleasedAt()
	for i := range mirrors {
		if mirrors[i].Annotations[key] != "" {
			continue
		}
		now := map[string]any{key: time.Now().UTC().Format(time.RFC3339)}
		err := r.write.annotateVolume(ctx, mirrors[i].DeepCopy(), now)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func (r *originReconciler) namespacesOf(mirrors []corev1.PersistentVolume) []string {
	var namespaces []string
	for i := range mirrors {
		namespaces = append(namespaces, mirror.RecordOf(r.options.Names, &mirrors[i]).Claim.Namespace)
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}
