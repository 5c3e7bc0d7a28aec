package controller

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// braked returns a brake over mirrors that lost their grant at these times, and
// their volumes; zero is one that has it.
func braked(t *testing.T, limit mirror.Limit, revokedAt ...time.Time) (*brake, []*corev1.PersistentVolume) {
	t.Helper()
	origin, data := shared()
	var objects []client.Object
	var volumes []*corev1.PersistentVolume
	for i, at := range revokedAt {
		_, volume := mirrorOf(i, origin, data)
		if !at.IsZero() {
			volume.Annotations[names.RevokedAt()] = at.UTC().Format(time.RFC3339Nano)
		}
		objects, volumes = append(objects, volume), append(volumes, volume)
	}
	in := cluster(t, objects...)
	say, _ := heard(t, in)
	return &brake{
		options: Options{Names: names, OwnNamespace: "mooring-system", BrakeName: "mooring-brake", MaxRevocations: limit},
		cache:   reader{in}, live: reader{in}, write: writer{in, names}, say: say, metrics: say.metrics,
	}, volumes
}

// times returns n times, one after another, from an age on.
func times(now time.Time, n int, age, each time.Duration) []time.Time {
	var all []time.Time
	for i := range n {
		all = append(all, now.Add(time.Duration(i)*each-age))
	}
	return all
}

// allowed returns how many of the mirrors may be ended, one after another, at
// one time.
func allowed(t *testing.T, b *brake, volumes []*corev1.PersistentVolume, now time.Time) int {
	t.Helper()
	count := 0
	for _, volume := range volumes {
		held, err := b.holds(context.Background(), volume, now)
		if err != nil {
			t.Fatal(err)
		}
		if !held {
			count++
		}
	}
	return count
}

// Whatever the time between the loss of the grant and the deletion is, which the
// class says, too many losses within ten minutes stop all deletions.
func TestBrakeHolds(t *testing.T) {
	now := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name      string
		limit     mirror.Limit
		revokedAt []time.Time
		want      int // how many may be ended
	}{
		{"as many as may", mirror.Limit{Count: 3}, times(now, 3, 0, 0), 3},
		{"one too many, just now", mirror.Limit{Count: 3}, times(now, 4, 0, 0), 0},
		{"none may", mirror.Limit{}, times(now, 1, 0, 0), 0},
		{"one too many, five minutes ago", mirror.Limit{Count: 3}, times(now, 4, 5*time.Minute, 0), 0},
		{"one too many, an hour ago", mirror.Limit{Count: 3}, times(now, 4, time.Hour, 0), 0},
		{"one too many, within ten minutes an hour ago", mirror.Limit{Count: 3}, times(now, 4, time.Hour, 3*time.Minute), 0},
		{"the same number within more time", mirror.Limit{Count: 3}, times(now, 4, time.Hour, 4*time.Minute), 4},
		{"many, slowly", mirror.Limit{Count: 3}, times(now, 15, time.Hour, 4*time.Minute), 15},
		{"other ones, just now", mirror.Limit{Count: 3}, append(times(now, 1, time.Hour, 0), times(now, 4, 0, 0)...), 0},
		{"the part of all is larger", mirror.Limit{Count: 1, Percent: 50}, append(times(now, 2, 0, 0), make([]time.Time, 2)...), 4},
		{"and too small", mirror.Limit{Count: 1, Percent: 50}, append(times(now, 2, 0, 0), make([]time.Time, 1)...), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, volumes := braked(t, tc.limit, tc.revokedAt...)
			if got := allowed(t, b, volumes, now); got != tc.want {
				t.Errorf("%d of %d claims are deleted, want %d", got, len(volumes), tc.want)
			}
		})
	}
}

// Volumes go with their claims, and still count.
func TestBrakeCountsWhatIsGone(t *testing.T) {
	now := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, after := range map[string]time.Duration{"at once": 0, "after an hour": time.Hour} {
		t.Run(name, func(t *testing.T) {
			b, volumes := braked(t, mirror.Limit{Count: 3}, times(now.Add(-after), 3, 0, 0)...)
			if got := allowed(t, b, volumes, now); got != 3 {
				t.Fatalf("%d claims are deleted, want 3", got)
			}
			for _, volume := range volumes {
				if err := b.write.client.Delete(context.Background(), volume); err != nil {
					t.Fatal(err)
				}
			}
			origin, data := shared()
			_, next := mirrorOf(99, origin, data)
			next.Annotations[names.RevokedAt()] = now.Add(-after).Format(time.RFC3339Nano)
			if err := b.write.client.Create(context.Background(), next); err != nil {
				t.Fatal(err)
			}
			if held, err := b.holds(context.Background(), next, now.Add(time.Minute)); err != nil || !held {
				t.Errorf("the fourth within a minute is held: %v, %v", held, err)
			}
		})
	}
}

// An administrator lifts the brake: what was revoked before is looked at, what
// is revoked later counts anew.
func TestBrakeIsLifted(t *testing.T) {
	ctx, now := context.Background(), time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	b, volumes := braked(t, mirror.Limit{Count: 3}, append(times(now, 5, 0, 0), times(now.Add(time.Hour), 4, 0, 0)...)...)
	before, later := volumes[:5], volumes[5:]
	for _, volume := range later {
		if err := b.write.client.Delete(ctx, volume.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	if got := allowed(t, b, before, now); got != 0 {
		t.Fatalf("%d claims are deleted, want none", got)
	}
	var record corev1.ConfigMap
	if err := b.live.Get(ctx, types.NamespacedName{Namespace: "mooring-system", Name: "mooring-brake"}, &record); err != nil {
		t.Fatal(err)
	}
	if record.Data[brakeState] != brakeEngaged || record.Data[brakeRevoked] != "5" || record.Data[brakeLimit] != "3" || record.Data[brakeMirrors] != "5" {
		t.Errorf("recorded as %v", record.Data)
	}
	record.Data[brakeState] = brakeLifted
	if err := b.write.client.Update(ctx, &record); err != nil {
		t.Fatal(err)
	}
	if got := allowed(t, b, before, now.Add(time.Minute)); got != 5 {
		t.Errorf("after it was lifted %d claims are deleted, want 5", got)
	}
	for _, volume := range later {
		volume.ResourceVersion = ""
		if err := b.write.client.Create(ctx, volume); err != nil {
			t.Fatal(err)
		}
	}
	if got := allowed(t, b, later, now.Add(time.Hour)); got != 0 {
		t.Errorf("of the next change %d claims are deleted, want none", got)
	}
}

func TestBrakeWithoutPlaceForItsRecordHolds(t *testing.T) {
	b, volumes := braked(t, mirror.Limit{Count: 3}, time.Now())
	b.options.OwnNamespace = ""
	if held, err := b.holds(context.Background(), volumes[0], time.Now()); !held || err == nil {
		t.Errorf("held %v, %v", held, err)
	}
}

func TestMostWithin(t *testing.T) {
	now := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(minutes ...int) []time.Time {
		var all []time.Time
		for _, m := range minutes {
			all = append(all, now.Add(time.Duration(m)*time.Minute))
		}
		return all
	}
	for _, tc := range []struct {
		times []time.Time
		want  int
	}{
		{nil, 0}, {at(5), 1}, {at(0, 10), 2}, {at(0, 11), 1}, {at(30, 0, 20, 21, 22, 11), 4}, {at(0, 0, 0), 3},
	} {
		if got := mostWithin(tc.times, 10*time.Minute); got != tc.want {
			t.Errorf("%v: %d, want %d", tc.times, got, tc.want)
		}
	}
}
