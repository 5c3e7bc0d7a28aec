package controller

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// cachePatience is how long the cache is given to show a write of ours. It only
// matters if the written object's whole life was missed.
const cachePatience = 10 * time.Second

// mostNotes is how many notes may pile up before those of claims that went
// before the cache showed anything are swept out.
const mostNotes = 1024

// recently remembers, for claims by UID, what was just written that the cache
// has not shown yet, so that a claim that is woken in between is not written,
// or spoken to, twice. The zero value remembers nothing.
type recently[T comparable] struct {
	mutex sync.Mutex
	notes map[types.UID]note[T]
}

type note[T comparable] struct {
	what T
	when time.Time
}

// remember notes what was written for a claim now.
func (r *recently[T]) remember(claim types.UID, what T, now time.Time) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.notes == nil {
		r.notes = map[types.UID]note[T]{}
	}
	if len(r.notes) >= mostNotes {
		maps.DeleteFunc(r.notes, func(_ types.UID, n note[T]) bool { return now.Sub(n.when) >= cachePatience })
	}
	r.notes[claim] = note[T]{what, now}
}

// forget drops the note of a claim whose write the cache has shown, or that is
// gone.
func (r *recently[T]) forget(claim types.UID) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.notes, claim)
}

// rest returns for how long the cache may still not show what was written for
// the claim; 0 if something else was written, nothing, or too long ago.
func (r *recently[T]) rest(claim types.UID, what T, now time.Time) time.Duration {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	note, ok := r.notes[claim]
	if !ok || note.what != what {
		return 0
	}
	rest := cachePatience - now.Sub(note.when)
	if rest <= 0 {
		delete(r.notes, claim)
		return 0
	}
	return rest
}
