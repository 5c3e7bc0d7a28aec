package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/test/bench/report"
)

// patience is how long a trial may stand still before it has failed.
const patience = 2 * time.Minute

// timeline notes, by watches and one clock, when claims of a trial were created,
// got their volumes and were Bound.
type timeline struct {
	want int
	stop []func()

	mutex                  sync.Mutex
	created, volume, bound map[types.NamespacedName]time.Time
	lastVolume, lastBound  time.Time
	moved                  chan struct{} // something was noted
	volumes, bounds        chan struct{} // closed when all are there
	broken                 error
}

// follow begins to watch for so many claims.
func (s *stage) follow(ctx context.Context, want int) (*timeline, error) {
	t := &timeline{
		want:    want,
		created: map[types.NamespacedName]time.Time{}, volume: map[types.NamespacedName]time.Time{}, bound: map[types.NamespacedName]time.Time{},
		moved: make(chan struct{}, 1), volumes: make(chan struct{}), bounds: make(chan struct{}),
	}
	for _, what := range []struct {
		list    client.ObjectList
		options []client.ListOption
	}{
		{&corev1.PersistentVolumeClaimList{}, []client.ListOption{client.HasLabels{markLabel}}},
		{&corev1.PersistentVolumeList{}, nil},
	} {
		// From now on: what is there already is no part of the trial, and a list of
		// one that is thrown away tells which version now is.
		now, _ := what.list.DeepCopyObject().(client.ObjectList)
		if err := s.List(ctx, now, client.Limit(1)); err != nil {
			return nil, err
		}
		from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: now.GetResourceVersion()}}
		from.ApplyOptions(what.options)
		events, err := s.Watch(ctx, what.list, from)
		if err != nil {
			return nil, err
		}
		t.stop = append(t.stop, events.Stop)
		go t.read(events)
	}
	return t, nil
}

func (t *timeline) end() {
	for _, stop := range t.stop {
		stop()
	}
}

func (t *timeline) read(events watch.Interface) {
	for event := range events.ResultChan() {
		switch object := event.Object.(type) {
		case *corev1.PersistentVolume:
			if ref := object.Spec.ClaimRef; event.Type == watch.Added && ref != nil {
				t.note(t.volume, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, time.Now())
			}
		case *corev1.PersistentVolumeClaim:
			if object.Status.Phase == corev1.ClaimBound && event.Type != watch.Deleted {
				t.note(t.bound, client.ObjectKeyFromObject(object), time.Now())
			}
		default:
			t.fail(fmt.Errorf("a watch ended: %v", event.Object))
		}
	}
}

// begin notes that a claim is about to be created.
func (t *timeline) begin(claim client.Object) {
	t.note(t.created, client.ObjectKeyFromObject(claim), time.Now())
}

func (t *timeline) note(where map[types.NamespacedName]time.Time, key types.NamespacedName, when time.Time) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if _, known := where[key]; known {
		return
	}
	where[key] = when
	if len(t.volume) == t.want && t.lastVolume.IsZero() {
		t.lastVolume = when
		close(t.volumes)
	}
	if len(t.bound) == t.want && t.lastBound.IsZero() {
		t.lastBound = when
		close(t.bounds)
	}
	select {
	case t.moved <- struct{}{}:
	default:
	}
}

func (t *timeline) fail(err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.broken = err
}

// wait waits until all volumes, or all that is bound, were seen, as long as
// there is something new within patience.
func (t *timeline) wait(ctx context.Context, all <-chan struct{}) error {
	still := time.NewTimer(patience)
	defer still.Stop()
	for {
		select {
		case <-all:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.moved:
			still.Reset(patience)
		case <-still.C:
			t.mutex.Lock()
			defer t.mutex.Unlock()
			return errors.Join(t.broken, fmt.Errorf("nothing moved for %v: of %d claims %d have volumes and %d are Bound",
				patience, t.want, len(t.volume), len(t.bound)))
		}
	}
}

// latencies are those from creation.
func (t *timeline) latencies() (toVolume, toBound report.Latency) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	took := func(until map[types.NamespacedName]time.Time) report.Latency {
		var all []time.Duration
		for key, begun := range t.created {
			if end, ok := until[key]; ok {
				all = append(all, end.Sub(begun))
			}
		}
		return report.LatencyOf(all)
	}
	return took(t.volume), took(t.bound)
}
