package controller

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Two instances that select one namespace take a mirror from each other seldom,
// and ever more so; one whose namespace is handed away and back takes it at once.
func TestHeld(t *testing.T) {
	const claim, both, other = types.UID("u"), "served=both", "served=other"
	start := time.Now()
	for _, tc := range []struct {
		name string
		// act is what happened before; labels and after are those of the last look.
		act    func(h *held)
		labels string
		after  time.Duration
		want   time.Duration
	}{
		{"never ours", func(*held) {}, both, 0, 0},
		{"taken from us just now", func(h *held) { h.remember(claim) }, both, 0, 10 * time.Minute},
		{"taken from us a while ago", func(h *held) { h.remember(claim); h.rest(claim, true, both, start) }, both, 9 * time.Minute, time.Minute},
		{"taken from us long ago", func(h *held) { h.remember(claim); h.rest(claim, true, both, start) }, both, 10 * time.Minute, 0},
		{"and again", func(h *held) {
			for range 2 {
				h.remember(claim)
				h.rest(claim, true, both, start)
			}
		}, both, 9 * time.Minute, 11 * time.Minute},
		{"and ever again", func(h *held) {
			for range 100 {
				h.remember(claim)
				h.rest(claim, true, both, start)
			}
		}, both, 0, 640 * time.Minute},
		{"its namespace has other labels since", func(h *held) { h.remember(claim); h.rest(claim, true, both, start) }, other, 0, 0},
		{"its namespace was not ours for a while", func(h *held) {
			h.remember(claim)
			h.rest(claim, true, both, start)
			h.rest(claim, false, other, start)
		}, both, 0, 0},
		{"taken when its namespace was not ours any more", func(h *held) { h.remember(claim); h.rest(claim, false, other, start) }, both, 0, 0},
		{"gone meanwhile", func(h *held) { h.remember(claim); h.forget(claim) }, both, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var h held
			tc.act(&h)
			if got := h.rest(claim, true, tc.labels, start.Add(tc.after)); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
