package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

func TestLosses(t *testing.T) {
	var l losses
	origin := types.NamespacedName{Namespace: "drives", Name: "mydrive"}
	now := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	l.begin(origin, []string{"old"})
	l.begin(origin, []string{"later"}) // too late to be of before
	for _, step := range []struct {
		name           string
		after          time.Duration // since the beginning
		now            []string
		lost, regained []string
		rest           time.Duration
	}{
		{"what was told before this process began", 0, []string{"old"}, nil, nil, 0},
		{"a first change is gathered", time.Second, []string{"a", "old"}, []string{"a"}, nil, gatherTime},
		{"another one meanwhile", time.Second + gatherTime/2, []string{"a", "b"}, []string{"a", "b"}, []string{"old"}, gatherTime / 2},
		{"and both are due", time.Second + gatherTime, []string{"a", "b"}, []string{"a", "b"}, []string{"old"}, 0},
		{"the change that is no more", 2 * time.Second, []string{"old"}, nil, nil, 0},
		{"it begins anew", 3 * time.Second, []string{"old", "c"}, []string{"c"}, nil, gatherTime},
	} {
		lost, regained, rest := l.due(origin, step.now, now.Add(step.after))
		if !slices.Equal(lost, step.lost) || !slices.Equal(regained, step.regained) || rest != step.rest {
			t.Errorf("%s: %v lost, %v regained, in %v; want %v, %v, %v", step.name, lost, regained, rest, step.lost, step.regained, step.rest)
		}
	}
	// After a telling, the next one waits.
	l.remember(origin, []string{"old", "c"}, true, now.Add(4*time.Second))
	if _, _, rest := l.due(origin, []string{"c"}, now.Add(5*time.Second)); rest != betweenTellings-time.Second {
		t.Errorf("a second after a telling: in %v", rest)
	}
	if lost, _, rest := l.due(origin, []string{"c", "d", "old"}, now.Add(20*time.Second)); !slices.Equal(lost, []string{"d"}) || rest != 0 {
		t.Errorf("long after a telling: %v in %v", lost, rest)
	}
	l.forget(origin)
	if len(l.origins) > 0 {
		t.Error("an origin that is gone is remembered")
	}
	if got := l.among(origin, map[string]bool{"c": true}); got != nil {
		t.Errorf("of an origin that is not known: %v", got)
	}
}

// A revocation from before this process began, which is withdrawn before its
// origin was looked at, leaves no other trace.
func TestWithdraw(t *testing.T) {
	origin := types.NamespacedName{Namespace: "a", Name: "data"}
	began := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	record := func(namespace string, revoked time.Time) mirror.Record {
		return mirror.Record{Claim: types.NamespacedName{Namespace: namespace, Name: "m"}, Origin: origin, RevokedAt: revoked}
	}
	var l losses
	l.withdraw(record("never", time.Time{}), began)
	l.withdraw(record("since", began), began)
	if len(l.origins) > 0 {
		t.Errorf("what this process has told itself is remembered twice: %v", l.origins[origin])
	}
	l.withdraw(record("x", began.Add(-time.Second)), began)
	l.withdraw(record("x", began.Add(-time.Second)), began) // its second mirror
	l.begin(origin, []string{"y", "x", "y"})
	l.withdraw(record("z", began.Add(-time.Second)), began) // too late: y would be among those of before
	lost, regained, _ := l.due(origin, nil, began)
	if len(lost) > 0 || !slices.Equal(regained, []string{"x", "y"}) {
		t.Errorf("lost %v, regained %v, want none, and x and y once each", lost, regained)
	}
}

func TestPace(t *testing.T) {
	var p pace
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	now := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		took, want time.Duration
	}{
		{0, 0}, {time.Millisecond, 0}, {10 * time.Millisecond, 50 * time.Millisecond}, {time.Second, 5 * time.Second}, {time.Minute, paceMost}, {0, 0},
	} {
		p.done(a, now.Add(-tc.took), now)
		if got := p.rest(a, now); got != tc.want {
			t.Errorf("after %v: left alone for %v, want %v", tc.took, got, tc.want)
		}
		if got := p.rest(a, now.Add(tc.want)); got != 0 {
			t.Errorf("after %v, and the pause: %v", tc.took, got)
		}
		if got := p.rest(b, now); got != 0 {
			t.Errorf("another object waits for %v", got)
		}
	}
	p.done(a, now.Add(-time.Second), now)
	p.forget(a)
	if len(p.next) > 0 {
		t.Error("an object that is gone is remembered")
	}
}

// settle reconciles until nothing is to be done any more, on the clock of a
// bubble, and returns the events.
func settle(t *testing.T, r *originReconciler, request reconcile.Request) []string {
	t.Helper()
	for range 10 {
		result, err := r.Reconcile(context.Background(), request)
		if err != nil {
			t.Fatal(err)
		}
		if result.RequeueAfter == 0 {
			break
		}
		time.Sleep(result.RequeueAfter)
	}
	recorder, _ := r.say.recorder.(*events.FakeRecorder)
	return said(recorder)
}

