package controller

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// restarted returns the brake of a process that has just started, on the same
// cluster.
func restarted(b *brake) *brake {
	return &brake{options: b.options, cache: b.cache, live: b.live, write: b.write, say: b.say, metrics: b.metrics}
}

// brakeRecord reads the brake's record.
func brakeRecord(t *testing.T, b *brake) *corev1.ConfigMap {
	t.Helper()
	var record corev1.ConfigMap
	key := types.NamespacedName{Namespace: b.options.OwnNamespace, Name: b.options.BrakeName}
	if err := b.live.Get(t.Context(), key, &record); err != nil {
		t.Fatal(err)
	}
	return &record
}

// trickle revokes mirrors at these times, one after another, each after the claim and the volume
// of the one before have gone, and returns how many were ended. Before each the
// controller may start anew.
func trickle(t *testing.T, b *brake, at []time.Time, restarts bool) int {
	t.Helper()
	origin, data := shared()
	count := 0
	for i, now := range at {
		_, volume := mirrorOf(1000+i, origin, data)
		volume.Annotations[names.RevokedAt()] = now.UTC().Format(time.RFC3339Nano)
		if err := b.write.client.Create(t.Context(), volume); err != nil {
			t.Fatal(err)
		}
		if restarts {
			b = restarted(b)
		}
		held, err := b.holds(t.Context(), volume, now)
		if err != nil {
			t.Fatal(err)
		}
		if held {
			continue
		}
		count++
		if err := b.write.client.Delete(t.Context(), volume); err != nil {
			t.Fatal(err)
		}
	}
	return count
}

// The limit is one of time, not of a process: what was deleted by the process
// before counts, whether or not this one has seen it.
func TestBrakeRemembersAcrossRestarts(t *testing.T) {
	began := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name string
		each time.Duration
		want int
	}{
		{"all within a window", 30 * time.Second, 3},
		{"one more than fits into a window", 3 * time.Minute, 3},
		{"as many as may in every window", 4 * time.Minute, 12},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarts: %v", row.name, restarts), func(t *testing.T) {
				b, _ := braked(t, mirror.Limit{Count: 3})
				if got := trickle(t, b, times(began, 12, 0, row.each), restarts); got != row.want {
					t.Errorf("%d of 12 claims are deleted, want %d; the record: %v", got, row.want, brakeRecord(t, b).Data)
				}
			})
		}
	}
}

// A mirror whose claim was deleted, and whose volume is still there since Pods
// keep it, counts once.
func TestBrakeCountsOnceWhatStillGoes(t *testing.T) {
	now := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	b, volumes := braked(t, mirror.Limit{Count: 3}, times(now, 3, 0, 0)...)
	for range 2 {
		if got := allowed(t, b, volumes, now); got != 3 {
			t.Errorf("%d claims are deleted, want 3", got)
		}
		b = restarted(b)
	}
}

// The record forgets what no count asks for any more, keeps the rest through a
// stop and its lifting, and says when what happened.
func TestBrakeRecordsWhatEnded(t *testing.T) {
	began := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	b, _ := braked(t, mirror.Limit{Count: 3})
	trickle(t, b, times(began, 3, 0, time.Minute), false)
	line := func(i int, at string) string {
		return fmt.Sprintf("%s %s %s\n", mirror.VolumeName(uid(1000+i)), at, at)
	}
	all := line(0, "2027-01-01T12:00:00Z") + line(1, "2027-01-01T12:01:00Z") + line(2, "2027-01-01T12:02:00Z")
	record := brakeRecord(t, b)
	if record.Data[brakeState] != brakeWatching || record.Data[brakeEnded] != all {
		t.Errorf("recorded as %q, want %q", record.Data, all)
	}

	origin, data := shared()
	_, next := mirrorOf(1, origin, data)
	next.Annotations[names.RevokedAt()] = "2027-01-01T12:03:00Z"
	if err := b.write.client.Create(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if held, err := b.holds(t.Context(), next, began.Add(3*time.Minute)); err != nil || !held {
		t.Fatalf("the fourth is held: %v, %v", held, err)
	}
	if record = brakeRecord(t, b); record.Data[brakeState] != brakeEngaged || record.Data[brakeEnded] != all {
		t.Errorf("engaged, it is recorded as %q, want %q", record.Data, all)
	}

	record.Data[brakeState] = brakeLifted
	if err := b.write.client.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	at := began.Add(brakeMemory + time.Minute)
	if held, err := b.holds(t.Context(), next, at); err != nil || held {
		t.Fatalf("after it was lifted the fourth is held: %v, %v", held, err)
	}
	rest := fmt.Sprintf("%s 2027-01-01T12:03:00Z 2027-01-01T12:21:00Z\n", next.Name) +
		line(1, "2027-01-01T12:01:00Z") + line(2, "2027-01-01T12:02:00Z")
	if record = brakeRecord(t, b); record.Data[brakeState] != brakeLifted || record.Data[brakeEnded] != rest {
		t.Errorf("lifted, it is recorded as %q, want %q", record.Data, rest)
	}
}

// A record that somebody has made unreadable deletes nothing, and says which
// line it is.
func TestBrakeRecordUnreadable(t *testing.T) {
	const good = "pvc-a 2027-01-01T12:00:00Z 2027-01-01T12:00:00.5Z\n"
	const words = ": expected the name of a volume and two times, with a blank between them; nothing is deleted until that line is removed"
	for name, row := range map[string]struct{ ended, want string }{
		"one word":        {good + "pvc-b\n", `"pvc-b"` + words},
		"a word more":     {"pvc-b 2027-01-01T12:00:00Z 2027-01-01T12:00:00Z x", `"pvc-b 2027-01-01T12:00:00Z 2027-01-01T12:00:00Z x"` + words},
		"two blanks":      {"pvc-b  2027-01-01T12:00:00Z", `"pvc-b  2027-01-01T12:00:00Z": "": expected a time such as 2027-01-01T12:00:00Z; nothing is deleted until that line is removed`},
		"no name":         {" 2027-01-01T12:00:00Z 2027-01-01T12:00:00Z", `" 2027-01-01T12:00:00Z 2027-01-01T12:00:00Z"` + words},
		"an empty line":   {good + "\n" + good, `""` + words},
		"no first time":   {"pvc-b noon 2027-01-01T12:00:00Z", `"pvc-b noon 2027-01-01T12:00:00Z": "noon": expected a time such as 2027-01-01T12:00:00Z; nothing is deleted until that line is removed`},
		"no second time":  {"pvc-b 2027-01-01T12:00:00Z noon", `"pvc-b 2027-01-01T12:00:00Z noon": "noon": expected a time such as 2027-01-01T12:00:00Z; nothing is deleted until that line is removed`},
		"nothing amiss":   {good, ""},
		"nothing at all":  {"", ""},
		"no last newline": {"pvc-a 2027-01-01T12:00:00Z 2027-01-01T12:00:00Z", ""},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
			b, volumes := braked(t, mirror.Limit{Count: 3}, now)
			record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "mooring-system", Name: "mooring-brake"},
				Data: map[string]string{brakeState: brakeWatching, brakeEnded: row.ended}}
			if err := b.write.client.Create(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			held, err := b.holds(t.Context(), volumes[0], now)
			want := "ConfigMap mooring-system/mooring-brake, data.ended, line " + row.want
			if row.want == "" && (held || err != nil) || row.want != "" && (!held || err == nil || err.Error() != want) {
				t.Errorf("held: %v, %v; want %s", held, err, want)
			}
		})
	}
}
