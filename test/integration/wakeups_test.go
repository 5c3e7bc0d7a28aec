package integration_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// What a claim waits for, and what ends the wait: each without touching the
// claim, and without waiting for any timer of the controller's.
var wakeups = []struct {
	name   string
	reason mirror.Reason
	// arrange returns a claim that is refused or waits, and what mends it.
	arrange func(s scene) (*corev1.PersistentVolumeClaim, func())
}{
	{"the origin appears", mirror.NotShared, func(s scene) (*corev1.PersistentVolumeClaim, func()) {
		later := origin{PersistentVolumeClaim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.owner, Name: "data"}}}
		return s.mirror(s.tenant, "m", later), func() { s.shared(nfsCSI) }
	}},
	{"the origin becomes bound", mirror.OriginPending, func(s scene) (*corev1.PersistentVolumeClaim, func()) {
		o := s.pendingOrigin(s.owner, "data", granting(tenantsOnly))
		return s.mirror(s.tenant, "m", o), func() { s.volumeFor(o.PersistentVolumeClaim, nfsCSI) }
	}},
	{"the owner grants", mirror.NotShared, func(s scene) (*corev1.PersistentVolumeClaim, func()) {
		o := s.origin(s.owner, "data")
		return s.mirror(s.tenant, "m", o), func() { s.grantTo(o.PersistentVolumeClaim, tenantsOnly) }
	}},
	{"the owner mends a broken grant", mirror.NotShared, func(s scene) (*corev1.PersistentVolumeClaim, func()) {
		o := s.origin(s.owner, "data", granting("type="+"tenant,,("))
		return s.mirror(s.tenant, "m", o), func() { s.grantTo(o.PersistentVolumeClaim, tenantsOnly) }
	}},
	{"the owner grants to write as well", mirror.GrantReadOnly, func(s scene) (*corev1.PersistentVolumeClaim, func()) {
		o := s.origin(s.owner, "data", annotating(names.ReadOnlyGrant(), tenantsOnly))
		return s.mirror(s.tenant, "m", o), func() { s.grantTo(o.PersistentVolumeClaim, tenantsOnly) }
	}},
	{"the namespace gets the label", mirror.NotShared, func(s scene) (*corev1.PersistentVolumeClaim, func()) {
		late := s.namespace("late", nil)
		return s.mirror(late, "m", s.shared(nfsCSI)), func() { s.label(late, "type", "tenant") }
	}},
	{"the namespace loses a label", mirror.NotShared, func(s scene) (*corev1.PersistentVolumeClaim, func()) {
		o := s.origin(s.owner, "data", granting(tenantsOnly+",!suspended"))
		late := s.namespace("late", map[string]string{"type": "tenant", "suspended": "yes"})
		return s.mirror(late, "m", o), func() { s.label(late, "suspended", "-") }
	}},
	{"the class appears", mirror.ClassNotFound, func(s scene) (*corev1.PersistentVolumeClaim, func()) {
		claim := s.mirror(s.tenant, "m", s.shared(nfsCSI), ofClass(s.prefix+"-late"), annotating(names.Origin(), s.owner+"/data"))
		return claim, func() { s.class("late") }
	}},
	{"the class forbids expansion", mirror.ClassAllowsExpansion, func(s scene) (*corev1.PersistentVolumeClaim, func()) {
		yes := true
		class := s.class("growing", func(c *storagev1.StorageClass) { c.AllowVolumeExpansion = &yes })
		return s.mirror(s.tenant, "m", s.shared(nfsCSI), ofClass(class.Name)), func() { s.merge(class, `{"allowVolumeExpansion":false}`) }
	}},
	{"the driver says that its volumes are not attached", mirror.DriverUnknown, func(s scene) (*corev1.PersistentVolumeClaim, func()) {
		name := s.prefix + ".example.com"
		return s.mirror(s.tenant, "m", s.shared(csiOf(name))), func() { s.driver(name, false) }
	}},
	{"the older mirror goes", mirror.DuplicateMirror, func(s scene) (*corev1.PersistentVolumeClaim, func()) {
		name := s.prefix + ".example.com"
		s.driver(name, false)
		o := s.shared(csiOf(name))
		older := s.mirror(s.tenant, "older", o)
		s.isBound(older)
		return s.mirror(s.tenant, "m", o), func() { s.must(s.Delete(s.Context(), older), "delete the older mirror") }
	}},
	{"the stranger's volume goes", mirror.VolumeNameTaken, func(s scene) (*corev1.PersistentVolumeClaim, func()) {
		o := s.origin(s.owner, "data")
		claim := s.mirror(s.tenant, "m", o)
		s.isRefused(claim, mirror.NotShared)
		stranger := s.stranger(claim)
		s.grantTo(o.PersistentVolumeClaim, tenantsOnly)
		return claim, func() { s.must(s.Delete(s.Context(), stranger), "delete the stranger's volume") }
	}},
	{"the reference is written", mirror.NoOrigin, func(s scene) (*corev1.PersistentVolumeClaim, func()) {
		claim := s.mirror(s.tenant, "m", s.shared(nfsCSI), withoutReference)
		return claim, func() { s.merge(claim, `{"metadata":{"annotations":{"`+names.Origin()+`":"`+s.owner+`/data"}}}`) }
	}},
}

