package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// gauge returns what the metric of the brake says.
func gauge(t *testing.T, b *brake) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	if err := registry.Register(b.metrics.brake); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("gather: %v, %v", families, err)
	}
	return families[0].GetMetric()[0].GetGauge().GetValue()
}

// setBrake writes the state that an administrator may write.
func setBrake(t *testing.T, b *brake, state string) {
	t.Helper()
	record := brakeRecord(t, b)
	record.Data[brakeState] = state
	if err := b.write.client.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
}

// engagedBrake returns a brake that one of four mirrors has just engaged.
func engagedBrake(t *testing.T, now time.Time) (*brake, []*corev1.PersistentVolume) {
	t.Helper()
	b, volumes := braked(t, mirror.Limit{Count: 3}, times(now, 4, 0, 0)...)
	if held, err := b.holds(t.Context(), volumes[0], now); !held || err != nil {
		t.Fatalf("held: %v, %v", held, err)
	}
	return b, volumes
}

// Nothing is due any more, since all grants are there again: the metric, the
// record and an event still say that the brake is lifted, once it is.
func TestBrakeLiftedWhereNothingIsDue(t *testing.T) {
	now := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, start := range map[string]func(*brake) *brake{
		"the same process": func(b *brake) *brake { return b },
		"after a restart":  restarted,
	} {
		t.Run(name, func(t *testing.T) {
			b, volumes := engagedBrake(t, now)
			for _, volume := range volumes {
				if err := b.write.client.Delete(t.Context(), volume); err != nil {
					t.Fatal(err)
				}
			}
			b = start(b)
			b.watch(t.Context(), now.Add(time.Minute))
			if got := gauge(t, b); got != 1 {
				t.Errorf("engaged, the metric says %v, want 1", got)
			}
			setBrake(t, b, brakeLifted)
			b.watch(t.Context(), now.Add(2*time.Minute))
			if got := gauge(t, b); got != 0 {
				t.Errorf("lifted, the metric says %v, want 0", got)
			}
			if got := brakeRecord(t, b).Data[brakeLiftedAt]; got != "2027-01-01T12:02:00Z" {
				t.Errorf("recorded as lifted at %q", got)
			}
		})
	}
}

// A process that starts says what the record says, and asks no more than it has
// to: once, and then only while deletions are stopped.
func TestBrakeWatchAsksOnlyWhileStopped(t *testing.T) {
	now := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		state       string // "" is no record
		gauge       float64
		reads, lift int // of three looks, and of three more after it was lifted
	}{
		"no record":       {"", 0, 1, 0},
		"watching":        {brakeWatching, 0, 1, 0},
		"lifted":          {brakeLifted, 0, 1, 0},
		"engaged":         {brakeEngaged, 1, 3, 1},
		"no known state":  {"Lifted", 1, 3, 1},
		"an empty record": {" ", 1, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := engagedBrake(t, now)
			if row.state == "" {
				if err := b.write.client.Delete(t.Context(), brakeRecord(t, b)); err != nil {
					t.Fatal(err)
				}
			} else {
				setBrake(t, b, row.state)
			}
			b = restarted(b)
			b.metrics = counters(t)
			reads := 0
			b.live = reader{counting(t, b, &reads, nil)}
			for range 3 {
				b.watch(t.Context(), now)
			}
			if got := gauge(t, b); got != row.gauge || reads != row.reads {
				t.Errorf("the metric says %v after %d reads, want %v after %d", got, reads, row.gauge, row.reads)
			}
			if row.state == "" {
				return
			}
			b.live = b.cache
			setBrake(t, b, brakeLifted)
			reads = 0
			b.live = reader{counting(t, b, &reads, nil)}
			for range 3 {
				b.watch(t.Context(), now)
			}
			if got := gauge(t, b); got != 0 || reads != row.lift {
				t.Errorf("lifted, the metric says %v after %d reads, want 0 after %d", got, reads, row.lift)
			}
		})
	}
}

// A record that cannot be read is asked for until it can, and the metric stays
// as it was.
func TestBrakeWatchFails(t *testing.T) {
	now := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	b, _ := engagedBrake(t, now)
	setBrake(t, b, brakeLifted)
	reads, whole := 0, b.live
	b.live = reader{counting(t, b, &reads, errors.New("the API server is away"))}
	for range 3 {
		b.watch(t.Context(), now)
	}
	if got := gauge(t, b); got != 1 || reads != 3 {
		t.Errorf("the metric says %v after %d reads, want 1 after 3", got, reads)
	}
	b.live = whole
	b.watch(t.Context(), now)
	if got := gauge(t, b); got != 0 {
		t.Errorf("lifted, the metric says %v, want 0", got)
	}
}

// counting returns the brake's client, which counts reads, and fails them with
// an error if there is one.
func counting(t *testing.T, b *brake, reads *int, fail error) client.Client {
	t.Helper()
	whole, ok := b.write.client.(client.WithWatch)
	if !ok {
		t.Fatal("the fake client cannot count")
	}
	return interceptor.NewClient(whole, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			*reads++
			if fail != nil {
				return fail
			}
			return c.Get(ctx, key, object, options...)
		},
	})
}
