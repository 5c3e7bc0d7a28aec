package controller

import (
	"maps"
	"sync"
	"time"
)

// cachePatience is how long the cache is given to show a write of ours. It only
// matters if the written object's whole life was missed.
const cachePatience = 10 * time.Second

// mostNotes is how many notes may pile up before the old ones, which nobody
// came back for, are swept out.
const mostNotes = 1024

// recently remembers, for claims or whatever else, what was just written that
// the cache has not shown yet, so that a claim that is woken in between is not
// written, or spoken to, twice. The zero value remembers nothing.
type recently[K, T comparable] struct {
	mutex sync.Mutex
	notes map[K]note[T]
}

type note[T comparable] struct {
	what T
	when time.Time
}

// remember notes what was written for a key now.
func (r *recently[K, T]) remember(key K, what T, now time.Time) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.notes == nil {
		r.notes = map[K]note[T]{}
	}
	if len(r.notes) >= mostNotes {
		maps.DeleteFunc(r.notes, func(_ K, n note[T]) bool { return now.Sub(n.when) >= cachePatience })
	}
	r.notes[key] = note[T]{what, now}
}

// forget drops the note of a key whose write the cache has shown, or that is
// gone.
func (r *recently[K, T]) forget(key K) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.notes, key)
}

// rest returns for how long the cache may still not show what was written for
// the key; 0 if something else was written, nothing, or too long ago.
func (r *recently[K, T]) rest(key K, what T, now time.Time) time.Duration {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	note, ok := r.notes[key]
	if !ok || note.what != what {
		return 0
	}
	rest := cachePatience - now.Sub(note.when)
	if rest <= 0 {
		delete(r.notes, key)
		return 0
	}
	return rest
}

// last returns what was written for the key, and for how long the cache may
// still not show it; 0 if nothing was, or too long ago.
func (r *recently[K, T]) last(key K, now time.Time) (what T, rest time.Duration) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	note, ok := r.notes[key]
	if !ok {
		return what, 0
	}
	return note.what, max(cachePatience-now.Sub(note.when), 0)
}