// An origin's owner hears of each change once, with all that it was.
func TestTellChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, request := manyMirrors(12)
		r := m.reconciler(t)
		label := func(value map[string]string, tenants ...int) {
			for _, i := range tenants {
				m.namespaces[fmt.Sprintf("tenant-%05d", i)] = value
			}
		}
		granted, stripped := map[string]string{"team": "x"}, map[string]string{}
		for _, step := range []struct {
			name   string
			change func()
			want   []string // the beginning of each event
		}{
			{"nothing", func() {}, nil},
			{"one has lost its label", func() { label(stripped, 3) }, []string{"Warning AccessEnded 1 namespace lost access: tenant-00003 (the grant"}},
			{"nothing since", func() {}, nil},
			{"two more", func() { label(stripped, 1, 2) }, []string{"Warning AccessEnded 2 namespaces lost access: tenant-00001, tenant-00002 ("}},
			{"all have it again", func() { label(granted, 1, 2, 3) },
				[]string{"Normal AccessRegained 3 namespaces have again access: tenant-00001, tenant-00002, tenant-00003"}},
			{"one lost it, and nobody knows its labels", func() { label(stripped, 3) }, []string{"Warning AccessEnded 1 namespace lost access: tenant-00003"}},
			{"nobody knows its labels", func() { delete(m.namespaces, "tenant-00003") }, nil},
			{"they are as they were", func() { label(stripped, 3) }, nil},
			{"they match again", func() { label(granted, 3) }, []string{"Normal AccessRegained 1 namespace has again access: tenant-00003"}},
			{"another is gone with its volume", func() { label(stripped, 0) }, []string{"Warning AccessEnded 1 namespace lost access: tenant-00000"}},
			{"and that is no regaining", func() { m.mirrors = m.mirrors[1:] }, nil},
			{"the grant is gone", func() { m.claims[request.NamespacedName].Annotations = nil }, []string{"Warning AccessEnded 11 namespaces lost access: tenant-00001, "}},
			{"they all go", func() { m.mirrors, m.claims[request.NamespacedName].Finalizers = nil, nil }, nil},
		} {
			step.change()
			got := settle(t, r, request)
			if len(got) != len(step.want) {
				t.Errorf("%s: told %q, want %q", step.name, got, step.want)
				continue
			}
			for i := range got {
				if !strings.HasPrefix(got[i], step.want[i]) {
					t.Errorf("%s: told %q, want %q", step.name, got[i], step.want[i])
				}
			}
		}
		if len(r.losses.origins)+len(r.pace.next) > 0 {
			t.Error("an origin without mirrors is remembered")
		}
	})
}

// What ended before this process began, its predecessor has told.
func TestTellChangesAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, request := manyMirrors(3)
		for i := range 2 {
			m.namespaces[fmt.Sprintf("tenant-%05d", i)] = map[string]string{}
			m.mirrors[i].Annotations[names.RevokedAt()] = time.Now().Add(-time.Hour).Format(time.RFC3339)
		}
		r := m.reconciler(t)
		if got := settle(t, r, request); got != nil {
			t.Errorf("told again: %q", got)
		}
		m.namespaces["tenant-00000"] = map[string]string{"team": "x"}
		if got := settle(t, r, request); len(got) != 1 || !strings.HasPrefix(got[0], "Normal AccessRegained 1 namespace has again access: tenant-00000") {
			t.Errorf("told %q", got)
		}
	})
}

// While thousands of mirrors change one after another, their origin is not
// looked through once for each.
func TestOriginsArePaced(t *testing.T) {
	m, request := manyMirrors(50)
	r := m.reconciler(t)
	r.pace.done(request.NamespacedName, time.Now().Add(-time.Second), time.Now())
	gets := m.gets
	result, err := r.Reconcile(context.Background(), request)
	if err != nil || m.gets-gets > 10 || result.RequeueAfter <= 0 || result.RequeueAfter > paceMost {
		t.Errorf("%d objects read once more, again in %v, %v", m.gets-gets, result.RequeueAfter, err)
	}
}

func TestUntilExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			annotations map[string]string
			want        time.Duration
		}{
			"no grant":            {nil, 0},
			"no end":              {map[string]string{names.ReadWriteGrant(): "a"}, 0},
			"in an hour":          {map[string]string{names.ReadWriteGrant(): "a", names.GrantExpires(): time.Now().Add(time.Hour).Format(time.RFC3339)}, time.Hour},
			"passed":              {map[string]string{names.ReadWriteGrant(): "a", names.GrantExpires(): time.Now().Add(-time.Hour).Format(time.RFC3339)}, 0},
			"an end of no grants": {map[string]string{names.GrantExpires(): time.Now().Add(time.Hour).Format(time.RFC3339)}, 0},
		} {
			origin := &corev1.PersistentVolumeClaim{}
			origin.Annotations = tc.annotations
			if diff := cmp.Diff(tc.want, untilExpiry(mooringapi.Names{}, origin)); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	})
}
