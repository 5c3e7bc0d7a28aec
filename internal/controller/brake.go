package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

const (
	// brakeWindow is the time within which revocations are counted.
	brakeWindow = 10 * time.Minute
	// brakeLook is how long an engaged brake is taken for engaged without another
	// look at its record.
	brakeLook = 2 * time.Second
)

// brake stops all deletions once too many mirrors have lost their grant within
// brakeWindow: one bad change of labels must not delete thousands of claims.
//
// What it did, and what was deleted of late, is recorded in a ConfigMap of the
// controller's own namespace and nowhere else, so that it outlives restarts. A
// stop lasts until an administrator sets the record's state to lifted. Where that
// cannot be read or written nothing is deleted.
type brake struct {
	options Options
	cache   reader
	live    reader
	write   writer
	say     *teller
	metrics *metrics

	mutex sync.Mutex
	// looked is whether the record was ever read.
	looked bool
	// seen is when deletions were last known to be stopped.
	seen time.Time
}

// Keys and values of the record.
const (
	brakeState    = "state"
	brakeWatching = "watching" // claims were deleted, and never too many
	brakeEngaged  = "engaged"
	brakeLifted   = "lifted"
	brakeSince    = "since"
	brakeLiftedAt = "liftedAt"
	brakeRevoked  = "revoked"
	brakeLimit    = "limit"
	brakeMirrors  = "mirrors"
	brakeEnded    = "ended"
)

var errNoNamespace = errors.New("the controller's own namespace is not known (POD_NAMESPACE), so that a stop of deletions could not be recorded: nothing is deleted")

// holds reports whether the mirror of a volume is not to be ended now. Where it
// says no, the mirror counts as ended, and is recorded so.
func (b *brake) holds(ctx context.Context, volume *corev1.PersistentVolume, now time.Time) (bool, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	// 1. Engaged, and nobody has plainly lifted it.
	record, lookedAt, err := b.look(ctx, now)
	if err != nil || stops(record) {
		return true, err
	}
	// 2. Too many.
	revokedAt := mirror.RecordOf(b.options.Names, volume).RevokedAt
	gone, err := endedOf(record, now)
	if err != nil {
		return true, err
	}
	counted, err := b.count(ctx, gone, around{lookedAt, revokedAt, now})
	if err != nil {
		return true, err
	}
	if counted.lost > counted.limit {
		return true, b.engage(ctx, record, now, counted)
	}
	// 3. It may go, once it is recorded.
	gone[volume.Name] = ended{revokedAt, now}
	if err := b.remember(ctx, record, gone); err != nil {
		return true, fmt.Errorf("record that the claim of volume %s is deleted: %w", volume.Name, err)
	}
	return false, nil
}

// stops reports whether a record stops deletions: any that does not plainly say
// that it does not.
func stops(record *corev1.ConfigMap) bool {
	return record != nil && record.Data[brakeState] != brakeLifted && record.Data[brakeState] != brakeWatching
}

// look reads the record, live, notes whether deletions are stopped, and returns
// since when revocations count.
func (b *brake) look(ctx context.Context, now time.Time) (*corev1.ConfigMap, time.Time, error) {
	record, err := b.read(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	b.looked = true
	if stops(record) {
		b.stopped(now)
		return record, time.Time{}, nil
	}
	lookedAt, err := b.lookedAt(ctx, record, now)
	if err != nil {
		return nil, time.Time{}, err
	}
	b.seen = time.Time{}
	b.metrics.brake.Set(0)
	return record, lookedAt, nil
}

// stopped notes that nothing is to be deleted.
func (b *brake) stopped(now time.Time) {
	b.seen = now
	b.metrics.brake.Set(1)
}

// isKnownToHold reports whether the brake was seen engaged so short a time ago
// that it is not worth another look.
func (b *brake) isKnownToHold(now time.Time) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return !b.seen.IsZero() && now.Sub(b.seen) < brakeLook
}

// lookedAt returns when an administrator lifted the brake, zero if nobody did:
// revocations before that were looked at.
func (b *brake) lookedAt(ctx context.Context, record *corev1.ConfigMap, now time.Time) (time.Time, error) {
	if record == nil || record.Data[brakeState] != brakeLifted {
		return time.Time{}, nil
	}
	lifted, err := time.Parse(time.RFC3339Nano, record.Data[brakeLiftedAt])
	engaged, _ := time.Parse(time.RFC3339Nano, record.Data[brakeSince])
	if err == nil && !lifted.Before(engaged) {
		return lifted, nil
	}
	record.Data[brakeLiftedAt] = now.UTC().Format(time.RFC3339Nano)
	if err := b.write.updateBrake(ctx, record); err != nil {
		return time.Time{}, err
	}
	log.FromContext(ctx).Info("an administrator has lifted the brake: deletions go on")
	b.say.brakeLifted(record)
	return now, nil
}

