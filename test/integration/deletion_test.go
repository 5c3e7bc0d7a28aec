package integration_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// allowing is a patch of the annotation by which an owner lets an origin go.
func allowing(value string) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, names.AllowDeletion(), value)
}

// isReleased checks a mirror volume after its origin was let go.
func (w *world) isReleased(volume *corev1.PersistentVolume) {
	w.Helper()
	w.must(w.Get(w.Context(), keyOf(volume), volume), "get the mirror volume")
	if volume.Annotations[names.OriginReleasedAt()] == "" || volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || volume.DeletionTimestamp != nil {
		w.Errorf("the origin was let go, and a mirror volume is:\n%s", w.show(volume))
	}
}

// isHeldAndTold waits until the deletion of an origin is told as held.
func (w *world) isHeldAndTold(o origin, texts ...string) {
	w.Helper()
	told := w.saysAbout(o.PersistentVolumeClaim, "DeletionHeld", append(texts, "mirror claims go", names.AllowDeletion()+`: "true"`)...)
	if len(told.Note) > 1024 {
		w.Errorf("the event has %d bytes", len(told.Note))
	}
	w.isHeld(o)
}

// TestOriginDeletionWithoutMirrors deletes origins that nobody mirrors, or does
// any more: they go.
func TestOriginDeletionWithoutMirrors(t *testing.T) {
	onEachGate(t, func(w *world) {
		owner := w.namespace("owner", nil)
		never, once := w.origin(owner, "never", granting(tenantsOnly)), w.origin(owner, "once", granting(tenantsOnly))
		claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", once)
		volume := w.isBound(claim)
		w.must(w.Delete(w.Context(), claim), "delete the mirror")
		w.isGone(volume)
		for _, o := range []origin{never, once} {
			w.must(w.Delete(w.Context(), o.PersistentVolumeClaim), "delete the origin")
			w.isGone(o.PersistentVolumeClaim)
		}
	})
}

// TestOriginDeletionIsHeld deletes an origin with one mirror: it is held and told
// once, no new mirror is made, the mirror's owner is told, and nothing but the
// one word of its owner, or the end of the mirror, lets it go.
func TestOriginDeletionIsHeld(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{false, true} {
		t.Run(fmt.Sprintf("allowed=%v", allowed), func(t *testing.T) {
			onEachGate(t, func(w *world) {
				o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
				tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
				claim := w.mirror(tenant, "m", o)
				volume := w.isBound(claim)

				// Allowed, and not deleted: nothing happens.
				w.merge(o.PersistentVolumeClaim, allowing("true"))
				w.barrier(o)
				w.isHeld(o)
				w.merge(o.PersistentVolumeClaim, allowing("false"))

				w.must(w.Delete(w.Context(), o.PersistentVolumeClaim), "delete the origin")
				w.isHeldAndTold(o, "1 namespace mirrors it", tenant)
				w.isSaid(claim, corev1.ConditionFalse, mirror.OriginTerminating)
				w.isRefused(w.mirror(tenant, "late", o), mirror.OriginTerminating)
				for _, value := range []string{"True", "yes", "1", " true", ""} {
					w.merge(o.PersistentVolumeClaim, allowing(value))
				}
				w.barrier(o)
				w.isHeld(o)
				if told := w.eventsAbout(o.PersistentVolumeClaim, "DeletionHeld"); len(told) != 1 || told[0].Series != nil {
					w.Errorf("told %d times:\n%s", len(told), w.show(o.PersistentVolumeClaim))
				}
				if !allowed {
					w.must(w.Delete(w.Context(), claim), "delete the mirror")
					w.isGone(volume)
					w.isGone(o.PersistentVolumeClaim)
					return
				}
				w.merge(o.PersistentVolumeClaim, allowing("true"))
				gone := o.DeepCopy()
				w.isGone(o.PersistentVolumeClaim)
				w.saysAbout(gone, "DeletionAllowed", "1 namespace mirrors it", tenant)
				w.isReleased(volume)
				w.isSaid(claim, corev1.ConditionFalse, mirror.NotShared)
				if claim.Status.Phase != corev1.ClaimBound || claim.DeletionTimestamp != nil {
					w.Errorf("the mirror:\n%s", w.show(claim))
				}
			})
		})
	}
}

// TestOriginDeletionEndsMirrors deletes an origin whose mirrors are of a class
// that says Delete, then one with 500 mirrors: the few are ended after the delay
// and the origin goes; the many are held, and the event about them has a count,
// ten names and both remedies; their owner lets it go all the same.
func TestOriginDeletionEndsMirrors(t *testing.T) {
	t.Parallel()
	plane := ownPlane(t, controlplane.Options{CrossNamespace: true})
	w := newWorld(t, plane, true)
	install(t, plane, chart.Options{Values: map[string]any{"allowClaimDeletion": true}}).replica(t, "mooring-0").start(t)
	ending := w.class("ending", func(c *storagev1.StorageClass) {
		c.Annotations = map[string]string{names.OnRevoke(): "Delete", names.RevokeAfter(): "1s"}
	})
	owner := w.namespace("owner", nil)
	few, many := w.origin(owner, "few", granting(tenantsOnly)), w.origin(owner, "many", granting(tenantsOnly))

	tenants := w.tenants()
	var mirrors []*corev1.PersistentVolumeClaim
	for _, tenant := range tenants[:5] {
		mirrors = append(mirrors, w.mirror(tenant, "m", few, ofClass(ending.Name)))
	}
	for _, claim := range mirrors {
		w.isBound(claim)
	}
	w.must(w.Delete(w.Context(), few.PersistentVolumeClaim), "delete the origin")
	for _, claim := range mirrors {
		w.isGone(claim)
	}
	w.isGone(few.PersistentVolumeClaim)

	for i := range 40 {
		tenants = append(tenants, w.namespace(fmt.Sprintf("more%d", i), map[string]string{"type": "tenant"}))
	}
	claims := w.crowd(many, 500, tenants)
	claims.areBound(w)
	slices.Sort(tenants)
	w.must(w.Delete(w.Context(), many.PersistentVolumeClaim), "delete the origin")
	w.isHeldAndTold(many, append([]string{"50 namespaces mirror it"}, tenants[:10]...)...)
	w.isRefused(w.mirror(tenants[0], "late", many), mirror.OriginTerminating)
	claims.areSaid(w, mirror.OriginTerminating)
	w.isHeld(many)
	if told := w.eventsAbout(many.PersistentVolumeClaim, "DeletionHeld"); len(told) != 1 {
		t.Errorf("told %d times:\n%s", len(told), w.show(many.PersistentVolumeClaim))
	}
	gone := many.DeepCopy()
	w.merge(many.PersistentVolumeClaim, allowing("true"))
	w.isGone(many.PersistentVolumeClaim)
	w.saysAbout(gone, "DeletionAllowed", "50 namespaces mirror it")
	claims.areSaid(w, mirror.NotShared)
	for _, claim := range claims.claims {
		w.isReleased(mirrorVolume(claim))
	}
}

