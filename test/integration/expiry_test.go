package integration_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// expires writes when the origin's grants end, to the second as people do.
func (w *world) expires(origin *corev1.PersistentVolumeClaim, at time.Time) string {
	w.Helper()
	text := at.UTC().Format(time.RFC3339)
	w.merge(origin, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, names.GrantExpires(), text))
	return text
}

// saysUntil waits until the condition of a claim is True and names an end, or
// none.
func (w *world) saysUntil(claim *corev1.PersistentVolumeClaim, end string) {
	w.Helper()
	w.until("claim "+claim.Name+" says that access ends: "+end, func(ctx context.Context) string {
		w.must(w.Get(ctx, keyOf(claim), claim), "get the claim")
		said := conditionOf(claim)
		named := contains(said.Message, "until "+end+", when the grant ends")
		if end == "" {
			named = said.Message == "bound to its mirror volume"
		}
		return unless(said.Status == corev1.ConditionTrue && named, fmt.Sprintf("it says %q %q", said.Status, said.Message))
	}, claim)
}

// TestExpiry lets a grant end by itself: the claim says until when from the
// beginning, and is revoked then and not before. An end that is moved away, or
// taken away, in time ends nothing.
func TestExpiry(t *testing.T) {
	onEachGate(t, func(w *world) {
		tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
		owner := w.namespace("owner", nil)
		begin := func(name string) (origin, *corev1.PersistentVolumeClaim) {
			o := w.origin(owner, name, granting(tenantsOnly))
			claim := w.mirror(tenant, name, o)
			w.isBound(claim)
			return o, claim
		}
		endless, kept := begin("endless")
		extended, longer := begin("extended")
		ending, doomed := begin("ending")

		// An hour before: all say so. Nothing hangs on how fast this test is.
		soon := time.Now().Add(time.Hour)
		for _, o := range []origin{endless, extended, ending} {
			w.expires(o.PersistentVolumeClaim, soon)
		}
		for _, claim := range []*corev1.PersistentVolumeClaim{kept, longer, doomed} {
			w.saysUntil(claim, soon.UTC().Format(time.RFC3339))
		}
		w.merge(endless.PersistentVolumeClaim, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, names.GrantExpires()))
		w.saysUntil(kept, "")
		w.saysUntil(longer, w.expires(extended.PersistentVolumeClaim, soon.Add(time.Hour)))

		// By itself, without any change of anything.
		at := time.Now().Add(3 * time.Second).Truncate(time.Second)
		w.expires(ending.PersistentVolumeClaim, at)
		w.isSaid(doomed, corev1.ConditionFalse, mirror.NotShared)
		if revoked := w.revokedAt(doomed); revoked.Before(at) {
			w.Errorf("revoked at %v, before the grant's end at %v", revoked, at)
		}
		w.isTold(ending.PersistentVolumeClaim, "AccessEnded", "1 namespace lost access: "+tenant+" (the grant no longer matches them, or has ended)")
		for _, claim := range []*corev1.PersistentVolumeClaim{kept, longer} {
			w.lives(claim)
			if said := conditionOf(claim); said.Status != corev1.ConditionTrue {
				w.Errorf("a claim whose grant goes on says %q: %s", said.Status, said.Message)
			}
		}

		// A new claim is refused, and the old one is granted again.
		w.isRefused(w.mirror(tenant, "late", ending), mirror.NotShared)
		w.saysUntil(doomed, w.expires(ending.PersistentVolumeClaim, soon))
		w.isNotMarked(doomed)
	})
}
