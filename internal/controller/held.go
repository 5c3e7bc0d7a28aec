package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// retakePatience is how long a mirror that another instance took is left to it,
// where both select its namespace.
const retakePatience = 10 * time.Minute

// held remembers which mirrors this instance looked after, and when another
// instance took them. The zero value remembers nothing.
type held struct {
	mutex sync.Mutex
	ours  map[types.UID]bool
	lost  map[types.UID]time.Time
}

// remember notes that a claim's mirror is ours.
func (h *held) remember(claim types.UID) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.ours == nil {
		h.ours, h.lost = map[types.UID]bool{}, map[types.UID]time.Time{}
	}
	h.ours[claim] = true
	delete(h.lost, claim)
}

// rest returns for how long a mirror that is another's is not to be taken: it
// was ours, and was taken although its namespace is selected here.
func (h *held) rest(claim types.UID, selected bool, now time.Time) time.Duration {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.ours[claim] {
		delete(h.ours, claim)
		if selected {
			h.lost[claim] = now
		}
	}
	since, lost := h.lost[claim]
	if !lost {
		return 0
	}
	return max(retakePatience-now.Sub(since), 0)
}

// forget drops a claim that is gone.
func (h *held) forget(claim types.UID) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	delete(h.ours, claim)
	delete(h.lost, claim)
}
