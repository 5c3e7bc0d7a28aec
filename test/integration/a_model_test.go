// This file's name puts the longest test first: tests begin in the order of their
// files, and one that begins last is waited for alone.

package integration_test

import (
	"flag"
	"maps"
	"testing"
	"time"

	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
	"github.com/mooring-k8s/mooring/test/model"
)

var (
	modelOperations = flag.Int("operations", 2000, "how many operations TestModel applies")
	modelSeed       = flag.Uint64("seed", 5, "what TestModel chooses its operations by; 0: the clock")
	modelBrake      = flag.String("brake", "100%", "--max-revocations of TestModel's controller")
)

// TestModel applies random operations to 20 origins and 60 claims, in bursts,
// and after each burst waits until the cluster is as docs/invariants.md says and
// as a small model predicts. What must hold at every moment is watched
// throughout. The same seed chooses the same operations.
func TestModel(t *testing.T) {
	t.Parallel()
	seed := *modelSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: repeat with -run TestModel -seed=%d -operations=%d", seed, seed, *modelOperations)
	var m *model.Model
	t.Cleanup(func() { // the first to be registered: what was found is to stand last, below all logs
		if t.Failed() && m != nil {
			t.Log(m.Found())
		}
	})
	plane := ownPlane(t, controlplane.Options{CrossNamespace: true, Audit: controlplane.AuditMetadata, BinderSyncPeriod: 2 * time.Second})
	values := map[string]any{"maxRevocations": *modelBrake}
	maps.Copy(values, model.Values())
	own := install(t, plane, chart.Options{Values: values})
	m = model.New(t, model.Options{
		Plane: plane, Controller: own.replica(t, "mooring-0", "--leader-elect=false").start(t), Seed: seed,
		Writes: func() map[string]int { return own.writes(t) },
	})
	m.Random(*modelOperations)
	m.Summary()
}
