package integration_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// TestRevocationOutlivesControllers ends grants in every way there is and then,
// before the delay is over, kills the controller, which starts again, or kills
// the one that leads, so that another takes the lead; and goes on, with the grant
// given again before the delay's end, or after it. Last, one is revoked while no
// controller runs. Every time the delay counts from the time that was recorded
// first, and each claim is deleted once.
func TestRevocationOutlivesControllers(t *testing.T) {
	t.Parallel()
	w, own, history := revocationWorld(t, controlplane.Options{Audit: controlplane.AuditMetadata})
	first, second := own.replica(t, "mooring-0").start(t), own.replica(t, "mooring-1")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the logs end:\n%s\n%s", first.LogTail(20), second.LogTail(20))
		}
	})
	deleted := 0
	t.Run("restarted", func(t *testing.T) {
		deleted += outlive(w.in(t), history, func() {
			noError(t, first.Kill(), "kill the controller")
			noError(t, first.Start(t.Context()), "start it again") // it waits for its own lease to run out
		})
	})
	second.start(t)
	t.Run("leader changed", func(t *testing.T) {
		deleted += outlive(w.in(t), history, func() {
			noError(t, first.Kill(), "kill the leader")
			w.in(t).until("the other leads", func(context.Context) string { return unless(second.leads(t), "it does not") })
		})
	})
	t.Run("none runs", func(t *testing.T) {
		r := arrangeRevocation(w.in(t), history)
		r.revokeAfter("1s")
		noError(t, second.Stop(t.Context()), "stop the last one")
		stopped := time.Now()
		r.label(r.tenant, "type", "-")
		noError(t, first.Start(t.Context()), "start the first again")
		r.isSaid(r.reported, corev1.ConditionFalse, mirror.NotShared)
		r.isGone(r.doomed)
		r.history.endedInTime(r.world, r.doomed, time.Second)
		r.isTold(r.PersistentVolumeClaim, "AccessEnded", r.tenant)
		if marks := history.marksOf(mirror.VolumeName(r.doomed.UID)); len(marks) != 1 || marks[0].Before(stopped) {
			t.Errorf("claim %s was said to be revoked since %v, and no controller ran until %v", r.doomed.Name, marks, stopped)
		}
		deleted++
	})
	// delayPasses lets one claim more end, where the grant came back in time.
	if n := own.done(t)["delete persistentvolumeclaims"]; n != deleted {
		t.Errorf("%d deletions for %d claims", n, deleted)
	}
}

// outlive revokes by every cause, interrupts, and goes on in each way; it returns
// how many claims were to be deleted.
func outlive(w *world, history *history, interrupt func()) (deleted int) {
	w.Helper()
	type cell struct {
		name  string
		cause cause
		r     *revocation
		goOn  func(*revocation, cause)
	}
	var cells []cell
	add := func(name string, cause cause, goOn func(*revocation, cause)) {
		r := arrangeRevocation(w.in(w.T), history)
		r.isRevoked(cause)
		cells = append(cells, cell{cause.name + "/" + name, cause, r, goOn})
	}
	for _, cause := range causes {
		if cause.grant != nil {
			add("granted again before the delay", cause, (*revocation).isWithdrawn)
		}
		add("not granted again before the delay", cause, (*revocation).isEnded)
	}
	since := map[string]time.Time{}
	for _, cell := range cells {
		for _, claim := range cell.r.both() {
			since[claim.Spec.VolumeName] = cell.r.revokedAt(claim)
		}
	}
	interrupt()
	w.Run("then", func(t *testing.T) {
		for _, cell := range cells {
			t.Run(cell.name, func(t *testing.T) {
				t.Parallel()
				cell.r.world = w.in(t)
				cell.r.isRevokedSince(cell.cause, since)
				cell.goOn(cell.r, cell.cause)
			})
		}
	})
	return len(cells) // one in each: doomed, or the last that shows that the delay is over
}

// isRevokedSince checks that the interruption has changed nothing: what was said
// is said still, with the time that was recorded before.
func (r *revocation) isRevokedSince(c cause, since map[string]time.Time) {
	r.Helper()
	for _, claim := range r.both() {
		r.isSaid(claim, corev1.ConditionFalse, c.reason)
		if at := r.revokedAt(claim); !at.Equal(since[claim.Spec.VolumeName]) {
			r.Errorf("claim %s is revoked since %v now, and was since %v", claim.Name, at, since[claim.Spec.VolumeName])
		}
	}
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
