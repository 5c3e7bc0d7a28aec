package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Each row changes one thing; a predicate lets pass what a decision reads, and
// nothing else, so that an idle cluster stays idle.

type update[T any] struct {
	name   string
	change func(T)
	passes bool
}

func checkUpdates[T client.Object](t *testing.T, p predicate.Predicate, object func() T, rows []update[T]) {
	t.Helper()
	for _, tc := range rows {
		t.Run(tc.name, func(t *testing.T) {
			after := object()
			tc.change(after)
			if got := p.Update(event.UpdateEvent{ObjectOld: object(), ObjectNew: after}); got != tc.passes {
				t.Errorf("passes: %v, want %v", got, tc.passes)
			}
		})
	}
}

func someClaim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "drives", Name: "mydrive", UID: "u", Annotations: map[string]string{names.ReadWriteGrant(): "a=b"}},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "v"},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
}

type claimUpdate = update[*corev1.PersistentVolumeClaim]

func TestClaimAsOriginChanged(t *testing.T) {
	p := claimAsOriginChanged(names)
	checkUpdates(t, p, someClaim, []claimUpdate{
		{"nothing", func(*corev1.PersistentVolumeClaim) {}, false},
		{"a label", func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} }, false},
		{"another annotation", func(c *corev1.PersistentVolumeClaim) { c.Annotations["note"] = "x" }, false},
		{"a finalizer", func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"x"} }, false},
		{"its resource version", func(c *corev1.PersistentVolumeClaim) { c.ResourceVersion = "9" }, false},
		{"the grant", func(c *corev1.PersistentVolumeClaim) { c.Annotations[names.ReadWriteGrant()] = "a=c" }, true},
		{"the grant taken away", func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, names.ReadWriteGrant()) }, true},
		{"the grant blanked", func(c *corev1.PersistentVolumeClaim) { c.Annotations[names.ReadWriteGrant()] = "" }, true},
		{"a blank grant added", func(c *corev1.PersistentVolumeClaim) { c.Annotations[names.ReadOnlyGrant()] = "" }, true},
		{"the end", func(c *corev1.PersistentVolumeClaim) { c.Annotations[names.GrantExpires()] = "soon" }, true},
		{"the phase", func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }, true},
		{"the volume", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "w" }, true},
		{"its deletion", func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		{"replaced by another", func(c *corev1.PersistentVolumeClaim) { c.UID = "w" }, true},
	})
	if !p.Create(event.CreateEvent{Object: someClaim()}) || !p.Delete(event.DeleteEvent{Object: someClaim()}) {
		t.Error("an origin that comes or goes must wake")
	}
}

func TestGone(t *testing.T) {
	p := gone(names)
	checkUpdates(t, p, someClaim, []claimUpdate{
		{"nothing", func(*corev1.PersistentVolumeClaim) {}, false},
		{"the phase", func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }, false},
		{"another origin", func(c *corev1.PersistentVolumeClaim) { c.Annotations[names.Origin()] = "x/y" }, true},
		{"replaced by another", func(c *corev1.PersistentVolumeClaim) { c.UID = "w" }, true},
	})
	if p.Create(event.CreateEvent{Object: someClaim()}) {
		t.Error("a claim that comes makes no room for another")
	}
	if !p.Delete(event.DeleteEvent{Object: someClaim()}) {
		t.Error("a claim that goes makes room for another")
	}
}

func TestConcernsOrigins(t *testing.T) {
	p := concernsOrigins(names)
	held := func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{names.Finalizer()} }
	broken := func(c *corev1.PersistentVolumeClaim) { c.Annotations[names.ReadWriteGrant()] = "((" }
	checkUpdates(t, p, someClaim, []claimUpdate{
		{"a sound grant without mirrors", func(*corev1.PersistentVolumeClaim) {}, false},
		{"has the finalizer", held, true},
		{"has a broken grant", broken, true},
	})
	for name, change := range map[string]func(*corev1.PersistentVolumeClaim){"finalizer": held, "broken grant": broken} {
		before := someClaim()
		change(before)
		if !p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: someClaim()}) {
			t.Errorf("a claim that lost its %s must wake", name)
		}
		if !p.Create(event.CreateEvent{Object: before}) || !p.Delete(event.DeleteEvent{Object: before}) {
			t.Errorf("a claim with a %s that comes or goes must wake", name)
		}
	}
	if p.Create(event.CreateEvent{Object: someClaim()}) || p.Delete(event.DeleteEvent{Object: someClaim()}) {
		t.Error("a claim that concerns no mirror must not wake")
	}
}

func TestVolumeAsOriginChanged(t *testing.T) {
	volume := func() *corev1.PersistentVolume {
		return &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "u", Annotations: map[string]string{"a": "b"}},
			Spec: corev1.PersistentVolumeSpec{
				ClaimRef: &corev1.ObjectReference{Name: "c"},
				Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		}
	}
	checkUpdates(t, volumeAsOriginChanged(), volume, []update[*corev1.PersistentVolume]{
		{"nothing", func(*corev1.PersistentVolume) {}, false},
		{"its status", func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound }, false},
		{"its resource version", func(v *corev1.PersistentVolume) { v.ResourceVersion = "9" }, false},
		{"the same capacity, written otherwise", func(v *corev1.PersistentVolume) {
			v.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("1024Mi")
		}, false},
		{"its capacity", func(v *corev1.PersistentVolume) { v.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("2Gi") }, true},
		{"its claimRef", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }, true},
		{"the label of its origin", func(v *corev1.PersistentVolume) { v.Labels = map[string]string{names.OriginLabel(): "x"} }, true},
		{"its record", func(v *corev1.PersistentVolume) { v.Annotations[names.MirrorClaimUID()] = "u" }, true},
		{"its deletion", func(v *corev1.PersistentVolume) { v.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		{"replaced by another", func(v *corev1.PersistentVolume) { v.UID = types.UID("w") }, true},
	})
}

func TestClassAndLabelsChanged(t *testing.T) {
	class := func() *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "pvc-mirror", UID: "u"}}
	}
	checkUpdates(t, classChanged(), class, []update[*storagev1.StorageClass]{
		{"nothing", func(*storagev1.StorageClass) {}, false},
		{"a label", func(c *storagev1.StorageClass) { c.Labels = map[string]string{"a": "b"} }, false},
		{"what is done on a revocation", func(c *storagev1.StorageClass) { c.Annotations = map[string]string{names.OnRevoke(): "Delete"} }, true},
		{"it allows expansion now", func(c *storagev1.StorageClass) { c.AllowVolumeExpansion = ptr.To(true) }, true},
		{"replaced by another", func(c *storagev1.StorageClass) { c.UID = "w" }, true},
	})
	checkUpdates(t, labelsChanged(), newNamespace, []update[*metav1.PartialObjectMetadata]{
		{"nothing", func(*metav1.PartialObjectMetadata) {}, false},
		{"an annotation", func(n *metav1.PartialObjectMetadata) { n.Annotations = map[string]string{"a": "b"} }, false},
		{"a label", func(n *metav1.PartialObjectMetadata) { n.Labels = map[string]string{"a": "b"} }, true},
	})
}
