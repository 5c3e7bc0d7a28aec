package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// A restored claim names the volume of a claim that is no more: one that the
// cache still shows is asked for live. Were it believed, the volume that was
// just given back would be taken from the claim as one that it may not name.
func TestFormerName(t *testing.T) {
	const old = types.UID("6f7a8e02-1b43-49e9-a516-121c159a2e19")
	claim := func(uid types.UID, name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: uid}}
	}
	restored := claim("new", "m")
	restored.Spec.VolumeName = mirror.VolumeName(old)
	for _, tc := range []struct {
		name         string
		cached, live []client.Object
		want         bool
	}{
		{"nobody has it", nil, nil, true},
		{"a claim that lives", []client.Object{claim(old, "other")}, []client.Object{claim(old, "other")}, false},
		{"a claim that is just gone", []client.Object{claim(old, "other")}, nil, true},
		{"a claim of the name, replaced", []client.Object{claim(old, "m")}, []client.Object{restored.DeepCopy()}, true},
		{"a claim that the cache does not know", nil, []client.Object{claim(old, "other")}, true}, // nobody can know its UID before
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &claimReconciler{cache: reader{cluster(t, tc.cached...)}, live: reader{cluster(t, tc.live...)}}
			got, err := r.isFormerName(t.Context(), restored)
			if err != nil || got != tc.want {
				t.Errorf("got %v, %v; want %v", got, err, tc.want)
			}
		})
	}
	r := &claimReconciler{cache: reader{cluster(t)}, live: reader{cluster(t)}}
	if got, err := r.isFormerName(t.Context(), claim("new", "m")); got || err != nil {
		t.Errorf("a claim that names no volume: %v, %v", got, err)
	}
}
