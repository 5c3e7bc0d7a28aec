package report

import (
	"fmt"
	"slices"
)

// What is measured.
const (
	Floor         = "floor"
	Ideal         = "ideal"
	Peer          = "peer"
	PeerUnlimited = "peer-unlimited"
	Mooring       = "mooring"
)

// Of which shape, and in which phase.
const (
	OneOrigin  = "one-origin"
	ManyOrigin = "n-origins"
	Alone      = "alone"
	EndToEnd   = "end-to-end"
	// SlowBinder is end to end with the binder's own default limits.
	SlowBinder = "default-binder"
)

// Run is a whole run of the benchmarks.
type Run struct {
	Mode     string    `json:"mode"` // small, default, full
	Date     string    `json:"date"`
	Machine  Machine   `json:"machine"`
	Trials   []Trial   `json:"trials"`
	Grants   *Grants   `json:"grants,omitempty"`
	Restarts []Restart `json:"restarts,omitempty"`
}

// Machine is where the run was, and of which versions.
type Machine struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	MemoryMiB  int    `json:"memoryMiB"`
	System     string `json:"system"`
	Go         string `json:"go"`
	Kubernetes string `json:"kubernetes"`
	Mooring    string `json:"mooring"`
}

// Case is one thing that is measured, in as many rounds as are planned.
type Case struct {
	Phase    string `json:"phase"`
	Shape    string `json:"shape"`
	Scenario string `json:"scenario"`
	N        int    `json:"n"`
}

// String is the case's name, by which it is chosen.
func (c Case) String() string {
	return fmt.Sprintf("%s/%s/%s/%d", c.Phase, c.Shape, c.Scenario, c.N)
}

// Origins is how many origins the case has.
func (c Case) Origins() int {
	if c.Shape == OneOrigin {
		return 1
	}
	return c.N
}

// Trial is a case, measured once. What does not apply is zero.
type Trial struct {
	Case
	Round int `json:"round"`
	// Seconds until the last volume was seen, and until all were Bound.
	VolumeSeconds float64 `json:"volumeSeconds,omitempty"`
	BoundSeconds  float64 `json:"boundSeconds,omitempty"`
	// From a claim's creation to its volume, and to Bound.
	ToVolume Latency `json:"toVolume"`
	ToBound  Latency `json:"toBound"`
	// Requests by verb and resource, such as "POST persistentvolumes".
	Requests   map[string]int `json:"requests,omitempty"`
	CPUSeconds float64        `json:"cpuSeconds,omitempty"`
	PeakMiB    float64        `json:"peakMiB,omitempty"`
}

// Rate is volumes per second.
func (t Trial) Rate() float64 { return over(float64(t.N), t.VolumeSeconds) }

// Writes are the requests that write, for each mirror, without those for the
// finalizers, of which there is one for each origin.
func (t Trial) Writes() float64 {
	writes := 0
	for what, count := range t.Requests {
		if isWrite(what) {
			writes += count
		}
	}
	return over(float64(writes-t.Origins()), float64(t.N))
}

// Grants is how fast a grant, and its end, is followed on an idle cluster.
type Grants struct {
	ToBound   Latency `json:"toBound"`
	ToRevoked Latency `json:"toRevoked"`
}

// Restart is what a restart costs with so many mirrors, and then a time in
// which everything but mirrors changes.
type Restart struct {
	Mirrors, Namespaces  int
	ReadySeconds         float64
	FirstDecisionSeconds float64
	PeakMiB              float64
	ChurnSeconds         float64
	ChurnChanges         int
	ChurnCPUSeconds      float64
	ChurnRequests        map[string]int
}

// Has reports whether a trial was done already.
func (r *Run) Has(c Case, round int) bool {
	return slices.ContainsFunc(r.Trials, func(t Trial) bool { return t.Case == c && t.Round == round })
}

// Put adds a trial, or replaces the one of the same case and round.
func (r *Run) Put(t Trial) {
	r.Trials = slices.DeleteFunc(r.Trials, func(o Trial) bool { return o.Case == t.Case && o.Round == t.Round })
	r.Trials = append(r.Trials, t)
}

// Spread is a figure of one case over its rounds.
func (r *Run) Spread(c Case, figure func(Trial) float64) Spread {
	var values []float64
	for _, t := range r.Trials {
		if t.Case == c {
			values = append(values, figure(t))
		}
	}
	return SpreadOf(values)
}

// Cases are the cases that were measured, in a reader's order.
func (r *Run) Cases() []Case {
	var cases []Case
	for _, t := range r.Trials {
		if !slices.Contains(cases, t.Case) {
			cases = append(cases, t.Case)
		}
	}
	order := []string{Alone, EndToEnd, SlowBinder, OneOrigin, ManyOrigin, Floor, Ideal, Mooring, PeerUnlimited, Peer}
	rank := func(c Case) []int {
		return []int{slices.Index(order, c.Phase), slices.Index(order, c.Shape), c.N, slices.Index(order, c.Scenario)}
	}
	slices.SortFunc(cases, func(a, b Case) int { return slices.Compare(rank(a), rank(b)) })
	return cases
}

func over(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
