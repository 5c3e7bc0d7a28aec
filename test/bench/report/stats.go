// Package report holds what a run of the benchmarks has measured, and makes the
// page, the plots and the verdicts on the targets of it. It measures nothing.
package report

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Latency is how long something took over many times, in milliseconds.
type Latency struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Worst float64 `json:"worst"`
}

// LatencyOf summarizes durations. Without any it is zero, and says so by its
// count.
func LatencyOf(took []time.Duration) Latency {
	var milliseconds []float64
	for _, one := range took {
		milliseconds = append(milliseconds, float64(one)/float64(time.Millisecond))
	}
	slices.Sort(milliseconds)
	return Latency{
		Count: len(milliseconds),
		P50:   Quantile(milliseconds, 0.50), P95: Quantile(milliseconds, 0.95), P99: Quantile(milliseconds, 0.99),
		Worst: Quantile(milliseconds, 1),
	}
}

// Quantile returns the smallest of sorted values that is not below the given
// share of them; 0 where there are none.
func Quantile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := int(math.Ceil(share*float64(len(sorted)))) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

// Spread is a figure that was measured several times.
type Spread struct {
	Median, Least, Most float64
	Rounds              int
}

// SpreadOf summarizes the rounds of one figure.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := sorted[len(sorted)/2]
	if len(sorted)%2 == 0 {
		middle = (sorted[len(sorted)/2-1] + middle) / 2
	}
	return Spread{Median: middle, Least: sorted[0], Most: sorted[len(sorted)-1], Rounds: len(sorted)}
}

// String shows the median, and from where to where the rounds went.
func (s Spread) String() string {
	switch s.Rounds {
	case 0:
		return "–"
	case 1:
		return number(s.Median)
	default:
		return fmt.Sprintf("%s (%s to %s)", number(s.Median), number(s.Least), number(s.Most))
	}
}

// number shows three digits that mean something.
func number(value float64) string {
	switch size := math.Abs(value); {
	case size >= 100 || value == 0:
		return fmt.Sprintf("%.0f", value)
	case size >= 10:
		return fmt.Sprintf("%.1f", value)
	default:
		return fmt.Sprintf("%.2f", value)
	}
}
