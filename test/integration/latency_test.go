package integration_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// TestGrantLatency measures how long after a grant the claim is Bound, over 50
// grants, and prints it. It asserts that all are bound, not how fast.
func TestGrantLatency(t *testing.T) {
	w, own := ownWorld(t, controlplane.Options{})
	own.replica(t, "mooring-0").start(t)
	connection, err := client.NewWithWatch(w.plane.Admin(), client.Options{})
	w.must(err, "connect with watches")

	const grants = 50
	var took []time.Duration
	tenant := w.namespace("tenant", map[string]string{"type": "tenant"})
	owner := w.namespace("owner", nil)
	for i := range grants {
		o := w.origin(owner, fmt.Sprintf("data%d", i))
		claim := w.mirror(tenant, fmt.Sprintf("m%d", i), o)
		w.isRefused(claim, mirror.NotShared)
		watch, err := connection.Watch(w.Context(), &corev1.PersistentVolumeClaimList{}, client.InNamespace(tenant),
			client.MatchingFields{"metadata.name": claim.Name})
		w.must(err, "watch the claim")
		began := time.Now()
		w.grantTo(o.PersistentVolumeClaim, tenantsOnly)
		ctx, cancel := context.WithTimeout(w.Context(), patience)
		for bound := false; !bound; {
			select {
			case event := <-watch.ResultChan():
				seen, ok := event.Object.(*corev1.PersistentVolumeClaim)
				bound = ok && seen.Status.Phase == corev1.ClaimBound
			case <-ctx.Done():
				t.Fatalf("not bound within %v:\n%s", patience, w.show(claim))
			}
		}
		took = append(took, time.Since(began))
		cancel()
		watch.Stop()
	}
	slices.Sort(took)
	t.Logf("grant added -> claim Bound over %d grants: median %v, 90%% %v, worst %v (controller built with %q)",
		grants, took[grants/2].Round(time.Millisecond), took[grants*9/10].Round(time.Millisecond), took[grants-1].Round(time.Millisecond), raceFlags)
}

// TestProbe sees the controller know whether its cluster keeps a reference to
// another namespace.
func TestProbe(t *testing.T) {
	onEachGate(t, func(w *world) {
		want := map[bool]string{true: "kept", false: "dropped"}[w.gateOn]
		w.until("the metric says "+want, func(context.Context) string {
			return unless(strings.Contains(w.replica.metrics(t), fmt.Sprintf(`mooring_cross_namespace_reference{state=%q} 1`, want)), "it does not")
		})
		log, err := os.ReadFile(w.replica.LogFile())
		w.must(err, "read the controller's log")
		if says := map[bool]string{true: "the cluster keeps dataSourceRef", false: "the cluster drops dataSourceRef"}[w.gateOn]; !strings.Contains(string(log), says) {
			w.Errorf("the log does not say that %s.namespace", says)
		}
	})
}

// TestMetrics sees decisions, provisioning and mirrors by state in a scrape.
func TestMetrics(t *testing.T) {
	onEachGate(t, func(w *world) {
		o := w.origin(w.namespace("owner", nil), "data", granting(tenantsOnly))
		w.isBound(w.mirror(w.namespace("tenant", map[string]string{"type": "tenant"}), "m", o))
		w.isRefused(w.mirror(w.namespace("stranger", nil), "m", o), mirror.NotShared)
		w.until("all are there", func(context.Context) string {
			scrape := w.replica.metrics(t)
			for _, want := range []string{
				`mooring_decisions_total{reason="Mirrored",verdict="allow"}`,
				`mooring_decisions_total{reason="NotShared",verdict="refuse"}`,
				`mooring_provisioning_duration_seconds_count`,
				`mooring_mirrors{state="bound"}`,
				`mooring_mirrors{state="refused"}`,
			} {
				if !strings.Contains(scrape, want) || strings.Contains(scrape, want+" 0\n") {
					return want + " is missing or 0"
				}
			}
			return ""
		})
	})
}
