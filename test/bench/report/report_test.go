package report

import (
	"fmt"
	"strings"
	"testing"
)

// sample has everything that the targets need, just reached.
func sample() *Run {
	run := &Run{Mode: "full", Grants: &Grants{ToBound: Latency{Count: 200, P99: 1000}}, Restarts: []Restart{{Mirrors: 50000, ReadySeconds: 30}}}
	put := func(phase, shape, scenario string, n int, seconds, bound float64) {
		origins := Case{Shape: shape, N: n}.Origins()
		run.Put(Trial{Case: Case{phase, shape, scenario, n}, VolumeSeconds: seconds, BoundSeconds: bound, PeakMiB: 150,
			Requests: map[string]int{"POST persistentvolumes": n, "POST events": n, "PATCH persistentvolumeclaims": origins, "GET namespaces": 7 * n}})
	}
	for _, shape := range []string{OneOrigin, ManyOrigin} {
		put(Alone, shape, Floor, 2000, 3, 0)
		put(Alone, shape, Mooring, 2000, 5, 0)
		put(EndToEnd, shape, Ideal, 2000, 8, 8)
		put(EndToEnd, shape, Mooring, 2000, 5, 10)
		put(Alone, shape, Mooring, 500, 1, 0)
		put(Alone, shape, Mooring, 10000, 26, 0)
	}
	put(EndToEnd, OneOrigin, Peer, 2000, 30, 40)
	return run
}

// One change of a run that reaches everything, and the target that it misses.
func TestTargets(t *testing.T) {
	change := func(c Case, do func(*Trial)) func(*Run) {
		return func(r *Run) {
			for i := range r.Trials {
				if r.Trials[i].Case == c {
					do(&r.Trials[i])
				}
			}
		}
	}
	for _, tc := range []struct {
		name   string
		change func(*Run)
		want   string // the lines that do not say reached
	}{
		{"all reached", func(*Run) {}, ""},
		{"slow alone", change(Case{Alone, OneOrigin, Mooring, 2000}, func(t *Trial) { t.VolumeSeconds = 6 }),
			"volumes per second ÷ floor, alone, N = 2,000, one-origin ≥ 0.60 0.50 not reached\n"},
		{"slow end to end", change(Case{EndToEnd, ManyOrigin, Mooring, 2000}, func(t *Trial) { t.BoundSeconds = 12 }),
			"time until all Bound ÷ ideal, end to end, N = 2,000, n-origins ≤ 1.25 1.50 not reached\n"},
		{"fast peer", change(Case{EndToEnd, OneOrigin, Peer, 2000}, func(t *Trial) { t.BoundSeconds = 20 }),
			"peer's time until all Bound ÷ Mooring's, N = 2,000, each with its defaults ≥ 4.00 2.00 not reached\n"},
		{"not linear", change(Case{Alone, ManyOrigin, Mooring, 10000}, func(t *Trial) { t.VolumeSeconds = 40 }),
			"per-mirror time alone at N = 10,000 ÷ at N = 500, n-origins ≤ 1.30 2.00 not reached\n"},
		{"much memory", change(Case{Alone, ManyOrigin, Mooring, 10000}, func(t *Trial) { t.PeakMiB = 200 }),
			"controller's memory at 10,000 mirrors and 10,000 origins ≤ 150 MiB 200 MiB not reached\n"},
		{"a write more", change(Case{Alone, ManyOrigin, Mooring, 2000}, func(t *Trial) { t.Requests["PATCH persistentvolumes"] = t.N }),
			"writes per mirror that is granted at once, without the finalizers, n-origins volume and event: 2 3.00 not reached\n"},
		{"late grants", func(r *Run) { r.Grants.ToBound.P99 = 1500 },
			"grant → Bound p99 on an otherwise idle cluster ≤ 1.00 s 1.50 s not reached\n"},
		{"slow restart", func(r *Run) { r.Restarts[0].ReadySeconds = 31 },
			"restart until ready at 50,000 mirrors ≤ 30.0 s 31.0 s not reached\n"},
		{"no such restart", func(r *Run) { r.Restarts[0].Mirrors = 2000 },
			"restart until ready at 50,000 mirrors ≤ 30.0 s – not measured\n"},
		{"no grants", func(r *Run) { r.Grants = nil },
			"grant → Bound p99 on an otherwise idle cluster ≤ 1.00 s – not measured\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run := sample()
			tc.change(run)
			got := ""
			for _, target := range run.Targets() {
				if target.State != reached {
					got += fmt.Sprintln(target.Figure, target.Goal, target.Measured, target.State)
				}
			}
			if got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

func TestPutReplaces(t *testing.T) {
	run, c := &Run{}, Case{Alone, OneOrigin, Mooring, 500}
	run.Put(Trial{Case: c, VolumeSeconds: 1})
	run.Put(Trial{Case: c, Round: 1, VolumeSeconds: 2})
	run.Put(Trial{Case: c, VolumeSeconds: 4})
	if got := run.Spread(c, seconds).String(); got != "3.00 (2.00 to 4.00)" {
		t.Errorf("got %s", got)
	}
	if !run.Has(c, 1) || run.Has(c, 2) {
		t.Error("rounds 0 and 1 are there, and no other")
	}
}

// The page shows every case, every kind of request and all plots.
func TestPage(t *testing.T) {
	run := sample()
	plots, err := run.Plots()
	if err != nil {
		t.Fatal(err)
	}
	page := run.Page(plots)
	for _, want := range []string{
		"| one-origin | 2000 | mooring | 400 | 0.60 |", "| n-origins | 2000 | mooring | 400 | – | 10.0 | 1.25 |",
		"| shape | N | what | GET namespaces | PATCH persistentvolumeclaims | POST events | POST persistentvolumes |",
		"| n-origins | 2000 | mooring | 7.00 | 1.00 | 1.00 | 1.00 |", "| 50000 | 0 | 30.0 |", "## Method",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if len(plots) != 6 {
		t.Errorf("%d plots, want 6", len(plots))
	}
	for _, plot := range plots {
		if !strings.Contains(page, "(benchmarks/"+plot.File+")") || !strings.Contains(string(plot.SVG), "<svg") {
			t.Errorf("%s is not shown or not drawn", plot.File)
		}
	}
	if strings.Contains((&Run{}).Page(nil), "NaN") {
		t.Error("a run without results has none to show")
	}
}
