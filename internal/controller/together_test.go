package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// slowReader takes a second for each read, and gives the time at which it began.
type slowReader struct {
	client.Reader
	mutex sync.Mutex
	reads int
	fail  error
}

func (s *slowReader) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	began := time.Now()
	s.mutex.Lock()
	s.reads++
	s.mutex.Unlock()
	time.Sleep(time.Second) // the test's clock, not a wait
	if s.fail != nil {
		return s.fail
	}
	out.SetName(key.Name)
	out.SetAnnotations(map[string]string{"began": began.Format(time.RFC3339Nano)})
	return nil
}

// Whoever asks gets what was read after it asked, and its own copy; and of many
// who ask at the same time few read.
func TestReadsAreSharedAndFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowReader{}
		live := reader{readTogether(slow)}
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 20 * time.Millisecond)
				asked := time.Now()
				claim, err := live.claim(t.Context(), client.ObjectKey{Namespace: "lab", Name: "data"})
				if err != nil {
					t.Errorf("read %d: %v", i, err)
					return
				}
				began, err := time.Parse(time.RFC3339Nano, claim.Annotations["began"])
				if err != nil || began.Before(asked) {
					t.Errorf("read %d asked at %v, and was read at %q (%v): want not before", i, asked, claim.Annotations["began"], err)
				}
				claim.Annotations["began"] = "changed by its reader"
			})
		}
		all.Wait()
		if slow.reads > 4 { // in two seconds, of a second each, and what then waits
			t.Errorf("%d reads for 100 who asked within 2 s, want at most 4", slow.reads)
		}
		if together, _ := live.Reader.(*together); len(together.waiting) > 0 || len(together.running) > 0 {
			t.Errorf("left behind: %v waiting, %v running", together.waiting, together.running)
		}
	})
}

func TestReadsOfDifferentObjectsAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowReader{}
		live := reader{readTogether(slow)}
		began := time.Now()
		var all sync.WaitGroup
		for i := range 10 {
			name := fmt.Sprint("data", i)
			all.Go(func() {
				claim, err := live.claim(t.Context(), client.ObjectKey{Namespace: "lab", Name: name})
				if err != nil || claim.Name != name {
					t.Errorf("claim %s: got %v (%v)", name, claim, err)
				}
			})
			all.Go(func() {
				if volume, err := live.volume(t.Context(), name); err != nil || volume.Name != name {
					t.Errorf("volume %s: got %v (%v)", name, volume, err)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took != time.Second || slow.reads != 20 {
			t.Errorf("20 objects took %v and %d reads, want one second and 20", took, slow.reads)
		}
	})
}

func TestSharedReadsFailTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowReader{fail: errors.New("away")}
		live := reader{readTogether(slow)}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if claim, err := live.claim(t.Context(), client.ObjectKey{Namespace: "lab", Name: "data"}); !errors.Is(err, slow.fail) || claim != (*corev1.PersistentVolumeClaim)(nil) {
					t.Errorf("got %v (%v), want no claim and the reader's error", claim, err)
				}
			})
		}
		all.Wait()
		if slow.reads > 2 {
			t.Errorf("%d reads, want at most 2", slow.reads)
		}
	})
}
