package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// brakeMemory is how long a deleted claim counts.
const brakeMemory = 2 * brakeWindow

// ended is when a mirror lost its grant, and when its claim was deleted.
type ended struct{ revokedAt, at time.Time }

// endedOf returns the mirrors whose claims were deleted of late, as the brake's
// record has them, by the name of their volume: soon no list finds these any
// more. Each is a line of the volume's name and both times.
func endedOf(record *corev1.ConfigMap, now time.Time) (map[string]ended, error) {
	gone := map[string]ended{}
	if record == nil {
		return gone, nil
	}
	for line := range strings.Lines(record.Data[brakeEnded]) {
		line = strings.TrimSuffix(line, "\n")
		name, end, err := endedIn(line)
		if err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s, data.%s, line %q: %w; nothing is deleted until that line is removed",
				record.Namespace, record.Name, brakeEnded, cut(line, 100), err)
		}
		if now.Sub(end.at) <= brakeMemory {
			gone[name] = end
		}
	}
	return gone, nil
}

// endedIn reads one line.
func endedIn(line string) (string, ended, error) {
	words := strings.Split(line, " ")
	if len(words) != 3 || words[0] == "" {
		return "", ended{}, errors.New("expected the name of a volume and two times, with a blank between them")
	}
	var times [2]time.Time
	for i := range times {
		var err error
		if times[i], err = time.Parse(time.RFC3339Nano, words[i+1]); err != nil {
			return "", ended{}, fmt.Errorf("%q: expected a time such as 2027-01-01T12:00:00Z", words[i+1])
		}
	}
	return words[0], ended{times[0], times[1]}, nil
}

// remember records which mirrors were ended. It stands before a deletion: what
// could not be recorded is not done.
func (b *brake) remember(ctx context.Context, record *corev1.ConfigMap, gone map[string]ended) error {
	data := map[string]string{brakeState: brakeWatching}
	if record != nil {
		data = maps.Clone(record.Data)
	}
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		fmt.Fprintf(&lines, "%s %s %s\n", name,
			gone[name].revokedAt.UTC().Format(time.RFC3339Nano), gone[name].at.UTC().Format(time.RFC3339Nano))
	}
	data[brakeEnded] = lines.String()
	_, err := b.put(ctx, record, data)
	return err
}
