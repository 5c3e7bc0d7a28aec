package integration_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

var manyMirrors = flag.Int("mirrors", 1000, "how many mirrors lose their grant at once in TestBrakeHoldsThousands")

// brakeWorld is a plane whose class deletes claims a second after their grant
// has ended.
func brakeWorld(t *testing.T, maxRevocations string) (*world, *installation, *history) {
	t.Helper()
	plane := ownPlane(t, controlplane.Options{CrossNamespace: true})
	own := install(t, plane, chartOptions("mooring", map[string]any{
		"maxRevocations": maxRevocations,
		"class":          map[string]any{"onRevoke": "Delete", "revokeAfter": "1s"},
	}))
	w := newWorld(t, plane, true)
	return w, own, w.watchHistory()
}

// wave is a number of mirrors, each of a namespace of its own or some of one.
type wave struct {
	namespaces []string
	claims     []*corev1.PersistentVolumeClaim
}

// wave creates mirrors of an origin, and waits until they are bound.
func (w *world) wave(name string, o origin, namespaces, perNamespace int) wave {
	w.Helper()
	made := wave{namespaces: make([]string, namespaces)}
	each(namespaces, func(i int) {
		made.namespaces[i] = w.namespace(fmt.Sprintf("%s%d", name, i), map[string]string{"type": "tenant"})
	})
	made.claims = w.crowd(o, namespaces*perNamespace, made.namespaces).claims
	for _, claim := range made.claims {
		w.isBound(claim)
	}
	return made
}

// each does something for 0 to n-1, sixteen at a time.
func each(n int, do func(i int)) {
	var wait sync.WaitGroup
	for worker := range 16 {
		wait.Go(func() {
			for i := worker; i < n; i += 16 {
				do(i)
			}
		})
	}
	wait.Wait()
}

// strip takes the label from all namespaces of a wave at once.
func (w *world) strip(wave wave) {
	w.Helper()
	each(len(wave.namespaces), func(i int) { w.label(wave.namespaces[i], "type", "-") })
}

// areRevokedOrGone waits until every claim of a wave is revoked, or deleted, and
// returns how many are being deleted or gone.
func (w *world) areRevokedOrGone(wave wave) int {
	w.Helper()
	ended := 0
	for _, claim := range wave.claims {
		w.until("claim "+claim.Name+" is revoked", func(ctx context.Context) string {
			err := w.Get(ctx, keyOf(claim), claim)
			if apierrors.IsNotFound(err) {
				return ""
			}
			w.must(err, "get a claim")
			said := conditionOf(claim)
			return unless(said.Status == corev1.ConditionFalse && said.Reason == string(mirror.NotShared), fmt.Sprintf("it says %q %q", said.Status, said.Reason))
		}, claim)
	}
	for _, claim := range wave.claims {
		if err := w.Get(w.Context(), keyOf(claim), claim); err != nil || claim.DeletionTimestamp != nil {
			ended++
		}
	}
	return ended
}

// brakeIs waits until the brake's record has a state, and returns it.
func (w *world) brakeIs(state string) *corev1.ConfigMap {
	w.Helper()
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "mooring-system", Name: "mooring-brake"}}
	w.until("the brake is "+state, func(ctx context.Context) string {
		if err := w.Get(ctx, keyOf(record), record); err != nil {
			return err.Error()
		}
		return unless(record.Data["state"] == state, "it is "+record.Data["state"])
	})
	return record
}

// brakeSays waits for an event about the brake's record.
func (w *world) brakeSays(reason, text string) {
	w.Helper()
	w.until("an event "+reason+" says "+text, func(ctx context.Context) string {
		var events eventsv1.EventList
		w.must(w.List(ctx, &events, client.InNamespace("mooring-system")), "list events")
		found := slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool {
			return e.Regarding.Name == "mooring-brake" && e.Reason == reason && contains(e.Note, text)
		})
		return unless(found, "there is none")
	})
}

// measures waits until a replica's metrics have a line.
func (w *world) measures(r *replica, line string) {
	w.Helper()
	w.until("the metrics say "+line, func(context.Context) string {
		return unless(strings.Contains("\n"+r.metrics(w.T), "\n"+line+"\n"), "they do not")
	})
}

// lift is what an administrator writes after a look.
func (w *world) lift() {
	w.Helper()
	w.merge(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "mooring-system", Name: "mooring-brake"}}, `{"data":{"state":"lifted"}}`)
}

