package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// TestRevocationOutlivesControllers revokes mirrors before the controller is
// killed, before another takes the lead, and while none runs: every time the
// delay counts from the first time that was recorded, and each claim is deleted
// once.
func TestRevocationOutlivesControllers(t *testing.T) {
	t.Parallel()
	const delay = 3 * time.Second
	w, own, history := revocationWorld(t, controlplane.Options{Audit: controlplane.AuditMetadata})
	w.merge(w.chartClass(), fmt.Sprintf(`{"metadata":{"annotations":{%q:"Delete",%q:%q}}}`, names.OnRevoke(), names.RevokeAfter(), never))
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	first, second := own.replica(t, "mooring-0").start(t), own.replica(t, "mooring-1")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the logs end:\n%s\n%s", first.LogTail(20), second.LogTail(20))
		}
	})
	var all []*corev1.PersistentVolumeClaim
	revoke := func(name string) *corev1.PersistentVolumeClaim {
		tenant := w.namespace(name, map[string]string{"type": "tenant"})
		claim := w.mirror(tenant, name, o)
		w.isBound(claim)
		w.label(tenant, "type", "-")
		all = append(all, claim)
		return claim
	}
	setDelay := func(delay string) {
		w.merge(w.chartClass(), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, names.RevokeAfter(), delay))
	}

	// 1. Killed and started again, which waits for its own lease to run out.
	killed := revoke("killed")
	w.revokedAt(killed)
	w.must(first.Kill(), "kill the controller")
	// 2. Another is there first, and takes the lead.
	second.start(t)
	led := revokeWhileWaiting(w, revoke, second)
	w.must(first.Start(t.Context()), "start the first again")
	setDelay(delay.String())
	for _, claim := range []*corev1.PersistentVolumeClaim{killed, led} {
		w.isGone(claim)
		history.endedInTime(w, claim, delay)
	}

	// 3. Killed in the middle of the delay, and started again at once; the other
	// one leads then, or it does.
	setDelay(never)
	middle := revoke("middle")
	w.revokedAt(middle)
	w.must(second.Kill(), "kill the leader")
	setDelay(delay.String())
	w.isGone(middle)
	history.endedInTime(w, middle, delay)

	// 4. Revoked while none runs.
	tenant := w.namespace("alone", map[string]string{"type": "tenant"})
	alone := w.mirror(tenant, "alone", o)
	w.isBound(alone)
	all = append(all, alone)
	w.must(first.Stop(t.Context()), "stop the last one")
	stopped := time.Now()
	w.label(tenant, "type", "-")
	w.must(first.Start(t.Context()), "start it again")
	w.isSaid(alone, corev1.ConditionFalse, mirror.NotShared)
	w.isGone(alone)
	history.endedInTime(w, alone, delay)
	w.isTold(o.PersistentVolumeClaim, "AccessEnded", tenant)

	// Each has one time, and one deletion.
	for _, claim := range all {
		if marks := history.marksOf(mirror.VolumeName(claim.UID)); len(marks) != 1 || claim == alone && marks[0].Before(stopped) {
			t.Errorf("claim %s was said to be revoked since %v", claim.Name, marks)
		}
	}
	if n := own.writes(t)["delete persistentvolumeclaims"]; n != len(all) {
		t.Errorf("%d deletions for %d claims", n, len(all))
	}
}

// revokeWhileWaiting waits until a replica leads, which then revokes one more.
func revokeWhileWaiting(w *world, revoke func(string) *corev1.PersistentVolumeClaim, r *replica) *corev1.PersistentVolumeClaim {
	w.Helper()
	w.until("the other leads", func(context.Context) string {
		return unless(strings.Contains(r.metrics(w.T), `leader_election_master_status{name="mooring.pmp.crownlabs.polito.it"} 1`), "it does not")
	})
	claim := revoke("led")
	w.revokedAt(claim)
	return claim
}

// TestRevocationLatency measures how long after a change the claim's condition
// says so, and by how much the deletion is late; and prints it. It asserts that
// all is seen and nothing early, not how fast.
func TestRevocationLatency(t *testing.T) {
	const changes = 50
	w, own, history := revocationWorld(t, controlplane.Options{})
	own.replica(t, "mooring-0", "--leader-elect=false").start(t)
	w.merge(w.chartClass(), fmt.Sprintf(`{"metadata":{"annotations":{%q:"Delete",%q:%q}}}`, names.OnRevoke(), names.RevokeAfter(), never))
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
	claim := w.mirror(tenant, "m", o)
	w.isBound(claim)

	measure := func(what string, revoke, grant func()) {
		var took []time.Duration
		for i := range changes {
			status, change := corev1.ConditionFalse, revoke
			if i%2 == 1 {
				status, change = corev1.ConditionTrue, grant
			}
			began := time.Now()
			change()
			w.until("the condition is "+string(status), func(context.Context) string {
				return unless(!history.since(claim.UID, began, status).IsZero(), "it is not")
			}, claim)
			took = append(took, history.since(claim.UID, began, status).Sub(began))
		}
		report(t, what+" -> condition updated", took)
	}
	measure("namespace's label changed", func() { w.label(tenant, "type", "-") }, func() { w.label(tenant, "type", "tenant") })
	measure("origin's annotation changed",
		func() { w.grantTo(o.PersistentVolumeClaim, "type=other") }, func() { w.grantTo(o.PersistentVolumeClaim, tenantsOnly) })

	w.merge(w.chartClass(), fmt.Sprintf(`{"metadata":{"annotations":{%q:"2s"}}}`, names.RevokeAfter()))
	var late []time.Duration
	var claims []*corev1.PersistentVolumeClaim
	for i := range changes {
		other := w.namespace(fmt.Sprint("other", i), map[string]string{"type": "tenant"})
		claims = append(claims, w.mirror(other, "m", o))
		w.isBound(claims[i])
	}
	for _, claim := range claims {
		w.label(claim.Namespace, "type", "-")
		w.until("it is revoked", func(context.Context) string {
			return unless(len(history.marksOf(claim.Spec.VolumeName)) > 0, "it is not")
		}, claim)
	}
	for _, claim := range claims {
		late = append(late, history.endedInTime(w, claim, 2*time.Second))
	}
	report(t, "revoke-after elapsed -> deletionTimestamp seen", late)
	var events corev1.EventList
	w.must(w.List(w.Context(), &events, client.InNamespace(tenant)), "list events")
	t.Logf("%d changes of one claim's access: %d events", 2*changes, len(events.Items))
}

// report prints the middle, the ninth tenth and the worst.
func report(t *testing.T, what string, took []time.Duration) {
	t.Helper()
	slices.Sort(took)
	n := len(took)
	t.Logf("%s over %d changes: median %v, 90%% %v, worst %v (controller built with %q)",
		what, n, took[n/2].Round(time.Millisecond), took[n*9/10].Round(time.Millisecond), took[n-1].Round(time.Millisecond), raceFlags)
}
