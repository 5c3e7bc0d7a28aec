package controller

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// brakeWindow is the time within which revocations are counted.
const brakeWindow = 10 * time.Minute

// brake stops all deletions once too many mirrors have lost their grant within
// brakeWindow: one bad change of labels must not delete thousands of claims.
//
// What it did is recorded in a ConfigMap of the controller's own namespace, so
// that it outlives restarts, until an administrator sets its state to lifted.
// Where that cannot be read or written nothing is deleted.
type brake struct {
	options Options
	cache   reader
	live    reader
	write   writer
	say     *teller
	metrics *metrics

	mutex sync.Mutex
	// ended are the mirrors whose claims were deleted, by the name of their
	// volume, which soon no list finds any more, and when they were revoked.
	ended map[string]time.Time
}

// Keys and values of the record.
const (
	brakeState    = "state"
	brakeEngaged  = "engaged"
	brakeLifted   = "lifted"
	brakeSince    = "since"
	brakeLiftedAt = "liftedAt"
	brakeRevoked  = "revoked"
	brakeLimit    = "limit"
	brakeMirrors  = "mirrors"
)

var errNoNamespace = errors.New("the controller's own namespace is not known (POD_NAMESPACE), so that a stop of deletions could not be recorded: nothing is deleted")

// holds reports whether the mirror of a volume is not to be ended now. Where it
// says no, the mirror counts as ended.
func (b *brake) holds(ctx context.Context, volume *corev1.PersistentVolume, now time.Time) (bool, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	record, err := b.read(ctx)
	if err != nil {
		return true, err
	}
	// 1. Engaged, and nobody has lifted it.
	if record != nil && record.Data[brakeState] == brakeEngaged {
		b.metrics.brake.Set(1)
		return true, nil
	}
	since, err := b.countedSince(ctx, record, now)
	if err != nil {
		return true, err
	}
	b.metrics.brake.Set(0)
	// 2. Too many.
	counted, err := b.count(ctx, since)
	if err != nil {
		return true, err
	}
	if counted.lost > counted.limit {
		return true, b.engage(ctx, record, now, counted)
	}
	// 3. It may go.
	if b.ended == nil {
		b.ended = map[string]time.Time{}
	}
	b.ended[volume.Name] = mirror.RecordOf(b.options.Names, volume).RevokedAt
	return false, nil
}

// countedSince returns from when on revocations count: those before an
// administrator lifted the brake were looked at.
func (b *brake) countedSince(ctx context.Context, record *corev1.ConfigMap, now time.Time) (time.Time, error) {
	since := now.Add(-brakeWindow)
	if record == nil || record.Data[brakeState] != brakeLifted {
		return since, nil
	}
	lifted, err := time.Parse(time.RFC3339Nano, record.Data[brakeLiftedAt])
	engaged, _ := time.Parse(time.RFC3339Nano, record.Data[brakeSince])
	if err != nil || lifted.Before(engaged) {
		lifted = now
		record.Data[brakeLiftedAt] = now.UTC().Format(time.RFC3339Nano)
		if err := b.write.updateBrake(ctx, record); err != nil {
			return since, err
		}
		log.FromContext(ctx).Info("an administrator has lifted the brake: deletions go on")
		b.say.brakeLifted(record)
	}
	if lifted.After(since) {
		since = lifted
	}
	return since, nil
}

// counted is how many mirrors have lost their grant, how many may, and how many
// there are; ended ones included.
type counted struct{ lost, limit, mirrors int }

// count counts the mirrors that have lost their grant since a time.
func (b *brake) count(ctx context.Context, since time.Time) (counted, error) {
	marked, err := volumesWhere(ctx, b.cache, volumesThatAre, revoked)
	if err != nil {
		return counted{}, err
	}
	living, err := volumesWhere(ctx, b.cache, volumesThatAre, mirrors)
	if err != nil {
		return counted{}, err
	}
	names := map[string]bool{}
	for i := range marked {
		if !mirror.RecordOf(b.options.Names, &marked[i]).RevokedAt.Before(since) {
			names[marked[i].Name] = true
		}
	}
	all := len(living)
	for name, revokedAt := range b.ended {
		if revokedAt.Before(since) {
			delete(b.ended, name)
			continue
		}
		if !names[name] {
			all++
		}
		names[name] = true
	}
	return counted{len(names), b.options.MaxRevocations.Of(all), all}, nil
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
	write := b.write.updateBrake
	if record == nil {
		record = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.options.OwnNamespace, Name: b.options.BrakeName}}
		write = b.write.createBrake
	}
	record.Data = data
	if err := write(ctx, record); err != nil {
		return fmt.Errorf("record that deletions have stopped: %w", err)
	}
	b.metrics.brake.Set(1)
	log.FromContext(ctx).Info("too many mirrors have lost their grant: deletions stop until an administrator lifts the brake",
		"revoked", is.lost, "limit", is.limit, "mirrors", is.mirrors, "configMap", b.options.OwnNamespace+"/"+b.options.BrakeName)
	b.say.brakeEngaged(record, is.lost, is.limit)
	return nil
}

// read returns the record, live; nil if there is none.
func (b *brake) read(ctx context.Context) (*corev1.ConfigMap, error) {
	if b.options.OwnNamespace == "" || b.options.BrakeName == "" {
		return nil, errNoNamespace
	}
	key := types.NamespacedName{Namespace: b.options.OwnNamespace, Name: b.options.BrakeName}
	return get(ctx, b.live, key, &corev1.ConfigMap{})
}
