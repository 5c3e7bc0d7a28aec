package integration_test

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// history is what watches of a plane have seen, and when: what polling would
// miss, and what is gone by the time that a test asks.
type history struct {
	mutex sync.Mutex
	// marks are the times since when a volume said that its mirror is revoked, by
	// the volume's name, each once.
	marks map[string][]time.Time
	// ends is when a claim was first seen being deleted, or gone.
	ends map[types.UID]time.Time
	// says are the changes of claims' conditions.
	says map[types.UID][]said
}

type said struct {
	when   time.Time
	status corev1.ConditionStatus
	reason string
}

// watchHistory begins to watch, until the test ends.
func (w *world) watchHistory() *history {
	w.Helper()
	h := &history{marks: map[string][]time.Time{}, ends: map[types.UID]time.Time{}, says: map[types.UID][]said{}}
	connection, err := client.NewWithWatch(w.plane.Admin(), client.Options{})
	w.must(err, "connect with watches")
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	w.Cleanup(func() { cancel(); wait.Wait() })
	for _, list := range []client.ObjectList{&corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}} {
		events, err := connection.Watch(ctx, list)
		w.must(err, "watch")
		wait.Go(func() {
			defer events.Stop()
			for event := range events.ResultChan() {
				h.note(event)
			}
		})
	}
	return h
}

func (h *history) note(event watch.Event) {
	now := time.Now()
	h.mutex.Lock()
	defer h.mutex.Unlock()
	switch object := event.Object.(type) {
	case *corev1.PersistentVolume:
		at, err := time.Parse(time.RFC3339Nano, object.Annotations[names.RevokedAt()])
		if err == nil && !slices.Contains(h.marks[object.Name], at) {
			h.marks[object.Name] = append(h.marks[object.Name], at)
		}
	case *corev1.PersistentVolumeClaim:
		if _, known := h.ends[object.UID]; !known && (object.DeletionTimestamp != nil || event.Type == watch.Deleted) {
			h.ends[object.UID] = now
		}
		condition, all := conditionOf(object), h.says[object.UID]
		if len(all) == 0 || all[len(all)-1].status != condition.Status || all[len(all)-1].reason != condition.Reason {
			h.says[object.UID] = append(all, said{now, condition.Status, condition.Reason})
		}
	}
}

// marksOf returns since when a volume has ever said that its mirror is revoked.
func (h *history) marksOf(volume string) []time.Time {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Clone(h.marks[volume])
}

// endOf returns when a claim's deletion was seen; zero if it was not.
func (h *history) endOf(claim types.UID) time.Time {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.ends[claim]
}

// ended returns how many claims were seen deleted.
func (h *history) ended() int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return len(h.ends)
}

// since returns when a claim was first seen, after a time, with a condition of
// this status; zero if it was not.
func (h *history) since(claim types.UID, after time.Time, status corev1.ConditionStatus) time.Time {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, s := range h.says[claim] {
		if s.when.After(after) && s.status == status {
			return s.when
		}
	}
	return time.Time{}
}

// endedInTime checks that a claim's deletion, which has happened, did not begin
// before the delay after the time that its volume told last, and returns how
// much after.
func (h *history) endedInTime(w *world, claim *corev1.PersistentVolumeClaim, delay time.Duration) time.Duration {
	w.Helper()
	w.until("the deletion of "+claim.Name+" is seen", func(context.Context) string {
		return unless(!h.endOf(claim.UID).IsZero(), "it is not")
	})
	marks := h.marksOf("pvc-" + string(claim.UID))
	if len(marks) == 0 {
		w.Fatalf("claim %s was deleted, and its volume never said since when it is revoked", claim.Name)
	}
	late := h.endOf(claim.UID).Sub(marks[len(marks)-1].Add(delay))
	if late < 0 {
		w.Errorf("claim %s was deleted %v before its time", claim.Name, -late)
	}
	return late
}
