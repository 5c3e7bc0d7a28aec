package main

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mooring-k8s/mooring/test/bench/report"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"-mode=huge", `-mode "huge": expected small, default or full`},
		{"-run=(", `-run "(": expected a regular expression`},
		{"now", `"now": expected flags only`},
		{"-mode=full -run=restart", ""},
	} {
		_, err := parse(strings.Fields(tc.args))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)) {
			t.Errorf("%s: got %v, want %q", tc.args, err, tc.want)
		}
	}
}

// What a run that goes on measures, and what one does that names a case.
func TestChosen(t *testing.T) {
	done := report.Case{Phase: report.Alone, Shape: report.OneOrigin, Scenario: report.Mooring, N: 20}
	for _, tc := range []struct {
		args              string
		wantDone, wantNew bool
	}{
		{"-mode=small", true, true},
		{"-mode=small -resume", false, true},
		{"-mode=small -run=alone/one-origin/mooring", true, false},
		{"-mode=small -run=restart", false, false},
	} {
		o, err := parse(strings.Fields(tc.args))
		if err != nil {
			t.Fatal(err)
		}
		j := job{options: o, results: &report.Run{}}
		j.results.Put(report.Trial{Case: done})
		other := done
		other.Scenario = report.Floor
		if j.wants(done, 0) != tc.wantDone || j.wants(other, 0) != tc.wantNew {
			t.Errorf("%s: measures what is done: %v, what is not: %v", tc.args, j.wants(done, 0), j.wants(other, 0))
		}
	}
}

// Every mode measures each scenario, and each case once a round.
func TestPlans(t *testing.T) {
	for mode, p := range plans() {
		scenarios, seen := map[string]bool{}, map[string]bool{}
		for _, g := range p.groups {
			for _, c := range g.cases {
				if seen[c.String()] {
					t.Errorf("%s measures %s in two groups", mode, c)
				}
				seen[c.String()] = true
				scenarios[c.Phase+c.Scenario] = true
			}
		}
		if p.mode != mode || len(scenarios) != 8 {
			t.Errorf("%s: phases and scenarios %v", mode, scenarios)
		}
	}
}

// A full run goes on where a default one ended.
func TestFullBeginsWithDefault(t *testing.T) {
	brief, whole := plans()["default"], plans()["full"]
	if got := whole.groups[:len(brief.groups)]; !reflect.DeepEqual(got, brief.groups) {
		t.Errorf("full begins with %v, default is %v", got, brief.groups)
	}
	o := output{dir: t.TempDir()}
	if err := o.save(&report.Run{Mode: "default", Date: "2026-01-02"}); err != nil {
		t.Fatal(err)
	}
	if run, err := o.read("full"); err != nil || run.Mode != "full" || run.Date != "2026-01-02" {
		t.Errorf("got %+v (%v), want the default run's results", run, err)
	}
	if _, err := o.read("small"); err == nil {
		t.Error("a small run goes on with the figures of a default one")
	}
}

func TestEach(t *testing.T) {
	var sum atomic.Int64
	add := func(_ context.Context, i int) error { sum.Add(int64(i)); return nil }
	if err := each(t.Context(), 100, add); err != nil || sum.Load() != 4950 {
		t.Errorf("%v, %d", err, sum.Load())
	}
	if err := each(t.Context(), 0, add); err != nil {
		t.Errorf("nothing to do: %v", err)
	}
	broken := errors.New("broken")
	if err := each(t.Context(), 100, func(context.Context, int) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error", err)
	}
}
