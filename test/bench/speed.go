package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mooring-k8s/mooring/test/bench/report"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// measureSpeed does the trials of all groups, and the grants, on one control
// plane.
func measureSpeed(ctx context.Context, j job) (err error) {
	if !j.anySpeed() {
		return nil
	}
	tell("starting a control plane with %d origins", j.plan.origins())
	s, err := newStage(ctx, j.programs, controlplane.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.plane.Stop()) }()
	j.results.Machine.Kubernetes = s.plane.Version()
	if err := s.populate(ctx, j.plan.origins()); err != nil {
		return fmt.Errorf("make the origins: %w", err)
	}
	for _, g := range j.plan.groups {
		for round := range g.rounds {
			if err := s.measureAll(ctx, j, round, g.cases); err != nil {
				return err
			}
		}
	}
	if !j.chosen("grants", j.results.Grants != nil) {
		return nil
	}
	return errors.Join(s.measureGrants(ctx, j.plan.grants, j.results), j.out.save(j.results))
}

// anySpeed reports whether there is anything to measure on that plane.
func (j job) anySpeed() bool {
	for _, g := range j.plan.groups {
		for round := range g.rounds {
			if slices.ContainsFunc(g.cases, func(c report.Case) bool { return j.wants(c, round) }) {
				return true
			}
		}
	}
	return j.chosen("grants", j.results.Grants != nil)
}

// measureSlowBinder does its cases on a control plane whose binder has
// Kubernetes' own limits.
func measureSlowBinder(ctx context.Context, j job) (err error) {
	if !slices.ContainsFunc(j.plan.slow, func(c report.Case) bool { return j.wants(c, 0) }) {
		return nil
	}
	tell("starting a control plane whose binder has the default limits")
	s, err := newStage(ctx, j.programs, controlplane.Options{ControllerQPS: 20, ControllerManagerArgs: []string{"--kube-api-burst=30"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.plane.Stop()) }()
	j.results.Machine.Kubernetes = s.plane.Version()
	if err := s.populate(ctx, 1); err != nil {
		return fmt.Errorf("make the origin: %w", err)
	}
	return s.measureAll(ctx, j, 0, j.plan.slow)
}

// measureAll does one round of some cases, and keeps each result.
func (s *stage) measureAll(ctx context.Context, j job, round int, cases []report.Case) error {
	for _, c := range cases {
		if !j.wants(c, round) {
			continue
		}
		if err := s.measure(ctx, c, round, j.results); err != nil {
			return err
		}
		if err := j.out.save(j.results); err != nil {
			return err
		}
	}
	return nil
}

// measure does one trial and clears up after it.
func (s *stage) measure(ctx context.Context, c report.Case, round int, results *report.Run) error {
	trial := report.Trial{Case: c, Round: round}
	claims := make([]*corev1.PersistentVolumeClaim, c.N)
	origins := s.origins[:c.Origins()]
	for i := range claims {
		name := fmt.Sprintf("m%d", i)
		claims[i] = s.mirrorClaim(s.tenants[i%len(s.tenants)], name, origins[i%len(origins)])
	}
	do := s.endToEnd
	if c.Phase == report.Alone {
		do = s.alone
	}
	if err := s.bind(ctx, c.Phase != report.Alone); err != nil {
		return err
	}
	seen, err := s.follow(ctx, c.N)
	if err != nil {
		return fmt.Errorf("%s: watch: %w", c, err)
	}
	err = do(ctx, &trial, claims, seen)
	seen.end()
	if err != nil {
		return fmt.Errorf("%s, round %d: %w", c, round+1, err)
	}
	results.Put(trial)
	tell("%-42s round %d: volumes in %.1f s (%.0f/s), Bound in %.1f s", c, round+1, trial.VolumeSeconds, trial.Rate(), trial.BoundSeconds)
	return s.clear(ctx, claims, origins)
}

// alone measures from a provisioner's readiness to the last volume of claims
// that exist already.
func (s *stage) alone(ctx context.Context, trial *report.Trial, claims []*corev1.PersistentVolumeClaim, seen *timeline) error {
	if err := s.createAll(ctx, claims, seen); err != nil {
		return err
	}
	before, err := s.requests(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if trial.Scenario == report.Floor {
		if err := s.writeFloor(ctx, claims, s.origins[:trial.Origins()]); err != nil {
			return err
		}
		err = seen.wait(ctx, seen.volumes)
	} else {
		process := s.provisioners[trial.Scenario]
		if err := process.Start(ctx); err != nil {
			return err
		}
		began = time.Now()
		err = errors.Join(seen.wait(ctx, seen.volumes), s.settle(ctx), s.used(process, trial), s.stop(ctx, process))
	}
	if err != nil {
		return err
	}
	trial.VolumeSeconds = max(seen.lastVolume.Sub(began), time.Millisecond).Seconds()
	after, err := s.requests(ctx)
	trial.Requests = since(before, after)
	return err
}

// settle waits until the events of the last volumes are written, which comes
// after them, so that all requests are counted: until a second has brought none.
func (s *stage) settle(ctx context.Context) error {
	last, quiet := -1, 0
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		counts, err := s.requests(ctx)
		if now := counts["POST events"]; now != last {
			last, quiet = now, 0
		}
		quiet++
		return quiet > 5, err
	})
}

