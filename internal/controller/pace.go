package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// paceOf is how many times as long as it took a work is left alone before it
	// is done again.
	paceOf = 5
	// paceFrom is what is too short to be worth it, and paceMost the longest.
	paceFrom = 10 * time.Millisecond
	paceMost = 10 * time.Second
)

// pace spreads out work on an object that takes the longer the more others it
// has, and is asked for once for each of them: looking at 5,000 mirrors whenever
// one of them changes would keep a worker busy for as long as they do. Who waits
// is to come again, so that nothing is missed. The zero value has seen nothing.
type pace struct {
	mutex sync.Mutex
	next  map[types.NamespacedName]time.Time
}

// rest returns for how long an object is to be left alone.
func (p *pace) rest(object types.NamespacedName, now time.Time) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return max(p.next[object].Sub(now), 0)
}

// done notes that the work was done from one time to another.
func (p *pace) done(object types.NamespacedName, began, now time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	pause := paceOf * now.Sub(began)
	if pause < paceFrom {
		delete(p.next, object)
		return
	}
	if p.next == nil {
		p.next = map[types.NamespacedName]time.Time{}
	}
	p.next[object] = now.Add(min(pause, paceMost))
}

// pause leaves an object alone for a while.
func (p *pace) pause(object types.NamespacedName, pause time.Duration, now time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.next == nil {
		p.next = map[types.NamespacedName]time.Time{}
	}
	p.next[object] = now.Add(pause)
}

// notYet is an error that says when to come again; nothing went wrong.
type notYet struct{ rest time.Duration }

func (e notYet) Error() string { return "not before " + e.rest.String() }

// forget drops an object that is gone.
func (p *pace) forget(object types.NamespacedName) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.next, object)
}
