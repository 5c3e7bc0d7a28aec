package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// together is a live reader for many workers: those who ask for an object while
// it is being read wait, and then share one read. That begins after each of them
// asked, so what they get is as fresh as by reads of their own; but a thousand
// mirrors of one origin do not read it a thousand times.
type together struct {
	client.Reader

	mutex   sync.Mutex
	waiting map[string]*read         // those that did not begin yet
	running map[string]chan struct{} // until when the latest one that began runs
}

// read is one read of one object. Its result stands once done is closed.
type read struct {
	before <-chan struct{} // what it waits for; nil for nothing
	done   chan struct{}
	object client.Object
	err    error
}

func readTogether(from client.Reader) *together {
	return &together{Reader: from, waiting: map[string]*read{}, running: map[string]chan struct{}{}}
}

// Get reads an object into out. A shared read has the context of whoever asked
// first; the controller's workers all end at the same time.
func (t *together) Get(ctx context.Context, key client.ObjectKey, out client.Object, options ...client.GetOption) error {
	if len(options) > 0 {
		return t.Reader.Get(ctx, key, out, options...)
	}
	about := fmt.Sprintf("%T %v %s", out, out.GetObjectKind().GroupVersionKind(), key)
	mine, isFirst := t.join(about)
	if isFirst {
		t.do(about, mine, func() (client.Object, error) { return out, t.Reader.Get(ctx, key, out) })
		return mine.err
	}
	<-mine.done
	if mine.err == nil {
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(mine.object.DeepCopyObject()).Elem())
	}
	return mine.err
}

// join returns a read of an object that did not begin yet, and whether it is the
// caller who must do it.
func (t *together) join(about string) (mine *read, isFirst bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if mine = t.waiting[about]; mine != nil {
		return mine, false
	}
	mine = &read{before: t.running[about], done: make(chan struct{})}
	t.waiting[about] = mine
	return mine, true
}

// do reads once the read before has ended. Who asks from then on is too late for
// this one.
func (t *together) do(about string, mine *read, get func() (client.Object, error)) {
	if mine.before != nil {
		<-mine.before
	}
	t.mutex.Lock()
	delete(t.waiting, about)
	t.running[about] = mine.done
	t.mutex.Unlock()

	mine.err = errReadEnded // should it panic
	defer t.end(about, mine)
	object, err := get()
	if err == nil {
		mine.object, _ = object.DeepCopyObject().(client.Object) // the first one's own is its to change
	}
	mine.err = err
}

var errReadEnded = errors.New("the read that this one shares ended without a result")

func (t *together) end(about string, mine *read) {
	t.mutex.Lock()
	if t.running[about] == mine.done {
		delete(t.running, about)
	}
	t.mutex.Unlock()
	close(mine.done)
}
