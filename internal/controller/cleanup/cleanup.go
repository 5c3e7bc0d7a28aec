// Package cleanup takes Mooring's finalizers off the origin claims before it is
// uninstalled, so that nothing waits for a controller that is no more. It takes
// the leader lease first, by force, and leaves it held: replicas that still run
// put no finalizer back.
package cleanup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// Options say whose finalizers are removed, and in whose name.
type Options struct {
	Names mooringapi.Names
	// Instances are the names under which the installation's volumes record who
	// serves them. Volumes of others are a reason to refuse.
	Instances []string
	// AllInstances removes the finalizers although volumes of other instances
	// exist, whose controllers are gone too.
	AllInstances bool
	// NoLease is for an installation whose replica elects no leader, and is
	// stopped already.
	NoLease bool
	// Tell is told what happens, a sentence at a time.
	Tell func(sentence string)
}

// Report is what a cleanup did, and what stays.
type Report struct {
	Provisioner string `json:"provisionerName"`
	Finalizer   string `json:"finalizer"`
	// Removed is from how many claims the finalizer was taken. Of these, Deleting
	// are being deleted, and are gone now if they have no finalizer of others.
	Removed  int `json:"finalizersRemoved"`
	Deleting int `json:"claimsBeingDeleted"`
	// Mirrors is what stays.
	Mirrors Mirrors `json:"mirrorVolumes"`
	// Lease is the lease that stays held, until HeldUntil; empty without one.
	Lease     string    `json:"lease,omitempty"`
	HeldUntil time.Time `json:"leaseHeldUntil,omitzero"`
}

// cleaner is one run.
type cleaner struct {
	Options
	api    API
	report Report
	// removed are the claims that lost the finalizer since nobody else leads.
	removed map[claimKey]bool
}

// Run cleans up. It returns what was done and what stays, or a single error for
// which to run it again: a finalizer that was removed is no harm then.
func Run(ctx context.Context, api API, options Options) (*Report, error) {
	c := &cleaner{Options: options, api: api, removed: map[claimKey]bool{}}
	c.report.Provisioner, c.report.Finalizer = options.Names.Provisioner(), options.Names.Finalizer()
	if err := c.run(ctx); err != nil {
		return nil, inWords(ctx, err)
	}
	return &c.report, nil
}

// inWords returns why a run has failed: what ended its context, or the error.
func inWords(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return errors.New("interrupted: repeat it")
	}
	return causeOf(ctx, err)
}

func (c *cleaner) run(ctx context.Context) error {
	// 1. Other instances of this provisioner name rely on the finalizers.
	mirrors, err := c.mirrors(ctx)
	if err != nil {
		return err
	}
	if err := c.mayTouch(mirrors); err != nil {
		return err
	}
	// 2. Nobody leads any more, and no claim has the finalizer any more.
	if err := c.clean(ctx); err != nil {
		return err
	}
	// 3. What stays: read again, since the former leader may have made more.
	c.report.Mirrors, err = c.mirrors(ctx)
	return err
}

func (c *cleaner) mayTouch(mirrors Mirrors) error {
	others := mirrors.servedByOthers(c.Instances)
	if c.AllInstances || len(others) == 0 {
		return nil
	}
	return fmt.Errorf("mirror volumes of %s are served by other instances (%s), whose origins the finalizer protects too: "+
		"where these run, uninstall without a cleanup (helm uninstall --no-hooks); where they are gone, repeat it with --all-instances",
		c.Names.Provisioner(), strings.Join(others, ", "))
}

// clean removes the finalizers while it holds the lease. A leader that is told
// to stop right after its lease was taken gives the lease away with its last
// breath, and another replica may take it: then the lease is taken again.
func (c *cleaner) clean(ctx context.Context) error {
	if c.NoLease {
		return c.finalizers(ctx)
	}
	for {
		err := c.cleanLeading(ctx)
		var lost lostError
		if !errors.As(err, &lost) || lost.toCleanup() || ctx.Err() != nil {
			return err
		}
		c.tell("%v: taking it again", err)
		clear(c.removed) // who led meanwhile was right to put the finalizers back
	}
}

// cleanLeading takes the lease, and keeps it beyond its end.
func (c *cleaner) cleanLeading(ctx context.Context) error {
	lease := newHolder(c.api)
	// 1. The lease is taken from whoever holds it.
	former, err := lease.take(ctx)
	if err != nil {
		return err
	}
	kept, letGo := lease.keep(ctx)
	defer letGo()
	// 2. The former leader has noticed, and acts no more.
	wait := max(formerLeader, former.duration)
	c.tell("took the lease %s from %s; a former leader has ended within %v: waiting", c.api.LeaseName(), former, wait)
	if err := sleep(kept, wait); err != nil {
		return err
	}
	// 3. The finalizers go.
	if err := c.finalizers(kept); err != nil {
		return causeOf(kept, err)
	}
	// 4. Replicas that still run shall not lead again.
	letGo()
	if err := context.Cause(kept); !errors.Is(err, context.Canceled) {
		return err
	}
	until, err := lease.hold(ctx)
	if err != nil {
		return err
	}
	c.report.Lease, c.report.HeldUntil = c.api.LeaseName(), until
	return nil
}

func (c *cleaner) tell(format string, args ...any) {
	if c.Tell != nil {
		c.Tell(fmt.Sprintf(format, args...))
	}
}

// causeOf returns why a context has ended, if it has; else the error.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// sleep waits, or returns why the context has ended.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
