package main

import (
	"slices"
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

// Full begins with what default measures, so that it can go on where that ended.
func plans() map[string]plan {
	three := []string{report.Floor, report.Ideal, report.Mooring}
	peers := []string{report.Peer, report.PeerUnlimited}
	everyone := append(slices.Clone(three), peers...)
	both := []string{report.OneOrigin, report.ManyOrigin}
	brief := []group{
		{2, cases(500, both, three)},
		{2, cases(2000, both, three)},
		{1, cases(500, both[:1], peers)},
	}
	// What takes minutes for each case, and asks for patience.
	rest := []group{
		{1, cases(500, both[1:], peers)},
		{1, cases(2000, both, peers)},
		{2, aloneCases(10000, both, []string{report.Floor, report.Mooring})},
	}
	return map[string]plan{
		"small": {
			mode:     "small",
			groups:   []group{{1, cases(20, both, everyone)}},
			slow:     slowBinder(20),
			grants:   5,
			restarts: []restart{{100, 10, 3 * time.Second}},
		},
		"default": {mode: "default", groups: brief, slow: slowBinder(500), grants: 200},
		"full": {
			mode: "full", groups: slices.Concat(brief, rest), slow: slowBinder(500), grants: 200,
			restarts: []restart{{2000, 200, 30 * time.Second}, {10000, 1000, time.Minute}, {50000, 5000, 2 * time.Minute}},
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
