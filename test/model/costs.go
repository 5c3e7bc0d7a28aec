package model

import (
	"fmt"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
)

// What an operation may cost at most, on average: an operation on an origin, a
// namespace or a class concerns many claims, one on a claim one.
const (
	eventsPerOperation = 3
	writesPerOperation = 8
)

// countEvents checks that there are not more events than people can read.
func (m *Model) countEvents() {
	m.Helper()
	var all eventsv1.EventList
	m.must(m.List(m.Context(), &all), "list events")
	n, by := 0, map[string]int{}
	for _, event := range all.Items {
		if event.ReportingController == "mooring-controller" {
			n++
			by[event.Reason]++
		}
	}
	m.Logf("%d events, %.2f for each operation, %.2f for each claim or origin concerned: %v", n, float64(n)/float64(m.applied), float64(n)/float64(m.reach), by)
	if n > eventsPerOperation*m.applied {
		m.Errorf("%d events for %d operations", n, m.applied)
	}
}

// countWrites checks that Mooring wrote what it may, and not
// without end.
func (m *Model) countWrites() {
	m.Helper()
	if m.options.Writes == nil {
		return
	}
	n := 0
	counts := m.options.Writes()
	for what, times := range counts {
		n += times
		verb, resource, _ := strings.Cut(what, " ")
		resource, _, _ = strings.Cut(resource, " ")
		if !strings.Contains(allWrites, fmt.Sprintf("%s %s;", verb, resource)) {
			m.Errorf("it wrote %s, %d times", what, times)
		}
	}
	m.Logf("%d writes, %.2f for each operation, %.2f for each claim or origin concerned: %v", n, float64(n)/float64(m.applied), float64(n)/float64(m.reach), counts)
	if n > writesPerOperation*m.applied {
		m.Errorf("%d writes for %d operations", n, m.applied)
	}
}

// allWrites are the writes that Mooring makes at all.
const allWrites = "create persistentvolumes;patch persistentvolumes;delete persistentvolumes;" +
	"patch persistentvolumeclaims;patch persistentvolumeclaims/status;delete persistentvolumeclaims;create persistentvolumeclaims;" +
	"create events;patch events;create configmaps;update configmaps;"

// countDeletions checks that the claims which Mooring deleted, by the count
// of its writes, are those that were seen deleted by nobody else.
func (w *watcher) countDeletions() {
	w.m.Helper()
	if w.m.options.Writes == nil {
		return
	}
	w.mutex.Lock()
	seen := len(w.ended)
	w.mutex.Unlock()
	if wrote := w.m.options.Writes()["delete persistentvolumeclaims"]; wrote < seen {
		w.m.Errorf("%d claims were deleted by nobody known, and Mooring deleted %d", seen, wrote)
	}
}