// counted is how many mirrors have lost their grant, how many may, and how many
// there are; ended ones included.
type counted struct{ lost, limit, mirrors int }

// around are the times that a count rests on: since when it counts, when the
// mirror to be ended lost its grant, and now.
type around struct{ lookedAt, revokedAt, now time.Time }

// count counts the mirrors that have lost their grant since an administrator has
// looked, within brakeWindow: the one up to now, and any around the time when
// the mirror to be ended lost its own. A class may let much more time go by
// between the two, in which a bad change is forgotten and not mended.
func (b *brake) count(ctx context.Context, gone map[string]ended, when around) (counted, error) {
	marked, err := volumesWhere(ctx, b.cache, volumesThatAre, revoked)
	if err != nil {
		return counted{}, err
	}
	living, err := volumesWhere(ctx, b.cache, volumesThatAre, mirrors)
	if err != nil {
		return counted{}, err
	}
	lost, all := map[string]time.Time{}, len(living)
	for i := range marked {
		lost[marked[i].Name] = mirror.RecordOf(b.options.Names, &marked[i]).RevokedAt
	}
	for name, end := range gone {
		if _, known := lost[name]; !known {
			lost[name], all = end.revokedAt, all+1
		}
	}
	upToNow, near := 0, []time.Time(nil)
	for _, at := range lost {
		if at.Before(when.lookedAt) {
			continue
		}
		if when.now.Sub(at) <= brakeWindow {
			upToNow++
		}
		if at.Sub(when.revokedAt).Abs() <= brakeWindow {
			near = append(near, at)
		}
	}
	return counted{max(upToNow, mostWithin(near, brakeWindow)), b.options.MaxRevocations.Of(all), all}, nil
}

// mostWithin returns how many of some times lie within any one window.
func mostWithin(times []time.Time, window time.Duration) int {
	slices.SortFunc(times, time.Time.Compare)
	most, first := 0, 0
	for last := range times {
		for times[last].Sub(times[first]) > window {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

// engage records that deletions have stopped, and tells.
func (b *brake) engage(ctx context.Context, record *corev1.ConfigMap, now time.Time, is counted) error {
	data := map[string]string{
		brakeState:   brakeEngaged,
		brakeSince:   now.UTC().Format(time.RFC3339Nano),
		brakeRevoked: strconv.Itoa(is.lost),
		brakeLimit:   strconv.Itoa(is.limit),
		brakeMirrors: strconv.Itoa(is.mirrors),
	}
	if record != nil && record.Data[brakeEnded] != "" {
		data[brakeEnded] = record.Data[brakeEnded]
	}
	record, err := b.put(ctx, record, data)
	if err != nil {
		return fmt.Errorf("record that deletions have stopped: %w", err)
	}
	b.stopped(now)
	log.FromContext(ctx).Info("too many mirrors have lost their grant: deletions stop until an administrator lifts the brake",
		"revoked", is.lost, "limit", is.limit, "mirrors", is.mirrors, "configMap", b.options.OwnNamespace+"/"+b.options.BrakeName)
	b.say.brakeEngaged(record, is.lost, is.limit)
	return nil
}

// put writes what the record is to say, and returns it.
func (b *brake) put(ctx context.Context, record *corev1.ConfigMap, data map[string]string) (*corev1.ConfigMap, error) {
	if record != nil {
		record.Data = data
		return record, b.write.updateBrake(ctx, record)
	}
	record = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.options.OwnNamespace, Name: b.options.BrakeName}, Data: data}
	return record, b.write.createBrake(ctx, record)
}

// read returns the record, live; nil if there is none.
func (b *brake) read(ctx context.Context) (*corev1.ConfigMap, error) {
	if b.options.OwnNamespace == "" || b.options.BrakeName == "" {
		return nil, errNoNamespace
	}
	key := types.NamespacedName{Namespace: b.options.OwnNamespace, Name: b.options.BrakeName}
	return get(ctx, b.live, key, &corev1.ConfigMap{})
}