// areSaid waits until all claims have a condition of a reason, and are bound.
func (c *crowd) areSaid(w *world, reason mirror.Reason) {
	w.Helper()
	crowd := map[types.UID]bool{}
	for _, claim := range c.claims {
		crowd[claim.UID] = true
	}
	w.until("all are told "+string(reason), func(ctx context.Context) string {
		var all corev1.PersistentVolumeClaimList
		w.must(w.List(ctx, &all), "list claims")
		told := 0
		for i := range all.Items {
			claim := &all.Items[i]
			if crowd[claim.UID] && conditionOf(claim).Reason == string(reason) && claim.Status.Phase == corev1.ClaimBound && claim.DeletionTimestamp == nil {
				told++
			}
		}
		return unless(told == len(crowd), fmt.Sprintf("%d are", told))
	})
}

// deleteNamespace deletes a namespace and returns it.
func (w *world) deleteNamespace(name string) *corev1.Namespace {
	w.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.must(w.Get(w.Context(), keyOf(namespace), namespace), "get the namespace")
	w.must(w.Delete(w.Context(), namespace), "delete the namespace")
	return namespace
}

// TestNamespacesOfBothSides deletes the namespaces of an origin and of its mirror
// in every order, with the real namespace controller.
func TestNamespacesOfBothSides(t *testing.T) {
	onEachGate(t, func(w *world) {
		t := w.T
		for name, run := range map[string]func(w *world, o origin, claim *corev1.PersistentVolumeClaim){
			"the mirror's": func(w *world, o origin, claim *corev1.PersistentVolumeClaim) {
				w.isGone(w.deleteNamespace(claim.Namespace))
				w.until("the origin is let go", func(ctx context.Context) string {
					w.must(w.Get(ctx, keyOf(o), o.PersistentVolumeClaim), "get the origin")
					return unless(!slices.Contains(o.Finalizers, names.Finalizer()), "it is held")
				}, o.PersistentVolumeClaim)
			},
			"the origin's": func(w *world, o origin, claim *corev1.PersistentVolumeClaim) {
				owner := w.deleteNamespace(o.Namespace)
				w.isHeldNamespace(owner, o, claim)
				w.must(w.Delete(w.Context(), claim), "delete the mirror")
				w.isGone(owner)
			},
			"the origin, then its namespace, then the mirror's": func(w *world, o origin, claim *corev1.PersistentVolumeClaim) {
				w.must(w.Delete(w.Context(), o.PersistentVolumeClaim), "delete the origin")
				w.saysAbout(o.PersistentVolumeClaim, "DeletionHeld", claim.Namespace)
				owner := w.deleteNamespace(o.Namespace)
				w.isHeldNamespace(owner, o, claim)
				tenant := w.deleteNamespace(claim.Namespace)
				w.isGone(tenant)
				w.isGone(owner)
			},
			"both at once": func(w *world, o origin, claim *corev1.PersistentVolumeClaim) {
				owner, tenant := w.deleteNamespace(o.Namespace), w.deleteNamespace(claim.Namespace)
				w.isGone(tenant)
				w.isGone(owner)
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := w.in(t)
				o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
				claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
				volume := w.isBound(claim)
				run(w, o, claim)
				w.isGone(volume)
			})
		}
	})
}

// isHeldNamespace waits until a namespace that is being deleted says that it is
// held, and by whom; its origin and the mirror are there.
func (w *world) isHeldNamespace(owner *corev1.Namespace, o origin, claim *corev1.PersistentVolumeClaim) {
	w.Helper()
	w.saysAbout(owner, "DeletionHeld", o.Name, claim.Namespace, names.AllowDeletion())
	w.until("the namespace says what holds it", func(ctx context.Context) string {
		w.must(w.Get(ctx, client.ObjectKeyFromObject(owner), owner), "get the namespace")
		for _, condition := range owner.Status.Conditions {
			if condition.Type == corev1.NamespaceFinalizersRemaining && condition.Status == corev1.ConditionTrue && contains(condition.Message, names.Finalizer()) {
				return ""
			}
		}
		return fmt.Sprintf("%+v", owner.Status.Conditions)
	}, owner)
	w.isHeld(o)
	w.isSaid(claim, corev1.ConditionFalse, mirror.OriginTerminating)
}
