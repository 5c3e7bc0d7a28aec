package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/test/bench/report"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

const (
	// footprintMirrors is how many mirrors the chart's resources are chosen for.
	footprintMirrors = 2000
	footprintOrigins = 200
	// idleTime is how long the controller is watched doing nothing, and scrapeEvery
	// how often it is asked for its metrics meanwhile, as a Prometheus asks.
	idleTime    = time.Minute
	scrapeEvery = 15 * time.Second
)

// footprint measures what the controller uses: idle in a cluster with origins and
// no mirrors, while mirrors are made all at once, idle with them, and once it was
// started anew. The chart's resources are chosen by what it prints.
func footprint(ctx context.Context) (err error) {
	root, err := repositoryRoot()
	if err != nil {
		return err
	}
	built, err := buildPrograms(ctx, root)
	if err != nil {
		return err
	}
	s, err := newStage(ctx, built, controlplane.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.plane.Stop()) }()
	if err := errors.Join(s.populate(ctx, footprintOrigins), s.bind(ctx, true)); err != nil {
		return err
	}
	process := s.provisioners[report.Mooring]
	if err := s.startLeading(ctx, process); err != nil {
		return err
	}
	if err := s.idle(ctx, process, "idle, no mirrors"); err != nil {
		return err
	}
	if err := s.makeMirrors(ctx, process); err != nil {
		return err
	}
	if err := s.idle(ctx, process, fmt.Sprintf("idle, %d mirrors", footprintMirrors)); err != nil {
		return err
	}
	if err := errors.Join(s.stop(ctx, process), s.startLeading(ctx, process)); err != nil {
		return err
	}
	return errors.Join(s.idle(ctx, process, fmt.Sprintf("started anew, %d mirrors", footprintMirrors)), s.stop(ctx, process))
}

// idle says what a process uses that has nothing to do.
func (s *stage) idle(ctx context.Context, process *controlplane.Process, what string) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	return s.meter(process, what, func() error {
		tick := time.NewTicker(scrapeEvery)
		defer tick.Stop()
		for began := time.Now(); time.Since(began) < idleTime; {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-tick.C:
				if _, err := fetch(ctx, s.metricsURL); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// makeMirrors lets all mirrors be made and bound, at once.
func (s *stage) makeMirrors(ctx context.Context, process *controlplane.Process) error {
	claims := make([]*corev1.PersistentVolumeClaim, footprintMirrors)
	for i := range claims {
		claims[i] = s.mirrorClaim(s.tenants[i%len(s.tenants)], fmt.Sprintf("m%d", i), s.origins[i%len(s.origins)])
	}
	seen, err := s.follow(ctx, len(claims))
	if err != nil {
		return err
	}
	defer seen.end()
	return s.meter(process, fmt.Sprintf("while %d mirrors are made", len(claims)), func() error {
		return errors.Join(s.createAll(ctx, claims, seen), seen.wait(ctx, seen.bounds))
	})
}

// meter says what a process uses while something is done.
func (s *stage) meter(process *controlplane.Process, what string, do func() error) error {
	before, err := cpuSeconds(process.PID())
	if err != nil {
		return err
	}
	began := time.Now()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	took := time.Since(began).Seconds()
	after, cpuErr := cpuSeconds(process.PID())
	now, nowErr := statusMiB(process.PID(), "VmRSS")
	peak, peakErr := peakMiB(process.PID())
	if err := errors.Join(cpuErr, nowErr, peakErr); err != nil {
		return err
	}
	tell("%-32s %5.0f s: CPU %6.2f s (%4.0f millicores), memory %4.0f MiB now, %4.0f MiB at most so far",
		what, took, after-before, 1000*(after-before)/took, now, peak)
	return nil
}
