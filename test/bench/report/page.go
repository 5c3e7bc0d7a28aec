package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Page is docs/benchmarks.md for a run.
func (r *Run) Page(plots []Plot) string {
	var page strings.Builder
	fmt.Fprintf(&page, intro, r.Mode, r.Date, r.Machine.CPU, r.Machine.Cores, r.Machine.MemoryMiB, r.Machine.System,
		r.Machine.Go, r.Machine.Kubernetes, r.Machine.Mooring)
	page.WriteString("\n## Targets\n\nThey are ratios within this run wherever a figure depends on the machine, are computed from\nits results, and are not gated.\n\n")
	rows := [][]string{}
	for _, target := range r.Targets() {
		rows = append(rows, []string{target.Figure, target.Goal, target.Measured, target.State})
	}
	table(&page, []string{"figure", "target", "measured", ""}, rows)
	for _, plot := range plots {
		fmt.Fprintf(&page, "\n![%s](benchmarks/%s)\n", plot.Title, plot.File)
	}
	r.speed(&page)
	r.requests(&page)
	r.grants(&page)
	r.restarts(&page)
	page.WriteString(method)
	return page.String()
}

func (r *Run) speed(page *strings.Builder) {
	page.WriteString("\n## Speed\n\nThe median of all rounds, and from where to where they went. Latencies are p50, p95 and\np99 from a claim's creation, each the median of the rounds'.\n")
	for _, phase := range []string{Alone, EndToEnd, SlowBinder} {
		rows := [][]string{}
		for _, c := range r.Cases() {
			if c.Phase == phase {
				rows = append(rows, r.row(c))
			}
		}
		if len(rows) > 0 {
			fmt.Fprintf(page, "\n### %s\n\n", phase)
			table(page, []string{"shape", "N", "what", "volumes/s", "÷ floor", "all Bound, s", "÷ ideal", "to volume, ms", "to Bound, ms", "CPU, s", "peak, MiB"}, rows)
		}
	}
}

func (r *Run) row(c Case) []string {
	toFloor, toIdeal := "–", "–"
	if ratio := r.ratio(rate, c, Case{Alone, c.Shape, Floor, c.N}); c.Phase == Alone && ratio > 0 {
		toFloor = number(ratio)
	}
	if ratio := r.ratio(bound, c, Case{c.Phase, c.Shape, Ideal, c.N}); ratio > 0 {
		toIdeal = number(ratio)
	}
	return []string{
		c.Shape, fmt.Sprint(c.N), c.Scenario, r.shown(c, rate), toFloor, r.shown(c, bound), toIdeal,
		r.latency(c, func(t Trial) Latency { return t.ToVolume }), r.latency(c, func(t Trial) Latency { return t.ToBound }),
		r.shown(c, cpu), r.shown(c, memory),
	}
}

// shown is a figure with its spread, or nothing where it does not apply.
func (r *Run) shown(c Case, figure func(Trial) float64) string {
	spread := r.Spread(c, figure)
	if spread.Most == 0 {
		return "–"
	}
	return spread.String()
}

func (r *Run) latency(c Case, of func(Trial) Latency) string {
	var parts []string
	for _, share := range []func(Latency) float64{
		func(l Latency) float64 { return l.P50 }, func(l Latency) float64 { return l.P95 }, func(l Latency) float64 { return l.P99 },
	} {
		spread := r.Spread(c, func(t Trial) float64 { return share(of(t)) })
		if spread.Most == 0 {
			return "–"
		}
		parts = append(parts, number(spread.Median))
	}
	return strings.Join(parts, " / ")
}

func (r *Run) requests(page *strings.Builder) {
	page.WriteString("\n## Requests for each mirror\n\nCounted by the API server while nobody else works (alone).\n\n")
	var cases []Case
	kinds := map[string]bool{}
	for _, c := range r.Cases() {
		if c.Phase != Alone || c.Scenario == Floor {
			continue
		}
		cases = append(cases, c)
		for _, t := range r.Trials {
			if t.Case == c {
				for kind := range t.Requests {
					kinds[kind] = true
				}
			}
		}
	}
	head := append([]string{"shape", "N", "what"}, slices.Sorted(maps.Keys(kinds))...)
	rows := [][]string{}
	for _, c := range cases {
		row := []string{c.Shape, fmt.Sprint(c.N), c.Scenario}
		for _, kind := range head[3:] {
			row = append(row, r.perMirror(c, kind))
		}
		rows = append(rows, row)
	}
	table(page, head, rows)
}

