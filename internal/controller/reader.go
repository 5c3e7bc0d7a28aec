package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reader reads single objects, from the cache or live. An object that does not
// exist is nil without error; an error is never taken for absence.
type reader struct{ client.Reader }

func (r reader) claim(ctx context.Context, key types.NamespacedName) (*corev1.PersistentVolumeClaim, error) {
	return get(ctx, r, key, &corev1.PersistentVolumeClaim{})
}

func (r reader) volume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	if name == "" {
		return nil, nil
	}
	return get(ctx, r, types.NamespacedName{Name: name}, &corev1.PersistentVolume{})
}

func (r reader) class(ctx context.Context, name string) (*storagev1.StorageClass, error) {
	if name == "" {
		return nil, nil
	}
	return get(ctx, r, types.NamespacedName{Name: name}, &storagev1.StorageClass{})
}

func (r reader) driver(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	return get(ctx, r, types.NamespacedName{Name: name}, &storagev1.CSIDriver{})
}

// namespaceLabels returns a namespace's labels: nil where it does not exist,
// empty where it has none.
func (r reader) namespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	namespace, err := get(ctx, r, types.NamespacedName{Name: name}, newNamespace())
	if namespace == nil || err != nil {
		return nil, err
	}
	if namespace.Labels == nil {
		return map[string]string{}, nil
	}
	return namespace.Labels, nil
}

// newNamespace is a namespace of which only the metadata is read and watched.
func newNamespace() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
}

func get[T client.Object](ctx context.Context, from client.Reader, key types.NamespacedName, object T) (T, error) {
	var none T
	if err := from.Get(ctx, key, object); err != nil {
		return none, client.IgnoreNotFound(err)
	}
	return object, nil
}

// claimsWhere and volumesWhere list from the cache by an index. The objects are
// the cache's own and must not be changed.
func claimsWhere(ctx context.Context, cache client.Reader, field, value string, options ...client.ListOption) ([]corev1.PersistentVolumeClaim, error) {
	var list corev1.PersistentVolumeClaimList
	options = append(options, client.MatchingFields{field: value}, client.UnsafeDisableDeepCopy)
	err := cache.List(ctx, &list, options...)
	return list.Items, err
}

func volumesWhere(ctx context.Context, cache client.Reader, field, value string, options ...client.ListOption) ([]corev1.PersistentVolume, error) {
	var list corev1.PersistentVolumeList
	options = append(options, client.MatchingFields{field: value}, client.UnsafeDisableDeepCopy)
	err := cache.List(ctx, &list, options...)
	return list.Items, err
}
