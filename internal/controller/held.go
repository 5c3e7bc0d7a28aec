package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// retakePatience is how long a mirror that another instance took is left to it,
// where both select its namespace. Each time it is taken again the patience
// doubles, up to mostRetakes times: an instance that runs no more is succeeded
// in the end, and two that run do not take from each other without end.
const (
	retakePatience = 10 * time.Minute
	mostRetakes    = 6
)

// held remembers which mirrors this instance looked after, and when another
// instance took them. The zero value remembers nothing.
type held struct {
	mutex sync.Mutex
	ours  map[types.UID]bool
	lost  map[types.UID]loss
}

// loss is when and how often a mirror was taken from this instance although its
// namespace, with these labels, is selected here.
type loss struct {
	since  time.Time
	labels string
	times  int
}

// remember notes that a claim's mirror is ours.
func (h *held) remember(claim types.UID) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.ours == nil {
		h.ours, h.lost = map[types.UID]bool{}, map[types.UID]loss{}
	}
	h.ours[claim] = true
}

// has reports whether a claim's mirror was ours when it was seen last.
func (h *held) has(claim types.UID) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.ours[claim]
}

// rest returns for how long a mirror that is another's is not to be taken: it
// was ours, and was taken although its namespace is selected here. Labels that
// have changed since may have made it another's namespace, or ours alone: then
// it may be taken at once.
func (h *held) rest(claim types.UID, selected bool, labels string, now time.Time) time.Duration {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	taken, lost := h.ours[claim], h.lost[claim]
	delete(h.ours, claim)
	if !selected || lost.labels != labels {
		delete(h.lost, claim)
		lost = loss{labels: labels}
	}
	switch {
	case !selected:
		return 0
	case taken:
		lost.since, lost.times = now, lost.times+1
		h.lost[claim] = lost
	case lost.times == 0:
		return 0
	}
	patience := retakePatience << min(lost.times-1, mostRetakes)
	return max(patience-now.Sub(lost.since), 0)
}

// forget drops a claim that is gone.
func (h *held) forget(claim types.UID) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	delete(h.ours, claim)
	delete(h.lost, claim)
}
