package controller

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

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

// While its mirrors were looked at a moment ago, an origin that has thousands
// does not even list them for each of their changes; once they are none, it does
// not wait for that.
func TestManyMirrorsAreNotListedForEach(t *testing.T) {
	m, request := manyMirrors(50)
	listed := 0
	r := m.reconciler(t)
	r.cache = reader{listing{m, &listed}}
	for range 10 {
		if _, err := r.Reconcile(context.Background(), request); err != nil {
			t.Fatal(err)
		}
		r.pace.pause(request.NamespacedName, time.Minute, time.Now())
	}
	if want := 50 + 9; listed != want {
		t.Errorf("10 changes list %d volumes, want %d", listed, want)
	}
	m.mirrors = nil
	live := cluster(t, m.claims[request.NamespacedName].DeepCopy())
	r.live, r.write = reader{live}, writer{live, names}
	if _, err := r.Reconcile(context.Background(), request); err != nil {
		t.Fatal(err)
	}
	if left, err := r.live.claim(context.Background(), request.NamespacedName); err != nil || len(left.Finalizers) != 0 {
		t.Errorf("without mirrors the finalizers are %v (%v)", left.Finalizers, err)
	}
}

// listing counts the volumes that are listed, up to a limit.
type listing struct {
	*memory
	listed *int
}

func (c listing) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	var asked client.ListOptions
	asked.ApplyOptions(options)
	err := c.memory.List(ctx, into, options...)
	if list, ok := into.(*corev1.PersistentVolumeList); ok {
		if n := int(asked.Limit); n > 0 && len(list.Items) > n {
			list.Items = list.Items[:n]
		}
		*c.listed += len(list.Items)
	}
	return err
}
