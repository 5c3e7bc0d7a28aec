package controller

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// memory is a cache that costs what the real one does: a look-up and a copy for
// each object that is read, none for lists that are read unsafely. It counts.
type memory struct {
	claims     map[types.NamespacedName]*corev1.PersistentVolumeClaim
	volumes    map[string]*corev1.PersistentVolume
	namespaces map[string]map[string]string
	mirrors    []corev1.PersistentVolume
	gets       int
}

func (m *memory) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	m.gets++
	found := false
	switch into := into.(type) {
	case *corev1.PersistentVolumeClaim:
		var claim *corev1.PersistentVolumeClaim
		if claim, found = m.claims[key]; found {
			claim.DeepCopyInto(into)
		}
	case *corev1.PersistentVolume:
		var volume *corev1.PersistentVolume
		if volume, found = m.volumes[key.Name]; found {
			volume.DeepCopyInto(into)
		}
	case *metav1.PartialObjectMetadata:
		var labels map[string]string
		if labels, found = m.namespaces[key.Name]; found {
			(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Labels: labels}}).DeepCopyInto(into)
		}
	case *storagev1.CSIDriver:
	}
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return nil
}

func (m *memory) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if list, ok := into.(*corev1.PersistentVolumeList); ok {
		list.Items = append([]corev1.PersistentVolume(nil), m.mirrors...)
	}
	return nil
}

// manyMirrors returns the cache of a cluster with so many mirrors of one origin.
func manyMirrors(n int) (*memory, reconcile.Request) {
	origin, data := shared()
	m := &memory{
		claims:     map[types.NamespacedName]*corev1.PersistentVolumeClaim{client.ObjectKeyFromObject(origin): origin},
		volumes:    map[string]*corev1.PersistentVolume{data.Name: data},
		namespaces: map[string]map[string]string{},
	}
	for i := range n {
		claim, volume := mirrorOf(i, origin, data)
		m.claims[client.ObjectKeyFromObject(claim)] = claim
		m.mirrors = append(m.mirrors, *volume)
		m.namespaces[claim.Namespace] = map[string]string{"team": "x", "kubernetes.io/metadata.name": claim.Namespace}
	}
	return m, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(origin)}
}

func (m *memory) reconciler(t testing.TB) *originReconciler {
	t.Helper()
	say, _ := heard(t, cluster(t))
	return &originReconciler{options: Options{Names: names}, cache: reader{m}, live: reader{m}, say: say, locks: newOriginLocks(), began: &beginning{}, losses: &losses{}}
}

func BenchmarkOrigin(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprintf("%d mirrors", n), func(b *testing.B) {
			m, request := manyMirrors(n)
			r := m.reconciler(b)
			for b.Loop() {
				if _, err := r.Reconcile(context.Background(), request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
