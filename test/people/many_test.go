package people_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// list and map of 5,000 mirrors take a handful of requests, and a list of a few
// is not slowed down by the many.
func TestListOfManyMirrors(t *testing.T) {
	t.Parallel()
	w := crowded.world(t)
	for _, tc := range []struct {
		args     string
		lines    int // at least
		requests int // at most
	}{
		{"list -A -o name", crowdMirrors + crowdFew, 9},
		{"list -A -o wide --sort-by=age", crowdMirrors + crowdFew, 9},
		{"list -A --revoked -o name", 0, 9}, // no controller has said anything
		{"list -A -o name --origin " + crowdSmall.String(), crowdFew, 9},
		{"list -o name -n " + crowdSpace(0), crowdMirrors / crowdSpaces, 6},
		{"list -o name -n " + crowdNS, 0, 4},
		{"map", 10, 9},
	} {
		began := time.Now()
		got := w.mooring(w.admin, append(strings.Fields(tc.args), "--requests")...)
		took := time.Since(began)
		requests := 0
		if at := strings.Index(got.err, "requests: "); at >= 0 {
			_, _ = fmt.Sscanf(got.err[at:], "requests: %d", &requests)
		}
		lines := strings.Count(got.out, "\n")
		t.Logf("mooring %s: %d lines, %d requests, %v", tc.args, lines, requests, took.Round(time.Millisecond))
		if got.code != 0 || lines < tc.lines || requests == 0 || requests > tc.requests {
			t.Errorf("want %d lines, %d requests\n%.2000s", tc.lines, tc.requests, got.err)
		}
	}
}
