package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// cachePatience is how long the cache is given to learn of a volume that was
// just made. It only matters if the volume's whole life was missed.
const cachePatience = 10 * time.Second

// recentlyMade remembers for which claims a volume was made that the cache has
// not shown yet, so that a claim that is woken in between costs no requests.
type recentlyMade struct {
	mutex sync.Mutex
	when  map[types.UID]time.Time
}

// note remembers that a claim's volume was made now.
func (m *recentlyMade) note(claim types.UID, now time.Time) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.when == nil {
		m.when = map[types.UID]time.Time{}
	}
	m.when[claim] = now
}

// seen forgets a claim whose volume the cache has shown.
func (m *recentlyMade) seen(claim types.UID) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.when, claim)
}

// fresh returns for how long the cache may still not know of the claim's
// volume; 0 if none was made, or too long ago.
func (m *recentlyMade) fresh(claim types.UID, now time.Time) time.Duration {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	made, ok := m.when[claim]
	if !ok {
		return 0
	}
	rest := cachePatience - now.Sub(made)
	if rest <= 0 {
		delete(m.when, claim)
		return 0
	}
	return rest
}
