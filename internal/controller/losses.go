package controller

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

const (
	// gatherTime is how long changes of access are gathered, so that one change
	// of many namespaces' labels is told to an origin's owner once.
	gatherTime = 200 * time.Millisecond
	// betweenTellings is the least time from one telling to the next.
	betweenTellings = 10 * time.Second
)

// losses remembers which namespaces have lost access to an origin as its owner
// was told last. The zero value remembers nothing.
type losses struct {
	mutex   sync.Mutex
	origins map[types.NamespacedName]*toldLosses
}

// beginning is when this process began to work. The zero value has not begun.
type beginning struct {
	mutex sync.Mutex
	when  time.Time
}

// at returns when this process began to work, at the latest now: what was
// revoked before that was told by the process that worked then.
func (b *beginning) at(now time.Time) time.Time {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.when.IsZero() {
		b.when = now
	}
	return b.when
}

type toldLosses struct {
	begun      bool // what was told before this process began is known
	namespaces []string
	first      time.Time // when a change was first seen that is not told yet
	last       time.Time // when something was told last
}

// remember notes what is known to have lost access, and whether it was told now.
func (l *losses) remember(origin types.NamespacedName, namespaces []string, told bool, now time.Time) {
	l.begin(origin, nil)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	known := l.origins[origin]
	known.namespaces, known.first = namespaces, time.Time{}
	if told {
		known.last = now
	}
}

// begin notes, once, what was told before this process began.
func (l *losses) begin(origin types.NamespacedName, namespaces []string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	told := l.of(origin)
	if !told.begun {
		told.begun = true
		told.namespaces = append(told.namespaces, namespaces...)
		slices.Sort(told.namespaces) // several mirrors of one namespace are one loss
		told.namespaces = slices.Compact(told.namespaces)
	}
}

// withdraw notes that a mirror's revocation is about to be withdrawn, by which
// nothing says any more that its namespace had lost access. Its owner was told so
// if that was before this process began, and is to be told that it has it again.
func (l *losses) withdraw(record mirror.Record, began time.Time) {
	if record.RevokedAt.IsZero() || !record.RevokedAt.Before(began) {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if told := l.of(record.Origin); !told.begun && !slices.Contains(told.namespaces, record.Claim.Namespace) {
		told.namespaces = append(told.namespaces, record.Claim.Namespace)
	}
}

// of returns what is known of an origin, under the lock.
func (l *losses) of(origin types.NamespacedName) *toldLosses {
	if l.origins == nil {
		l.origins = map[types.NamespacedName]*toldLosses{}
	}
	if l.origins[origin] == nil {
		l.origins[origin] = &toldLosses{}
	}
	return l.origins[origin]
}

// due returns what has changed since the last telling, and how long to gather
// further changes before they are told.
func (l *losses) due(origin types.NamespacedName, namespaces []string, now time.Time) (lost, regained []string, rest time.Duration) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	told := l.origins[origin]
	lost, regained = without(namespaces, told.namespaces), without(told.namespaces, namespaces)
	if len(lost)+len(regained) == 0 {
		told.first = time.Time{}
		return nil, nil, 0
	}
	if told.first.IsZero() {
		told.first = now
	}
	return lost, regained, max(gatherTime-now.Sub(told.first), betweenTellings-now.Sub(told.last), 0)
}

// forget drops an origin that is gone.
func (l *losses) forget(origin types.NamespacedName) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.origins, origin)
}

// without returns the names that are not among those; there may be thousands of
// both.
func without(names, those []string) []string {
	known := make(map[string]bool, len(those))
	for _, name := range those {
		known[name] = true
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return known[name] })
}

// among returns which namespaces are known to have lost access, of some.
func (l *losses) among(origin types.NamespacedName, some map[string]bool) []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.origins[origin] == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(l.origins[origin].namespaces), func(name string) bool { return !some[name] })
}

// access is which namespaces have lost access to an origin, which have it, and
// of which that is not certain; and which had lost it before this process began.
type access struct {
	revoked        map[string]mirror.Review
	valid, unclear map[string]bool
	before         []string
}

// look judges the mirrors of an origin that this instance looks after.
func (r *originReconciler) look(ctx context.Context, mirrors []corev1.PersistentVolume) (access, error) {
	seen := access{revoked: map[string]mirror.Review{}, valid: map[string]bool{}, unclear: map[string]bool{}, before: []string{}}
	since := r.began.at(time.Now())
	for i := range mirrors {
		record, review, err := r.judge(ctx, &mirrors[i])
		if err != nil {
			return seen, err
		}
		namespace := record.Claim.Namespace
		if !record.RevokedAt.IsZero() && record.RevokedAt.Before(since) {
			seen.before = append(seen.before, namespace)
		}
		switch review.Standing {
		case mirror.Revoked:
			seen.revoked[namespace] = review
		case mirror.Valid:
			seen.valid[namespace] = true
		case mirror.Unclear: // nobody has lost anything for certain, nor has it again
			seen.unclear[namespace] = true
		}
	}
	return seen, nil
}

// tellChanges tells an origin's owner which namespaces have lost access, and
// which have it again: one event for each change, with a count and some names.
func (r *originReconciler) tellChanges(ctx context.Context, origin *corev1.PersistentVolumeClaim, mirrors []corev1.PersistentVolume, began time.Time) (ctrl.Result, error) {
	key := client.ObjectKeyFromObject(origin)
	if len(mirrors) == 0 { // nobody has access, so that there is nothing to remember
		r.losses.forget(key)
		r.pace.forget(key)
		return ctrl.Result{}, nil
	}
	if rest := r.pace.rest(key, time.Now()); rest > 0 {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	seen, err := r.look(ctx, mirrors)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.pace.done(key, began, time.Now())
	r.losses.begin(key, seen.before)
	now := slices.AppendSeq(r.losses.among(key, seen.unclear), maps.Keys(seen.revoked))
	slices.Sort(now)
	now = slices.Compact(now)
	lost, regained, rest := r.losses.due(key, now, time.Now())
	if rest > 0 {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	regained = slices.DeleteFunc(regained, func(name string) bool { return !seen.valid[name] }) // others are gone
	if len(lost) > 0 {
		r.say.accessEnded(origin, lost, seen.revoked[lost[0]].Reason)
	}
	if len(regained) > 0 {
		r.say.accessRegained(origin, regained)
	}
	r.losses.remember(key, now, len(lost)+len(regained) > 0, time.Now())
	return ctrl.Result{RequeueAfter: untilExpiry(r.options.Names, origin)}, nil
}

// judge judges one mirror that this instance looks after, from the cache.
func (r *originReconciler) judge(ctx context.Context, volume *corev1.PersistentVolume) (mirror.Record, mirror.Review, error) {
	record := mirror.RecordOf(r.options.Names, volume)
	claim, err := r.cache.claim(ctx, record.Claim)
	if err != nil || claim == nil || !isBound(claim) || record.ServedBy != r.options.Instance {
		return record, mirror.Review{}, err
	}
	facts, err := boundFacts(ctx, r.options, r.cache, claim, volume)
	return record, mirror.Judge(facts), err
}

// untilExpiry returns how long an origin's grants last; 0 where they have no
// end, or have ended.
func untilExpiry(names mooringapi.Names, origin *corev1.PersistentVolumeClaim) time.Duration {
	expires := grant.Parse(names, origin.Annotations).Expires()
	if expires.IsZero() {
		return 0
	}
	return max(time.Until(expires), 0)
}
