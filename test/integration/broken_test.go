package integration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// TestRecordBroken edits a record so that what the volume mirrors cannot be
// known: it is said, and nothing else is done, neither to the claim, nor to the
// volume, nor to the origin.
func TestRecordBroken(t *testing.T) {
	t.Parallel()
	for name, patch := range map[string]string{
		"edited": fmt.Sprintf(`{"metadata":{"annotations":{%q:"elsewhere/other",%q:%q}}}`, names.OriginClaim(), names.OriginVolumeUID(), aMirrorUID),
		"gone":   `{"metadata":{"annotations":null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			onEachGate(t, func(w *world) {
				o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
				claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o, withoutReference, byAnnotation(o))
				before := w.isBound(claim)
				w.merge(claim, fmt.Sprintf(`{"metadata":{"annotations":{%q:"elsewhere/another"}}}`, names.Origin()))
				w.saysAbout(claim, "ReferenceDrift", "elsewhere/another", o.Namespace+"/data")
				broken := before.DeepCopy()
				w.merge(broken, patch)
				w.isSaid(claim, corev1.ConditionFalse, mirror.RecordBroken)

				// The origin is deleted, and held all the same.
				w.must(w.Delete(w.Context(), o.PersistentVolumeClaim), "delete the origin")
				w.barrier(o)
				w.isHeld(o)
				after := &corev1.PersistentVolume{}
				w.must(w.Get(w.Context(), keyOf(before), after), "get the volume")
				if diff := cmp.Diff(withoutServerFields(broken.DeepCopy()), withoutServerFields(after)); diff != "" {
					w.Errorf("the volume was changed (-edited +now):\n%s", diff)
				}
				w.must(w.Get(w.Context(), keyOf(claim), claim), "get the claim")
				if claim.Status.Phase != corev1.ClaimBound || claim.DeletionTimestamp != nil || len(w.eventsAbout(claim, "RecordBroken")) != 1 {
					w.Errorf("the claim:\n%s", w.show(claim))
				}

				// The administrator looks at it, and removes the mirror.
				w.must(w.Delete(w.Context(), claim), "delete the claim")
				w.isGone(claim)
				if name == "gone" { // Mooring may be first
					w.must(client.IgnoreNotFound(w.Delete(w.Context(), after)), "delete the volume")
				}
				w.isGone(after)
				w.isGone(o.PersistentVolumeClaim)
			})
		})
	}
}

// TestRecordBrokenIsMended puts the annotations back by hand.
func TestRecordBrokenIsMended(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o, withoutReference, byAnnotation(o))
		volume := w.isBound(claim)
		w.merge(claim, fmt.Sprintf(`{"metadata":{"annotations":{%q:"elsewhere/another"}}}`, names.Origin()))
		w.merge(volume, fmt.Sprintf(`{"metadata":{"annotations":{%q:"elsewhere/other",%q:%q}}}`, names.OriginClaim(), names.OriginVolumeUID(), aMirrorUID))
		w.isSaid(claim, corev1.ConditionFalse, mirror.RecordBroken)
		w.merge(volume, fmt.Sprintf(`{"metadata":{"annotations":{%q:"%s/data"}}}`, names.OriginClaim(), o.Namespace))
		w.isSaid(claim, corev1.ConditionTrue, mirror.Mirrored)
	})
}

// barrier waits until the controller has looked at an origin and at what else
// was changed before: it has made another mirror meanwhile.
func (w *world) barrier(near origin) {
	w.Helper()
	n := worlds.Add(1)
	o := w.origin(near.Namespace, fmt.Sprintf("barrier%d", n), granting("barrier=yes"))
	w.isBound(w.mirror(w.namespace(fmt.Sprintf("barrier%d", n), map[string]string{"barrier": "yes"}), "m", o))
}

// isHeld checks that an origin exists and has the finalizer.
func (w *world) isHeld(o origin) {
	w.Helper()
	w.must(w.Get(w.Context(), keyOf(o), o.PersistentVolumeClaim), "get the origin")
	if !contains(strings.Join(o.Finalizers, " "), names.Finalizer()) {
		w.Errorf("the origin is not held:\n%s", w.show(o.PersistentVolumeClaim))
	}
}

// TestReferenceDrift edits the reference of a bound claim: it is told once for
// each change, neither followed nor a reason to take anything.
func TestReferenceDrift(t *testing.T) {
	onEachGate(t, func(w *world) {
		owner := w.namespace("owner", nil)
		o, other := w.origin(owner, "data", granting(tenantsOnly)), w.origin(owner, "other", granting(tenantsOnly))
		claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o, withoutReference, byAnnotation(o))
		before := w.isBound(claim)
		refer := func(to string) {
			w.Helper()
			w.merge(claim, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, names.Origin(), to))
		}
		refer(owner + "/other")
		w.saysAbout(claim, "ReferenceDrift", owner+"/other", owner+"/data")
		for i := range 3 { // looked at again, and silent
			w.merge(claim, fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, names.Provisioner()+"/look", i))
		}
		w.barrier(o)
		refer(owner + "/data")
		w.barrier(o)
		if told := w.eventsAbout(claim, "ReferenceDrift"); len(told) != 1 || told[0].Series != nil {
			w.Errorf("told %d times of one change:\n%s", len(told), w.show(claim))
		}
		after := &corev1.PersistentVolume{}
		w.must(w.Get(w.Context(), keyOf(before), after), "get the volume")
		if diff := cmp.Diff(withoutServerFields(before), withoutServerFields(after)); diff != "" {
			w.Errorf("the volume was changed (-before +after):\n%s", diff)
		}
		w.must(w.Get(w.Context(), keyOf(claim), claim), "get the claim")
		if condition := conditionOf(claim); condition.Type != "" {
			w.Errorf("it was told by a condition: %+v", condition)
		}
		w.must(w.Get(w.Context(), keyOf(other), other.PersistentVolumeClaim), "get the other origin")
		if contains(strings.Join(other.Finalizers, " "), names.Finalizer()) {
			w.Errorf("an origin without mirrors is held:\n%s", w.show(other.PersistentVolumeClaim))
		}
	})
}

// TestVolumeLost deletes the object of a bound mirror volume: the claim is told
// what to do, also when the object is gone by force, and what it is told helps.
// Finalizers of others stay where they are.
func TestVolumeLost(t *testing.T) {
	onEachGate(t, func(w *world) {
		const theirs = "example.com/theirs"
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		w.merge(o.PersistentVolumeClaim, fmt.Sprintf(`{"metadata":{"finalizers":["kubernetes.io/pvc-protection",%q]}}`, theirs))
		tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
		claim := w.mirror(tenant, "m", o)
		volume := w.isBound(claim)
		w.merge(volume, fmt.Sprintf(`{"metadata":{"finalizers":["kubernetes.io/pv-protection",%q]}}`, theirs))

		w.must(w.Delete(w.Context(), volume), "delete the volume")
		said := w.isSaid(claim, corev1.ConditionFalse, mirror.VolumeLost)
		if !contains(said.Message, "delete this claim") {
			w.Errorf("the remedy is not in %q", said.Message)
		}
		w.barrier(o)
		w.must(w.Get(w.Context(), keyOf(volume), volume), "get the volume")
		if got := strings.Join(volume.Finalizers, " "); got != "kubernetes.io/pv-protection "+theirs {
			w.Errorf("the volume's finalizers are %s", got)
		}
		w.merge(volume, `{"metadata":{"finalizers":null}}`)
		w.isGone(volume)
		w.until("the claim is Lost", func(ctx context.Context) string {
			w.must(w.Get(ctx, keyOf(claim), claim), "get the claim")
			return unless(claim.Status.Phase == corev1.ClaimLost, string(claim.Status.Phase))
		}, claim)
		w.isSaid(claim, corev1.ConditionFalse, mirror.VolumeLost)
		if told := w.eventsAbout(claim, string(mirror.VolumeLost)); len(told) != 1 {
			w.Errorf("told by %d events", len(told))
		}

		w.must(w.Delete(w.Context(), claim), "delete the claim")
		w.isGone(claim)
		again := w.mirror(tenant, "m", o)
		volume = w.isBound(again)
		w.must(w.Delete(w.Context(), again), "delete the claim")
		w.isGone(volume)
		w.until("the origin is let go, and others keep their finalizers", func(ctx context.Context) string {
			w.must(w.Get(ctx, keyOf(o), o.PersistentVolumeClaim), "get the origin")
			got := strings.Join(o.Finalizers, " ")
			return unless(got == "kubernetes.io/pvc-protection "+theirs, got)
		}, o.PersistentVolumeClaim)
		w.merge(o.PersistentVolumeClaim, `{"metadata":{"finalizers":null}}`)
	})
}
