package integration_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// TestToldAgain ends a grant, gives it again and ends it again: what is said twice in
// the same words is counted up, not said by another event.
func TestToldAgain(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		claim := w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o)
		w.isBound(claim)
		for range 2 {
			w.label(claim.Namespace, "type", "-")
			w.isSaid(claim, corev1.ConditionFalse, mirror.NotShared)
			w.label(claim.Namespace, "type", "tenant")
			w.isSaid(claim, corev1.ConditionTrue, mirror.Mirrored)
		}
		w.until("an event is counted up", func(context.Context) string {
			again := slices.ContainsFunc(w.events(claim), func(e eventsv1.Event) bool { return e.Series != nil })
			return unless(again, "none is")
		}, claim)
	})
}