// endToEnd measures from the first claim's creation to the last one Bound.
func (s *stage) endToEnd(ctx context.Context, trial *report.Trial, claims []*corev1.PersistentVolumeClaim, seen *timeline) error {
	process := s.provisioners[trial.Scenario] // none for ideal
	if process != nil {
		if err := s.startLeading(ctx, process); err != nil {
			return err
		}
	}
	began := time.Now()
	var err error
	if trial.Scenario == report.Ideal {
		err = s.createComplete(ctx, claims, seen, s.origins[:trial.Origins()])
	} else {
		err = s.createAll(ctx, claims, seen)
	}
	err = errors.Join(err, seen.wait(ctx, seen.bounds))
	if process != nil {
		err = errors.Join(err, s.used(process, trial), s.stop(ctx, process))
	}
	if err != nil {
		return err
	}
	trial.VolumeSeconds, trial.BoundSeconds = seen.lastVolume.Sub(began).Seconds(), seen.lastBound.Sub(began).Seconds()
	trial.ToVolume, trial.ToBound = seen.latencies()
	return nil
}

// startLeading starts a provisioner, and waits until it works: one with a lease
// is ready before it has got that.
func (s *stage) startLeading(ctx context.Context, process *controlplane.Process) error {
	if err := process.Start(ctx); err != nil || process.Name() != report.Mooring {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		scrape, err := fetch(ctx, s.metricsURL)
		if err != nil {
			return false, err
		}
		leads, err := sum(scrape, "leader_election_master_status", func(map[string]string) string { return "leads" })
		return leads["leads"] > 0, err
	})
}

func (s *stage) used(process *controlplane.Process, trial *report.Trial) error {
	var err, err2 error
	trial.CPUSeconds, err = cpuSeconds(process.PID())
	trial.PeakMiB, err2 = peakMiB(process.PID())
	return errors.Join(err, err2)
}

func (s *stage) createAll(ctx context.Context, claims []*corev1.PersistentVolumeClaim, seen *timeline) error {
	return each(ctx, len(claims), func(ctx context.Context, i int) error {
		seen.begin(claims[i])
		return s.Create(ctx, claims[i])
	})
}

// createComplete creates claims, and of each at once its complete volume.
func (s *stage) createComplete(ctx context.Context, claims []*corev1.PersistentVolumeClaim, seen *timeline, origins []origin) error {
	return each(ctx, len(claims), func(ctx context.Context, i int) error {
		seen.begin(claims[i])
		if err := s.Create(ctx, claims[i]); err != nil {
			return err
		}
		volume, _, err := s.mirrorVolume(claims[i], origins[i%len(origins)])
		if err != nil {
			return err
		}
		return s.Create(ctx, volume)
	})
}