// TestBrake takes the label from many namespaces at once: deletions stop, across
// a restart, until an administrator lifts the brake, and stop again at the next
// wave. Where the brake's record cannot be read nothing is deleted either.
func TestBrake(t *testing.T) {
	t.Parallel()
	const limit = 5
	w, own, history := brakeWorld(t, fmt.Sprint(limit))
	controller := own.replica(t, "mooring-0", "--leader-elect=false").start(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the controller's log ends:\n%s", controller.LogTail(30))
		}
	})
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))

	// 1. Its record cannot be read.
	one := w.wave("one", o, 1, 1)
	giveBack := w.forbidConfigMaps(own)
	w.strip(one)
	w.areRevokedOrGone(one)
	w.until("the controller meets that it may not read", func(context.Context) string {
		for line := range strings.Lines(controller.metrics(t)) {
			if strings.HasPrefix(line, `controller_runtime_reconcile_errors_total{controller="claim"}`) && !strings.HasSuffix(line, " 0\n") {
				return ""
			}
		}
		return "it does not"
	})
	w.lives(one.claims[0])
	giveBack()
	w.isGone(one.claims[0])
	if record := w.brakeIs("watching"); !strings.HasPrefix(record.Data["ended"], one.claims[0].Spec.VolumeName+" ") {
		t.Errorf("the record does not say what was deleted: %v", record.Data)
	}

	// 2. Too many at once: all are told, and nearly all live.
	first := w.wave("first", o, 12, 1)
	w.strip(first)
	w.areRevokedOrGone(first)
	record := w.brakeIs("engaged")
	if record.Data["limit"] != fmt.Sprint(limit) || record.Data["since"] == "" || record.Data["revoked"] == "" || record.Data["mirrors"] == "" {
		t.Errorf("the record does not say what has happened: %v", record.Data)
	}
	w.brakeSays("DeletionsStopped", "more than 5: no claim is deleted until an administrator")
	w.measures(controller, "mooring_deletions_stopped 1")

	// 3. A restart does not lift it.
	w.must(controller.Kill(), "kill the controller")
	w.must(controller.Start(t.Context()), "start the controller again")
	w.measures(controller, "mooring_deletions_stopped 1")
	if ended := history.ended(); ended > limit {
		t.Errorf("%d claims were deleted, where %d may be", ended, limit)
	}

	// 4. An administrator does.
	w.lift()
	for _, claim := range first.claims {
		w.isGone(claim)
		history.endedInTime(w, claim, time.Second)
	}
	w.brakeSays("DeletionsResumed", "lifted by an administrator")
	w.measures(controller, "mooring_deletions_stopped 0")

	// 5. The next wave.
	before := history.ended()
	second := w.wave("second", o, 12, 1)
	w.strip(second)
	w.areRevokedOrGone(second)
	if record := w.brakeIs("engaged"); record.Data["liftedAt"] != "" {
		t.Errorf("engaged again, the record says that it was lifted: %v", record.Data)
	}
	w.measures(controller, "mooring_deletions_stopped 1")
	if ended := history.ended() - before; ended > limit {
		t.Errorf("%d claims of the second wave were deleted, where %d may be", ended, limit)
	}

	// 6. Nothing is due any more when it is lifted.
	each(len(second.namespaces), func(i int) { w.label(second.namespaces[i], "type", "tenant") })
	for _, claim := range second.claims {
		if err := w.Get(t.Context(), keyOf(claim), claim); apierrors.IsNotFound(err) || claim.DeletionTimestamp != nil {
			continue // of those that were let go before it was engaged
		}
		w.isSaid(claim, corev1.ConditionTrue, mirror.Mirrored)
	}
	w.lift()
	w.measures(controller, "mooring_deletions_stopped 0")
	if record := w.brakeIs("lifted"); record.Data["liftedAt"] == "" {
		t.Errorf("it is not confirmed that it was lifted: %v", record.Data)
	}
}

// forbidConfigMaps takes the right to read and write ConfigMaps from the
// installation, waits until it is gone, and returns what gives it back.
func (w *world) forbidConfigMaps(own *installation) (giveBack func()) {
	w.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: chart.Namespace(own.objects), Name: chart.ServiceAccountName(own.objects)}}
	w.must(w.Get(w.Context(), keyOf(role), role), "get the role")
	all := role.Rules
	write := func(rules []rbacv1.PolicyRule) {
		text, err := json.Marshal(map[string]any{"rules": rules})
		w.must(err, "encode rules")
		w.merge(role, string(text))
	}
	write(slices.DeleteFunc(slices.Clone(all), func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "configmaps") }))
	return func() { write(all) }
}

// TestBrakeHoldsThousands takes the label from all tenants at once, with the
// brake as it is installed: all are told, and no more than the brake's limit is
// deleted.
func TestBrakeHoldsThousands(t *testing.T) {
	t.Parallel()
	w, own, history := brakeWorld(t, "20,5%")
	controller := own.replica(t, "mooring-0", "--leader-elect=false").start(t)
	o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
	perNamespace := 10
	began := time.Now()
	all := w.wave("tenant", o, (*manyMirrors+perNamespace-1)/perNamespace, perNamespace)
	bound := time.Since(began)
	limit := max(20, len(all.claims)*5/100)

	began = time.Now()
	w.strip(all)
	stripped := time.Since(began)
	w.areRevokedOrGone(all)
	told := time.Since(began)
	w.brakeIs("engaged")
	w.measures(controller, "mooring_deletions_stopped 1")
	w.isTold(o.PersistentVolumeClaim, "AccessEnded", "lost access: "+w.prefix)
	ended := history.ended()
	if ended > limit {
		t.Errorf("%d of %d claims were deleted, where %d may be", ended, len(all.claims), limit)
	}
	t.Logf("%d mirrors bound in %v; %d namespaces' labels stripped in %v; all told after %v; %d deleted, at most %d may be; %d events about the origin",
		len(all.claims), bound.Round(time.Second), len(all.namespaces), stripped.Round(time.Millisecond), told.Round(time.Millisecond), ended, limit, len(w.events(o.PersistentVolumeClaim)))
}