func (r *Run) grants(page *strings.Builder) {
	if r.Grants == nil {
		return
	}
	page.WriteString("\n## A grant comes and goes\n\nOne after the other, on an otherwise idle cluster, in milliseconds.\n\n")
	rows := [][]string{}
	for _, what := range []struct {
		name string
		took Latency
	}{{"grant written → claim Bound", r.Grants.ToBound}, {"grant removed → condition says so", r.Grants.ToRevoked}} {
		rows = append(rows, []string{what.name, fmt.Sprint(what.took.Count), number(what.took.P50), number(what.took.P99), number(what.took.Worst)})
	}
	table(page, []string{"", "times", "p50", "p99", "worst"}, rows)
}

func (r *Run) restarts(page *strings.Builder) {
	if len(r.Restarts) == 0 {
		return
	}
	page.WriteString("\n## A restart, and what is none of Mooring's business\n\nThe mirrors exist and are bound when the controller starts. After it, claims of other classes,\nnamespaces without mirrors and nodes change, and the controller's CPU and requests are counted.\n\n")
	rows := [][]string{}
	for _, s := range r.Restarts {
		var requests []string
		for _, what := range slices.Sorted(maps.Keys(s.ChurnRequests)) {
			requests = append(requests, fmt.Sprintf("%s %d", what, s.ChurnRequests[what]))
		}
		rows = append(rows, []string{
			fmt.Sprint(s.Mirrors), fmt.Sprint(s.Namespaces), number(s.ReadySeconds), number(s.FirstDecisionSeconds), number(s.PeakMiB),
			fmt.Sprintf("%d in %s s", s.ChurnChanges, number(s.ChurnSeconds)), number(s.ChurnCPUSeconds), strings.Join(requests, ", "),
		})
	}
	table(page, []string{"mirrors", "namespaces", "ready, s", "first volume, s", "peak, MiB", "unrelated changes", "CPU, s", "requests"}, rows)
}

func table(page *strings.Builder, head []string, rows [][]string) {
	fmt.Fprintf(page, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat(" --- |", len(head)))
	for _, row := range rows {
		fmt.Fprintf(page, "| %s |\n", strings.Join(row, " | "))
	}
}

const intro = `# Benchmarks

<!-- Written by make bench from benchmarks/results.json; do not edit. -->

How close Mooring comes to what the API server can do, at any size, and how to see
that for yourself: ` + "`make bench`" + `. This page is one run (BENCH=%s, %s) on

| | |
| --- | --- |
| processor | %s, %d cores |
| memory | %d MiB |
| system | %s |
| Go | %s |
| Kubernetes | %s |
| Mooring | %s |

where etcd, API server, controller-manager, controller and load program share the
cores. Each figure of time is worth something only beside the others of this run.
`

const method = `
## Method

- **floor**: the load program writes, with as many workers as the controller has, the
  volumes and events that Mooring writes, and the finalizer of each origin; it reads and
  decides nothing. **ideal**: it creates claims, and each one's complete volume at once, so
  that only the binder works.
- **mooring**: the controller with the chart's own arguments, account and permissions.
- **peer**: a minimal provisioner on sig-storage-lib-external-provisioner that does the
  same (a grant by selector, the same source): reads from a cache, one volume for each claim.
  Its client has the limits that controller-runtime gave clients for long and provisioners
  still run with, 20 requests a second and bursts of 30. **peer-unlimited**: without them.
- **one-origin**: one claim with N mirrors. **n-origins**: N claims with one mirror each.
  Mirrors are spread over 50 namespaces; the volumes are of the NFS CSI driver.
- **alone**: N claims exist and kube-controller-manager is stopped. Time goes from when the
  controller says it is ready to when a watch shows the last volume. **end-to-end**: the
  claims are created, by 16 workers, while controller and binder run; the binder may send 500
  requests a second. Time goes from the first creation to when a watch shows the last claim
  Bound. **default-binder**: the same with 20 requests a second, Kubernetes' default.
- The cases of a size take turns, round after round on one control plane, so that a
  drift of the machine is shared by all. After each, its mirrors and finalizers are removed.
- Requests are the differences of the API server's own counter, which costs nothing; leases
  are left out. CPU and peak memory (VmHWM) are read from /proc before the process ends.
- etcd does not sync to disk here.
`
