package controller

import (
	"hash/maphash"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// originLocks keep an origin's finalizer and its mirror volumes together: who
// makes a volume shares the origin's lock from before the finalizer is there
// until the volume is; who removes the finalizer holds it alone, so that no
// volume is made between its live list and its write.
//
// A lock may serve several origins; that costs time only, and little.
type originLocks struct {
	seed    maphash.Seed
	locks   [stripes]sync.RWMutex
	writing [stripes]sync.Mutex
}

const stripes = 256

func newOriginLocks() *originLocks { return &originLocks{seed: maphash.MakeSeed()} }

// share holds the lock together with other makers; the result lets go of it.
func (l *originLocks) share(origin types.NamespacedName) (release func()) {
	lock := l.of(origin)
	lock.RLock()
	return lock.RUnlock
}

// alone holds the lock with nobody else; the result lets go of it.
func (l *originLocks) alone(origin types.NamespacedName) (release func()) {
	lock := l.of(origin)
	lock.Lock()
	return lock.Unlock
}

// one is held, within share, by the one maker that does what the key names, such
// as writing an origin; the result lets go of it. It is not to be held twice.
func (l *originLocks) one(key string) (release func()) {
	lock := &l.writing[l.stripe(key)]
	lock.Lock()
	return lock.Unlock
}

// oneOf is as one; waited says that another maker held it, who may have done it.
func (l *originLocks) oneOf(key string) (release func(), waited bool) {
	lock := &l.writing[l.stripe(key)]
	if lock.TryLock() {
		return lock.Unlock, false
	}
	return l.one(key), true
}

func (l *originLocks) of(origin types.NamespacedName) *sync.RWMutex {
	return &l.locks[l.stripe(origin.String())]
}

func (l *originLocks) stripe(key string) uint64 { return maphash.String(l.seed, key) % stripes }