// TestWakeups sees every kind of waiting claim refused first and bound as soon
// as what it lacked is there, with the condition True.
func TestWakeups(t *testing.T) {
	onEachGate(t, func(w *world) {
		t := w.T
		for _, tc := range wakeups {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				w := w.in(t)
				s := scene{world: w, owner: w.namespace("owner", nil), tenant: w.namespace("tenant", map[string]string{"type": "tenant"})}
				claim, mend := tc.arrange(s)
				s.isRefused(claim, tc.reason)
				mend()
				s.isBound(claim)
				s.isSaid(claim, corev1.ConditionTrue, mirror.Mirrored)
			})
		}
	})
}

// TestOnlyServedNamespaces sees an instance leave alone what its selector does
// not match, and take it on when it does.
func TestOnlyServedNamespaces(t *testing.T) {
	t.Parallel()
	plane := gateOn.plane.ForTest(t)
	w := newWorld(t, plane, true)
	own := install(t, plane, chartOptions("selective", map[string]any{
		"provisionerName":   "selective.example.com",
		"namespaceSelector": "served=yes",
		"class":             map[string]any{"name": w.prefix + "-selective"},
	}))
	own.replica(t, "selective-0").start(t)

	o := w.origin(w.namespace("owner", nil), "data", annotating("selective.example.com/required-target-ns-labels", tenantsOnly))
	served := w.namespace("served", map[string]string{"type": "tenant", "served": "yes"})
	unserved := w.namespace("unserved", map[string]string{"type": "tenant"})
	left := w.mirror(unserved, "m", o, ofClass(w.prefix+"-selective"))
	w.isBound(w.mirror(served, "m", o, ofClass(w.prefix+"-selective"))) // so the controller has seen both
	w.must(w.Get(w.Context(), keyOf(left), left), "get the claim")
	if left.Status.Phase == corev1.ClaimBound || len(w.events(left)) != 0 {
		t.Fatalf("a claim of a namespace that is not served was acted on:\n%s", w.show(left))
	}
	silent := w.mirror(unserved, "silent", o, ofClass(w.prefix+"-selective"), withoutReference)
	w.label(unserved, "served", "yes")
	w.isBound(left)
	w.until("a claim without reference is told so too", func(ctx context.Context) string {
		w.must(w.Get(ctx, keyOf(silent), silent), "get the claim")
		for _, condition := range silent.Status.Conditions {
			if condition.Type == "selective.example.com/Mirrored" && condition.Reason == string(mirror.NoOrigin) {
				return ""
			}
		}
		return "it is not"
	}, silent)
}

// TestBrokenGrantIsToldToItsOwner sees the owner told, once for each change.
func TestBrokenGrantIsToldToItsOwner(t *testing.T) {
	onEachGate(t, func(w *world) {
		t := w.T
		o := w.origin(w.namespace("owner", nil), "data", granting("!nobody"))
		told := func(text string) {
			t.Helper()
			w.until("the owner is told: "+text, func(context.Context) string {
				for _, event := range w.events(o.PersistentVolumeClaim) {
					if event.Reason == "GrantBroken" && contains(event.Note, text) {
						return ""
					}
				}
				return "no such event"
			}, o.PersistentVolumeClaim)
		}
		told("must not have")
		w.grantTo(o.PersistentVolumeClaim, "((")
		told("not a label selector")
		w.grantTo(o.PersistentVolumeClaim, "")
		told("is blank")
		if events := w.events(o.PersistentVolumeClaim); len(events) != 3 {
			t.Errorf("%d events for three changes:\n%s", len(events), w.show(o.PersistentVolumeClaim))
		}
	})
}

// TestTwoInstallations sees two installations of different names each keep its
// condition on a claim that asks both.
func TestTwoInstallations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gateOn.plane.ForTest(t), true)
	for _, name := range []string{"one", "two"} {
		own := install(t, w.plane, chartOptions(name, map[string]any{
			"provisionerName": name + ".example.com",
			"class":           map[string]any{"name": w.prefix + "-" + name},
		}))
		own.replica(t, name+"-0").start(t)
	}
	claim := w.claimOf(w.namespace("tenant", nil), "m", w.prefix+"-one")
	claim.Annotations = map[string]string{"one.example.com/origin": "nowhere/one", "two.example.com/origin": "nowhere/two"}
	w.must(w.Create(w.Context(), claim), "create a claim that asks both")
	both := func(ctx context.Context) string {
		w.must(w.Get(ctx, keyOf(claim), claim), "get the claim")
		said := map[string]string{}
		for _, condition := range claim.Status.Conditions {
			said[string(condition.Type)] = condition.Reason
		}
		return unless(said["one.example.com/Mirrored"] == string(mirror.NotShared) && said["two.example.com/Mirrored"] == string(mirror.ClassNotFound), fmt.Sprint(said))
	}
	w.until("both say why not", both, claim)
	w.merge(claim, `{"metadata":{"labels":{"look":"again"}}}`)
	w.origin(w.namespace("barrier", nil), "barrier")
	w.until("both still do", both, claim)

	// What somebody else wipes is said again.
	w.must(w.Status().Patch(w.Context(), claim, jsonMerge(`{"status":{"conditions":null}}`)), "wipe all conditions")
	w.until("both say it again", both, claim)
}
