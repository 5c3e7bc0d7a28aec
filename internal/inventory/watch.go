package inventory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Changes is who is told what changes in a listing.
type Changes struct {
	// Row gets a mirror claim as it is now; its state is Gone when it is no more.
	Row func(Row) error
	// Trouble gets why a watch was interrupted; it is taken up again.
	Trouble func(error)
}

// Watch tells every change of a listing until the context ends, which is no
// error. A watch that is closed is taken up again, and what was missed between
// is told. A mirror that stops being what was asked for is told once more.
func (c *Cluster) Watch(ctx context.Context, listing *Listing, changes Changes) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := logr.Discard() // people are told by Trouble
	ctx = klog.NewContext(ctx, quiet)
	follower := &follower{Cluster: c, ctx: ctx, listing: listing, changes: changes, told: map[types.NamespacedName]bool{}, stop: cancel}
	for _, row := range listing.Rows {
		follower.told[row.Key()] = true
	}
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  follower.list,
		WatchFuncWithContext: follower.watch,
	}, c.API)
	cache.NewReflectorWithOptions(source, &corev1.PersistentVolumeClaim{}, follower, cache.ReflectorOptions{
		Logger: &quiet, Name: "list",
		Backoff: &wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 10 * time.Second},
	}).RunWithContext(ctx)
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != cause { //nolint:errorlint // the same value, or a cause of our own
		return cause
	}
	return nil
}

// follower is a store of claims as client-go's reflector keeps one up to date:
// it keeps what was told. The reflector calls it from one goroutine.
type follower struct {
	*Cluster
	ctx     context.Context //nolint:containedctx // client-go hands none to the store of its reflector
	stop    context.CancelCauseFunc
	listing *Listing
	changes Changes
	// told are the mirrors that people were shown and may expect news of.
	told map[types.NamespacedName]bool
}

func (f *follower) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	claims, err := f.API.CoreV1().PersistentVolumeClaims(f.listing.Namespace).List(ctx, f.narrow(options))
	return claims, f.tell(err)
}

func (f *follower) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	events, err := f.API.CoreV1().PersistentVolumeClaims(f.listing.Namespace).Watch(ctx, f.narrow(options))
	return events, f.tell(err)
}

func (f *follower) narrow(options metav1.ListOptions) metav1.ListOptions {
	options.LabelSelector, options.FieldSelector = f.listing.query.LabelSelector, f.listing.query.FieldSelector
	return options
}

// tell tells of an error, and stops where trying again does not help.
func (f *follower) tell(err error) error {
	switch {
	case err == nil || f.ctx.Err() != nil:
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		f.stop(fmt.Errorf("watch persistentvolumeclaims%s: %w", in(f.listing.Namespace), err))
	default:
		f.changes.Trouble(err)
	}
	return err
}

// Add is told of a new claim.
func (f *follower) Add(object any) error { return f.Update(object) }

// Update is told of a claim as it is now.
func (f *follower) Update(object any) error {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return errForeign
	}
	row, is := f.row(f.listing, claim)
	if !is {
		f.gone(types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name})
		return nil
	}
	before, known := f.listing.all[row.Key()]
	if known && row.sameAs(before) {
		return nil
	}
	if row.Volume != "" && !f.isHidden("persistentvolumes") { // its record may be new
		volume, err := f.Volume(f.ctx, row.Volume)
		if err != nil {
			f.changes.Trouble(err)
		}
		f.listing.take(volume.Object)
		row, _ = f.row(f.listing, claim)
	}
	f.listing.all[row.Key()] = row
	wanted := f.listing.query.wants(row)
	if wanted || f.told[row.Key()] {
		f.say(row)
	}
	f.told[row.Key()] = wanted
	return nil
}

// Delete is told of a claim that is no more.
func (f *follower) Delete(object any) error {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return errForeign
	}
	f.gone(types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name})
	return nil
}

// Replace is told of all claims that there are: at first, and after a watch
// that could not be taken up where it ended.
func (f *follower) Replace(objects []any, _ string) error {
	left := maps.Clone(f.listing.all)
	for _, object := range objects {
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok {
			delete(left, types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name})
		}
		if err := f.Update(object); err != nil {
			return err
		}
	}
	for key := range left {
		f.gone(key)
	}
	return nil
}

// Resync has nothing to do.
func (f *follower) Resync() error { return nil }

func (f *follower) gone(key types.NamespacedName) {
	row, told := f.listing.all[key], f.told[key]
	delete(f.listing.all, key)
	delete(f.told, key)
	delete(f.listing.volumes, row.Volume)
	if told {
		row.State = Gone
		f.say(row)
	}
}

func (f *follower) say(row Row) {
	if f.ctx.Err() != nil {
		return
	}
	if err := f.changes.Row(row); err != nil {
		f.stop(err)
	}
}

func (c *Cluster) isHidden(what string) bool { return slices.Contains(c.hidden, what) }

// sameAs reports whether two rows say the same.
func (r Row) sameAs(other Row) bool {
	if (r.RevokedAt == nil) != (other.RevokedAt == nil) || r.RevokedAt != nil && !r.RevokedAt.Equal(*other.RevokedAt) ||
		!r.Created.Equal(other.Created) {
		return false
	}
	r.RevokedAt, other.RevokedAt, r.Created, other.Created = nil, nil, time.Time{}, time.Time{}
	return r == other
}
