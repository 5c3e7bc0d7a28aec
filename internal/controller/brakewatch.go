package controller

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// brakeWatch looks at the brake's record where no deletion is due that would:
// the metric says what an administrator or the process before has written, and a
// lifted brake is lifted although all grants are there again.
type brakeWatch struct{ brake *brake }

// NeedLeaderElection lets only the one that deletes confirm that it may again.
func (w *brakeWatch) NeedLeaderElection() bool { return true }

// Start watches until the controller ends.
func (w *brakeWatch) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) { w.brake.watch(ctx, time.Now()) }, brakePatience)
	return nil
}

// watch looks once at start, and again as long as deletions are stopped. A brake
// that was not engaged is engaged by a deletion, which looks itself.
func (b *brake) watch(ctx context.Context, now time.Time) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.looked && b.seen.IsZero() {
		return
	}
	_, _, err := b.look(ctx, now)
	if err != nil && !errors.Is(err, errNoNamespace) { // which a deletion says
		log.FromContext(ctx).Info("whether deletions are stopped could not be read or confirmed; tried again soon", "why", err.Error())
	}
}
