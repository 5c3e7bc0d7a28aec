package controller

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// When a revocation is over, and when it goes on: by what is known for certain.
func TestRevocationIsOver(t *testing.T) {
	labels := map[string]string{"team": "x"}
	for _, tc := range []struct {
		name   string
		labels map[string]string // nil: no such namespace
		change func(origin *corev1.PersistentVolumeClaim, data *corev1.PersistentVolume)
		over   bool
		reason mirror.Reason
	}{
		{"granted again", labels, func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {}, true, mirror.Mirrored},
		{"granted again, and the origin is pending", labels, func(o *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			o.Status.Phase = corev1.ClaimPending
		}, true, mirror.OriginPending},
		{"granted again, and the origin's binding is broken", labels, func(_ *corev1.PersistentVolumeClaim, d *corev1.PersistentVolume) {
			d.Spec.ClaimRef = nil
		}, true, mirror.OriginBindingBroken},
		{"not granted", labels, func(o *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { o.Annotations = nil }, false, mirror.NotShared},
		{"not granted, and the origin is pending", labels, func(o *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			o.Annotations, o.Status.Phase = nil, corev1.ClaimPending
		}, false, mirror.NotShared},
		{"nobody knows the namespace's labels", nil, func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {}, false, mirror.NotShared},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx := context.Background()
			origin, data := shared()
			claim, volume := mirrorOf(1, origin, data)
			volume.Annotations[names.RevokedAt()] = time.Now().Add(-time.Hour).Format(time.RFC3339)
			volume.Annotations[names.ServedBy()] = "lab"
			claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
				Type: corev1.PersistentVolumeClaimConditionType(names.Condition()), Status: corev1.ConditionFalse, Reason: "Before",
			}}
			tc.change(origin, data)
			objects := []client.Object{origin, data, claim, volume}
			if tc.labels != nil {
				objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: claim.Namespace, Labels: tc.labels}})
			}
			in := cluster(t, objects...)
			say, _ := heard(t, in)
			r := &claimReconciler{losses: &losses{}, options: Options{Names: names, Instance: "lab"}, cache: reader{in}, live: reader{in},
				write: writer{in, names}, say: say, locks: newOriginLocks(), metrics: say.metrics, began: &beginning{}}
			if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(claim)}); err != nil {
				t.Fatal(err)
			}
			if err := in.Get(ctx, client.ObjectKeyFromObject(volume), volume); err != nil {
				t.Fatal(err)
			}
			if over := mirror.RecordOf(names, volume).RevokedAt.IsZero(); over != tc.over {
				t.Errorf("the revocation is over: %v, want %v", over, tc.over)
			}
			if err := in.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			if condition := conditionOf(names, claim); condition == nil || condition.Reason != string(tc.reason) {
				t.Errorf("the condition is %+v, want %s", condition, tc.reason)
			}
		})
	}
}
