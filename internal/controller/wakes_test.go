package controller

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// Of the many claims of a namespace that ask for one origin, the mirror of one
// of them, and its end, wake only who was told that it stands in the way.
func TestSiblingsThatDoNotCareSleep(t *testing.T) {
	origin, data := shared()
	objects := []client.Object{origin, data}
	told := map[string]mirror.Reason{"waits": mirror.DuplicateMirror, "too": mirror.DuplicateMirror, "stranger": mirror.NotShared, "fresh": ""}
	claim := func(name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: name, UID: types.UID(name),
			Annotations: map[string]string{names.Origin(): "drives/mydrive"}}}
	}
	for name, reason := range told {
		sibling := claim(name)
		if reason != "" {
			sibling.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimConditionType(names.Condition()),
				Status: corev1.ConditionFalse, Reason: string(reason)}}
		}
		objects = append(objects, sibling)
	}
	for i := range 100 {
		objects = append(objects, claim(fmt.Sprintf("m%d", i)))
	}
	made, volume := mirrorOf(1, origin, data)
	made.Namespace = "tenant"
	volume.Annotations[names.MirrorClaim()] = "tenant/" + made.Name
	w := waker{names: names, cache: reader{cluster(t, objects...)}}
	for what, woken := range map[string][]reconcile.Request{
		"its volume":      w.mirrorsOfVolume(context.Background(), volume),
		"the claim's end": w.siblings(context.Background(), made),
	} {
		var got []string
		for _, request := range woken {
			got = append(got, request.Name)
		}
		slices.Sort(got)
		if want := []string{"too", "waits"}; !slices.Equal(got, want) {
			t.Errorf("%s wakes %d claims %v, want %v", what, len(got), got, want)
		}
	}
}

// An origin whose finalizer was just put there is not looked at live once the
// cache shows the volume that it is for.
func TestNoLiveListForAFreshOrigin(t *testing.T) {
	origin, data := shared()
	_, volume := mirrorOf(1, origin, data)
	lists := 0
	live := interceptor.NewClient(cluster(t, origin, data, volume).(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			lists++
			return c.List(ctx, list, opts...)
		},
	})
	r := &originReconciler{options: Options{Names: names}, cache: reader{cluster(t, origin, data, volume)}, live: reader{live}, locks: newOriginLocks()}
	if _, err := r.letGo(context.Background(), client.ObjectKeyFromObject(origin)); err != nil || lists != 0 {
		t.Errorf("%d live lists, %v", lists, err)
	}
	r.cache = reader{cluster(t, origin, data)}
	if _, err := r.letGo(context.Background(), client.ObjectKeyFromObject(origin)); err != nil || lists != 1 {
		t.Errorf("while the cache does not show it: %d live lists, %v; want 1", lists, err)
	}
}
