package controller

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// What the cache knows may be old: a mirror is made only if its origin is, at the
// time of the write that puts the finalizer on it, as it was decided upon.
func TestStaleOriginIsNotBelieved(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(origin *corev1.PersistentVolumeClaim) // since the cache saw it
		gone   bool
		want   mirror.Reason // "" for a mirror volume
	}{
		{name: "nothing"},
		{name: "something else", change: func(o *corev1.PersistentVolumeClaim) { o.Labels = map[string]string{"color": "red"} }},
		{name: "a finalizer of others", change: func(o *corev1.PersistentVolumeClaim) { o.Finalizers = []string{"example.com/mine"} }},
		{name: "the grant is removed", change: func(o *corev1.PersistentVolumeClaim) { o.Annotations = nil }, want: mirror.NotShared},
		{name: "the grant is narrowed", change: func(o *corev1.PersistentVolumeClaim) { o.Annotations[names.ReadWriteGrant()] = "team=b" }, want: mirror.NotShared},
		{name: "the grant expired", change: func(o *corev1.PersistentVolumeClaim) {
			o.Annotations[names.GrantExpires()] = "2020-01-01T00:00:00Z"
		}, want: mirror.NotShared},
		{name: "another of its name", change: func(o *corev1.PersistentVolumeClaim) { o.UID, o.Spec.VolumeName = "o2", "another" }, want: mirror.OriginPending},
		{name: "gone", gone: true, want: mirror.NotShared},
	} {
		t.Run(tc.name, func(t *testing.T) {
			origin, data, claim, class, namespace := firstMirror()
			in := cluster(t, origin, data, claim, class, namespace)
			cached := cluster(t, origin.DeepCopy(), data, claim, class, namespace)
			switch {
			case tc.gone:
				mustDo(t, in.Delete(t.Context(), origin))
			case tc.change != nil:
				origin = getOrigin(t, in)
				tc.change(origin)
				mustDo(t, in.Update(t.Context(), origin))
			}
			r := claimReconcilerOf(t, cached, in)
			facts, err := r.facts(t.Context(), r.cache, claim)
			mustDo(t, err)
			if _, err := r.provision(t.Context(), facts); err != nil {
				t.Fatal(err)
			}

			var volumes corev1.PersistentVolumeList
			mustDo(t, in.List(t.Context(), &volumes, client.HasLabels{names.OriginLabel()}))
			mustDo(t, in.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
			condition := conditionOf(names, claim)
			switch {
			case tc.want == "" && (len(volumes.Items) != 1 || !r.holds(getOrigin(t, in))):
				t.Errorf("%d mirror volumes, the origin's finalizers %v: want one, and Mooring's", len(volumes.Items), getOrigin(t, in).Finalizers)
			case tc.want != "" && (len(volumes.Items) != 0 || condition == nil || condition.Reason != string(tc.want)):
				t.Errorf("%d mirror volumes, the condition is %+v: want none, and %s", len(volumes.Items), condition, tc.want)
			}
		})
	}
}

// A mirror of an origin that has none yet costs two reads beside its writes: the
// namespace, and the origin once more when its volume is there.
func TestReadsOfTheFirstMirror(t *testing.T) {
	origin, data, claim, class, namespace := firstMirror()
	in := cluster(t, origin, data, claim, class, namespace)
	var reads []string
	counting := interceptor.NewClient(in.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, in client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			reads = append(reads, key.String())
			return in.Get(ctx, key, object, options...)
		},
	})
	r := claimReconcilerOf(t, in, counting)
	facts, err := r.facts(t.Context(), r.cache, claim)
	mustDo(t, err)
	decision, err := r.decideLive(t.Context(), &facts)
	mustDo(t, err)
	if decision.Verdict != mirror.Allow {
		t.Fatalf("decided %+v, want a yes", decision)
	}
	if want := "/" + claim.Namespace; len(reads) != 1 || reads[0] != want {
		t.Errorf("reads for the decision: %q, want %q alone", reads, want)
	}
}

// Mirrors of one origin that are asked for while the cache does not show its
// finalizer yet write it once, and do not try it in vain.
func TestFinalizerIsWrittenOnce(t *testing.T) {
	origin, data, claim, class, namespace := firstMirror()
	in := cluster(t, origin, data, claim, class, namespace)
	cached := cluster(t, origin.DeepCopy(), data, claim, class, namespace)
	writes := 0
	counting := interceptor.NewClient(in.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, in client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			writes++
			return in.Patch(ctx, object, patch, options...)
		},
	})
	r := claimReconcilerOf(t, cached, counting)
	for range 3 {
		facts, err := r.facts(t.Context(), r.cache, claim)
		mustDo(t, err)
		decision, err := r.decideLive(t.Context(), &facts)
		mustDo(t, err)
		if decision.Verdict != mirror.Allow {
			t.Fatalf("decided %+v, want a yes", decision)
		}
	}
	if writes != 1 || !r.holds(getOrigin(t, in)) {
		t.Errorf("%d writes, the finalizers are %v: want one write, and Mooring's", writes, getOrigin(t, in).Finalizers)
	}
}

// firstMirror returns an origin without Mooring's finalizer, its volume, a claim
// that is granted it and waits, and what that rests on.
func firstMirror() (origin *corev1.PersistentVolumeClaim, data *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, namespace *corev1.Namespace) {
	origin, data = shared()
	origin.Finalizers = nil
	data.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	origin.Spec.Resources.Requests, origin.Status.Capacity = data.Spec.Capacity, data.Spec.Capacity
	claim, _ = mirrorOf(1, origin, data)
	claim.Spec.VolumeName, claim.Status.Phase = "", corev1.ClaimPending
	claim.Spec.StorageClassName = ptr.To("mirror")
	claim.Spec.Resources.Requests = data.Spec.Capacity
	class = &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "mirror"}, Provisioner: names.Provisioner()}
	namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: claim.Namespace, Labels: map[string]string{"team": "a"}}}
	return origin, data, claim, class, namespace
}

func claimReconcilerOf(t *testing.T, cached, live client.Client) *claimReconciler {
	t.Helper()
	say, _ := heard(t, live)
	return &claimReconciler{losses: &losses{}, options: Options{Names: names, Instance: "lab"}, cache: reader{cached}, live: reader{live},
		write: writer{live, names}, say: say, locks: newOriginLocks(), metrics: say.metrics, began: &beginning{}}
}

func getOrigin(t *testing.T, in client.Client) *corev1.PersistentVolumeClaim {
	t.Helper()
	var origin corev1.PersistentVolumeClaim
	mustDo(t, in.Get(t.Context(), types.NamespacedName{Namespace: "drives", Name: "mydrive"}, &origin))
	return &origin
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
