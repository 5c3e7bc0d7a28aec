package report

import (
	"testing"
	"time"
)

func TestLatencyOf(t *testing.T) {
	var took []time.Duration
	for i := 200; i > 0; i-- {
		took = append(took, time.Duration(i)*time.Millisecond)
	}
	if got, want := LatencyOf(took), (Latency{200, 100, 190, 198, 200}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := LatencyOf(nil); got != (Latency{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestQuantile(t *testing.T) {
	for _, tc := range []struct {
		sorted []float64
		share  float64
		want   float64
	}{
		{nil, 0.5, 0},
		{[]float64{7}, 0, 7},
		{[]float64{7}, 1, 7},
		{[]float64{1, 2, 3}, 0.5, 2},
		{[]float64{1, 2, 3, 4}, 0.5, 2},
		{[]float64{1, 2, 3, 4}, 0.99, 4},
	} {
		if got := Quantile(tc.sorted, tc.share); got != tc.want {
			t.Errorf("Quantile(%v, %v) = %v, want %v", tc.sorted, tc.share, got, tc.want)
		}
	}
}

func TestSpread(t *testing.T) {
	for _, tc := range []struct {
		values []float64
		want   string
	}{
		{nil, "–"},
		{[]float64{3.14159}, "3.14"},
		{[]float64{30, 10, 20}, "20.0 (10.0 to 30.0)"},
		{[]float64{400, 100}, "250 (100 to 400)"},
	} {
		if got := SpreadOf(tc.values).String(); got != tc.want {
			t.Errorf("SpreadOf(%v) = %q, want %q", tc.values, got, tc.want)
		}
	}
}
