package main

import (
	"time"

	"github.com/mooring-k8s/mooring/test/bench/report"
)

// plan is what one mode measures.
type plan struct {
	mode     string
	groups   []group
	slow     []report.Case
	grants   int
	restarts []restart
}

// group is cases that take turns, for so many rounds.
type group struct {
	rounds int
	cases  []report.Case
}

// restart is a cluster in which the controller is started anew.
type restart struct {
	mirrors, namespaces int
	churn               time.Duration
}

func plans() map[string]plan {
	scenarios := []string{report.Floor, report.Ideal, report.Mooring, report.PeerUnlimited}
	everyone := append([]string{report.Peer}, scenarios...)
	both := []string{report.OneOrigin, report.ManyOrigin}
	return map[string]plan{
		"small": {
			mode:     "small",
			groups:   []group{{1, cases(20, both, everyone)}},
			slow:     slowBinder(20),
			grants:   5,
			restarts: []restart{{100, 10, 3 * time.Second}},
		},
		"default": {
			mode: "default",
			groups: []group{
				{3, cases(500, both, scenarios)},
				{2, cases(2000, both, scenarios)},
				{1, cases(500, both[:1], []string{report.Peer})},
				{1, cases(2000, both[:1], []string{report.Peer})[1:]}, // its end to end alone takes minutes
			},
			slow:     slowBinder(500),
			grants:   100,
			restarts: []restart{{2000, 200, 20 * time.Second}},
		},
		"full": {
			mode: "full",
			groups: []group{
				{5, cases(500, both, scenarios)},
				{5, cases(2000, both, scenarios)},
				{2, cases(500, both, []string{report.Peer})},
				{2, cases(2000, both, []string{report.Peer})},
				{2, aloneCases(10000, both, []string{report.Floor, report.Mooring})},
			},
			slow:     slowBinder(500),
			grants:   200,
			restarts: []restart{{10000, 1000, time.Minute}, {50000, 5000, 2 * time.Minute}},
		},
	}
}

// cases are all of a size: alone and end to end.
func cases(n int, shapes, scenarios []string) []report.Case {
	all := aloneCases(n, shapes, scenarios)
	for _, shape := range shapes {
		for _, scenario := range scenarios {
			if scenario != report.Floor {
				all = append(all, report.Case{Phase: report.EndToEnd, Shape: shape, Scenario: scenario, N: n})
			}
		}
	}
	return all
}

func aloneCases(n int, shapes, scenarios []string) []report.Case {
	var all []report.Case
	for _, shape := range shapes {
		for _, scenario := range scenarios {
			if scenario != report.Ideal {
				all = append(all, report.Case{Phase: report.Alone, Shape: shape, Scenario: scenario, N: n})
			}
		}
	}
	return all
}

func slowBinder(n int) []report.Case {
	var all []report.Case
	for _, scenario := range []string{report.Ideal, report.Mooring, report.Peer} {
		all = append(all, report.Case{Phase: report.SlowBinder, Shape: report.OneOrigin, Scenario: scenario, N: n})
	}
	return all
}

// origins is how many origins the groups need.
func (p plan) origins() int {
	most := p.grants
	for _, g := range p.groups {
		for _, c := range g.cases {
			most = max(most, c.Origins())
		}
	}
	return most
}
