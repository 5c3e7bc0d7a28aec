// Package model is a small world to which operations are applied, at random or by
// a script, and which says whether a cluster with Mooring is as docs/invariants.md
// says: at rest, and at every moment. Suites run it on a control plane of theirs,
// with or without faults between the controller and the API server.
package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/test/controlplane"
)

// Values are the chart's values that the model counts on: its class deletes what
// is revoked after a second, and the other class of the model may do so too.
func Values() map[string]any {
	return map[string]any{
		"class":           map[string]any{"onRevoke": "Delete", "revokeAfter": "1s"},
		"extraClassNames": []any{"model-*"},
	}
}

// Class is the class of the chart's that is used.
const Class = "pvc-mirror"

// Controller is the controller under test. Its methods are called by one
// goroutine at a time.
type Controller interface {
	Start(ctx context.Context) error
	Kill() error
	LogTail(lines int) string
}

// Options say where the model is and how large. All but Plane and Controller may
// be zero.
type Options struct {
	Plane      *controlplane.ControlPlane
	Controller Controller // it runs
	Seed       uint64     // what random operations are chosen by

	// Origins are in Owners namespaces, and Claims in Tenants namespaces. Zero: 20
	// origins in 4 and 60 claims in 6.
	Origins, Owners, Claims, Tenants int

	// Writes counts what the controller wrote so far, by verb and resource. Nil:
	// it is not looked at.
	Writes func() map[string]int
	// Calm is called before the model waits for rest, and Disturb when it goes on:
	// whoever makes faults ends and begins them there.
	Calm, Disturb func()
	// Quiescence is how long everything may take to come to rest. Zero: 120 s, since
	// the binder looks at everything again each 15 s, and so does the brake.
	Quiescence time.Duration
}

func (o Options) withDefaults() Options {
	if o.Origins == 0 {
		o.Origins, o.Owners, o.Claims, o.Tenants = 20, 4, 60, 6
	}
	if o.Quiescence == 0 {
		o.Quiescence = 120 * time.Second
	}
	for _, hook := range []*func(){&o.Calm, &o.Disturb} {
		if *hook == nil {
			*hook = func() {}
		}
	}
	return o
}

// Model is the small world. It keeps only what it did itself; what must be the
// case follows, by the rules that expect.go states once more, from the objects as
// they are.
type Model struct {
	*testing.T
	client.Client
	options         Options
	prefix          string
	running         bool
	random          *rand.Rand
	origins, claims int

	owners, tenants []string
	classes         [2]string
	seen            *watcher

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

var models atomic.Int64

// New makes namespaces, classes and origins, and begins to watch.
func New(t *testing.T, options Options) *Model {
	t.Helper()
	options = options.withDefaults()
	c, err := client.New(options.Plane.Admin(), client.Options{})
	if err != nil {
		t.Fatalf("connect to the cluster: %v", err)
	}
	m := &Model{
		T: t, Client: c, options: options, running: true,
		prefix: fmt.Sprintf("model-%d-%d", models.Add(1), time.Now().UnixMilli()%100000),
		random: rand.New(rand.NewPCG(options.Seed, options.Seed)),
		claims: options.Claims, origins: options.Origins,
		deleted: map[types.UID]bool{}, let: map[types.UID]bool{}, forced: map[types.UID]bool{}, volumes: map[string]bool{},
		former: map[int]string{}, kinds: map[string]int{}, took: map[string]time.Duration{},
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last operations:\n%s\nthe controller's log ends:\n%s",
				strings.Join(m.log[max(0, len(m.log)-60):], "\n"), options.Controller.LogTail(30))
		}
	})
	m.classes = [2]string{Class, m.class("report")}
	m.driver()
	for i := range options.Owners {
		m.owners = append(m.owners, m.namespace(fmt.Sprintf("owner%d", i), nil))
	}
	for i := range options.Tenants {
		m.tenants = append(m.tenants, m.namespace(fmt.Sprintf("tenant%d", i), map[string]string{"type": "tenant", "team": []string{"a", "b"}[i%2]}))
	}
	m.seen = m.watch()
	for i := range m.origins {
		m.must(m.createOrigin(i, 0), "create origin %d", i)
	}
	return m
}

// Random applies so many random operations, in bursts, and after each burst
// waits until all is at rest. The same seed chooses the same operations.
func (m *Model) Random(operations int) {
	m.Helper()
	for m.applied < operations {
		m.options.Disturb()
		for range 5 + m.random.IntN(50) {
			m.step()
		}
		m.Rest()
	}
}

// step chooses an operation and applies it. How many numbers are drawn does not
// depend on anything, so that a seed gives the same operations however fast the
// cluster is; what of them has an effect may depend on it.
func (m *Model) step() {
	m.Helper()
	kind := kindOf(m.random.IntN(weights))
	drawn := draw{m.random.IntN(1 << 20), m.random.IntN(1 << 20), m.random.IntN(1 << 20), m.random.IntN(1 << 20)}
	began := time.Now()
	what, reach, err := kind.apply(m, drawn)
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

func (m *Model) note(format string, args ...any) {
	m.log = append(m.log, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// Rest waits until nothing is left to be done, and everything is as it must be.
func (m *Model) Rest() {
	m.Helper()
	m.options.Calm()
	began := time.Now()
	if !m.running {
		m.must(m.options.Controller.Start(context.Background()), "start the controller")
		m.running = true
	}
	m.note("quiesce")
	deadline := time.Now().Add(m.options.Quiescence)
	for {
		problems := m.problems()
		if len(problems) == 0 {
			break
		}
		if time.Now().After(deadline) || m.Failed() {
			m.fail("not at rest within %v, %d problems:\n%s", m.options.Quiescence, len(problems), m.describeAll(problems))
		}
		<-time.After(100 * time.Millisecond)
	}
	m.rests = append(m.rests, time.Since(began))
	if text := m.seen.violations(); text != "" {
		m.fail("at some moment:\n%s", text)
	}
}

func (m *Model) fail(format string, args ...any) {
	m.Helper()
	m.found = fmt.Sprintf(format, args...)
	m.Fatal(m.found)
}

// Found says how far the model came and what ended it: a test says it once more
// below all logs.
func (m *Model) Found() string {
	return fmt.Sprintf("seed %d, %d operations in %d bursts:\n%s", m.options.Seed, m.applied, len(m.rests)+1, m.found)
}

// Rests are how long each rest took to come.
func (m *Model) Rests() []time.Duration { return m.rests }

// problem is something that is not as it must be, and what it is about.
type problem struct {
	text   string
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
}

func (m *Model) describeAll(problems []problem) string {
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
