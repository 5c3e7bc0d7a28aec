// This file's name puts the longest test first: tests begin in the order of their
// files, and one that begins last is waited for alone.

package integration_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

var (
	modelOperations = flag.Int("operations", 2000, "how many operations TestModel applies")
	modelSeed       = flag.Uint64("seed", 5, "what TestModel chooses its operations by; 0: the clock")
	modelBrake      = flag.String("brake", "100%", "--max-revocations of TestModel's controller")
)

// The size of the model's world.
const (
	modelOrigins, modelOwners = 20, 4
	modelClaims, modelTenants = 60, 6
	// quiescence is how long after a burst everything may take to come to rest:
	// the binder looks at everything again each 15 s, and so does the brake.
	quiescence = 120 * time.Second
)

// model is a small world to which random operations are applied. The test keeps
// only what it did itself; what must be the case follows, by the rules that
// model_expect_test.go states once more, from the objects as they are.
type model struct {
	*world
	own        *installation
	controller *replica
	running    bool
	random     *rand.Rand

	owners, tenants []string
	classes         [2]string
	seen            *modelWatch

	mutex sync.Mutex // guards what the watch reads
	// deleted are the claims that the test deletes, and let those whose foreign
	// finalizer it removes, by UID; volumes those whose object it deletes.
	// forced are the origins whose finalizer it takes off.
	deleted, let, forced map[types.UID]bool
	volumes              map[string]bool
	former               map[int]string // the name of the volume that a claim had last

	log     []string
	found   string // what ended the test
	applied int
	reach   int // how many claims and origins the operations could concern, in all
	kinds   map[string]int
	took    map[string]time.Duration // operations, by kind
	rests   []time.Duration
}

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
	var m *model
	t.Cleanup(func() { // the first to be registered: what was found is to stand last, below all logs
		if t.Failed() && m != nil {
			t.Logf("seed %d, %d operations in %d bursts:\n%s", seed, m.applied, len(m.rests)+1, m.found)
		}
	})
	m = newModel(t, seed)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last operations:\n%s\nthe controller's log ends:\n%s",
				strings.Join(m.log[max(0, len(m.log)-60):], "\n"), m.controller.LogTail(30))
		}
	})
	for m.applied < *modelOperations {
		for range 5 + m.random.IntN(50) {
			m.step()
		}
		m.quiesce()
	}
	m.summary(seed)
}

func newModel(t *testing.T, seed uint64) *model {
	t.Helper()
	plane := ownPlane(t, controlplane.Options{CrossNamespace: true, Audit: controlplane.AuditMetadata, BinderSyncPeriod: 2 * time.Second})
	m := &model{
		world: newWorld(t, plane, true),
		own: install(t, plane, chart.Options{Values: map[string]any{
			"class":          map[string]any{"onRevoke": "Delete", "revokeAfter": "1s"},
			"maxRevocations": *modelBrake,
		}}),
		random:  rand.New(rand.NewPCG(seed, seed)),
		deleted: map[types.UID]bool{}, let: map[types.UID]bool{}, forced: map[types.UID]bool{}, volumes: map[string]bool{},
		former: map[int]string{}, kinds: map[string]int{}, took: map[string]time.Duration{},
	}
	m.controller = m.own.replica(t, "mooring-0", "--leader-elect=false").start(t)
	m.running = true
	m.classes = [2]string{class, m.class("report").Name}
	m.driver(modelDriver, false)
	for i := range modelOwners {
		m.owners = append(m.owners, m.namespace(fmt.Sprintf("owner%d", i), nil))
	}
	for i := range modelTenants {
		m.tenants = append(m.tenants, m.namespace(fmt.Sprintf("tenant%d", i), map[string]string{"type": "tenant", "team": []string{"a", "b"}[i%2]}))
	}
	m.seen = m.watch()
	for i := range modelOrigins {
		m.must(m.createOrigin(i, 0), "create origin %d", i)
	}
	return m
}

// step chooses an operation and applies it. How many numbers are drawn does not
// depend on anything, so that a seed gives the same operations however fast the
// cluster is; what of them has an effect may depend on it.
func (m *model) step() {
	m.Helper()
	kind := modelKindOf(m.random.IntN(modelWeights))
	draw := modelDraw{m.random.IntN(1 << 20), m.random.IntN(1 << 20), m.random.IntN(1 << 20), m.random.IntN(1 << 20)}
	began := time.Now()
	what, reach, err := kind.apply(m, draw)
	m.took[kind.name] += time.Since(began)
	switch {
	case err != nil && !isPassing(err):
		m.fail("%s %s: %v", kind.name, what, err)
	case err != nil || reach == 0:
		m.note("%s %s: no effect (%v)", kind.name, what, err)
		return
	}
	m.note("%s %s", kind.name, what)
	m.applied++
	m.reach += reach
	m.kinds[kind.name]++
}

func (m *model) note(format string, args ...any) {
	m.log = append(m.log, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// quiesce waits until nothing is left to be done, and everything is as it must
// be.
func (m *model) quiesce() {
	m.Helper()
	began := time.Now()
	if !m.running {
		m.must(m.controller.Start(context.Background()), "start the controller")
		m.running = true
	}
	m.note("quiesce")
	deadline := time.Now().Add(quiescence)
	for {
		problems := m.problems()
		if len(problems) == 0 {
			break
		}
		if time.Now().After(deadline) || m.Failed() {
			m.fail("not at rest within %v, %d problems:\n%s", quiescence, len(problems), m.describeAll(problems))
		}
		<-time.After(100 * time.Millisecond)
	}
	m.rests = append(m.rests, time.Since(began))
	if text := m.seen.violations(); text != "" {
		m.fail("at some moment:\n%s", text)
	}
}

func (m *model) fail(format string, args ...any) {
	m.Helper()
	m.found = fmt.Sprintf(format, args...)
	m.Fatal(m.found)
}

// problem is something that is not as it must be, and what it is about.
type problem struct {
	text   string
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
}

func (m *model) describeAll(problems []problem) string {
	var text strings.Builder
	for i, p := range problems {
		fmt.Fprintf(&text, "%d. %s\n", i+1, p.text)
		if i >= 4 {
			continue
		}
		if p.claim != nil {
			text.WriteString(m.show(p.claim))
		}
		if p.volume != nil {
			text.WriteString(m.show(p.volume))
		}
	}
	return text.String()
}
