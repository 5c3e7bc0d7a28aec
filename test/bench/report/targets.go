package report

import (
	"fmt"
	"strings"
)

// Target is one of the goals, and what became of it.
type Target struct {
	Figure, Goal string
	Measured     string
	State        string // reached, not reached, not measured
}

const (
	reached     = "reached"
	notReached  = "not reached"
	notMeasured = "not measured"
)

// figures of a trial.
func rate(t Trial) float64    { return t.Rate() }
func bound(t Trial) float64   { return t.BoundSeconds }
func writes(t Trial) float64  { return t.Writes() }
func memory(t Trial) float64  { return t.PeakMiB }
func seconds(t Trial) float64 { return t.VolumeSeconds }
func cpu(t Trial) float64     { return t.CPUSeconds }

// Targets says of each target whether this run reached it.
func (r *Run) Targets() []Target {
	const n = 2000
	at := func(phase, shape, scenario string, n int) Case { return Case{phase, shape, scenario, n} }
	var targets []Target
	for _, shape := range []string{OneOrigin, ManyOrigin} {
		targets = append(targets, least("volumes per second ÷ floor, alone, N = 2,000, "+shape, 0.6,
			r.ratio(rate, at(Alone, shape, Mooring, n), at(Alone, shape, Floor, n))))
	}
	for _, shape := range []string{OneOrigin, ManyOrigin} {
		targets = append(targets, most("time until all Bound ÷ ideal, end to end, N = 2,000, "+shape, 1.25, "",
			r.ratio(bound, at(EndToEnd, shape, Mooring, n), at(EndToEnd, shape, Ideal, n))))
	}
	targets = append(targets, least("peer's time until all Bound ÷ Mooring's, N = 2,000, each with its defaults", 4,
		r.ratio(bound, at(EndToEnd, OneOrigin, Peer, n), at(EndToEnd, OneOrigin, Mooring, n))))
	for _, shape := range []string{OneOrigin, ManyOrigin} {
		ratio := r.ratio(seconds, at(Alone, shape, Mooring, 10000), at(Alone, shape, Mooring, 500))
		targets = append(targets, most("per-mirror time alone at N = 10,000 ÷ at N = 500, "+shape, 1.3, "", ratio/20))
	}
	return append(targets, r.otherTargets()...)
}

// otherTargets are those that are no ratios.
func (r *Run) otherTargets() []Target {
	var targets []Target
	var p99, ready float64
	if r.Grants != nil {
		p99 = r.Grants.ToBound.P99 / 1000
	}
	targets = append(targets, most("grant → Bound p99 on an otherwise idle cluster", 1, " s", p99))
	for _, shape := range []string{OneOrigin, ManyOrigin} {
		w := r.Spread(Case{Alone, shape, Mooring, 2000}, writes)
		targets = append(targets, atMost("writes per mirror that is granted at once, without the finalizers, "+shape, "volume and event: 2", 2.02, w.Median))
	}
	targets = append(targets, most("controller's memory at 10,000 mirrors and 10,000 origins", 150, " MiB",
		r.Spread(Case{Alone, ManyOrigin, Mooring, 10000}, memory).Most))
	for _, restart := range r.Restarts {
		if restart.Mirrors >= 50000 {
			ready = restart.ReadySeconds
		}
	}
	return append(targets, most("restart until ready at 50,000 mirrors", 30, " s", ready))
}

// ratio is 0 where one of the two was not measured.
func (r *Run) ratio(figure func(Trial) float64, of, to Case) float64 {
	return over(r.Spread(of, figure).Median, r.Spread(to, figure).Median)
}

func least(figure string, goal, measured float64) Target {
	return judged(figure, "≥ "+number(goal), number(measured), measured, measured >= goal)
}

func most(figure string, goal float64, unit string, measured float64) Target {
	return judged(figure, "≤ "+number(goal)+unit, number(measured)+unit, measured, measured <= goal)
}

func atMost(figure, text string, goal, measured float64) Target {
	return judged(figure, text, number(measured), measured, measured <= goal)
}

// judged takes 0 for not measured: nothing that is measured here is 0.
func judged(figure, goal, shown string, measured float64, is bool) Target {
	switch {
	case measured == 0:
		return Target{figure, goal, "–", notMeasured}
	case is:
		return Target{figure, goal, shown, reached}
	default:
		return Target{figure, goal, shown, notReached}
	}
}

func isWrite(request string) bool {
	verb, _, _ := strings.Cut(request, " ")
	switch verb {
	case "POST", "PUT", "PATCH", "APPLY", "DELETE":
		return true
	default:
		return false
	}
}

// perMirror shows requests by verb, for each mirror.
func (r *Run) perMirror(c Case, what string) string {
	s := r.Spread(c, func(t Trial) float64 { return over(float64(t.Requests[what]), float64(t.N)) })
	return fmt.Sprintf("%.2f", s.Median)
}
