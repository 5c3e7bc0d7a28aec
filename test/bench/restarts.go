package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/test/bench/report"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// mirrorsPerOrigin is how many mirrors each origin of a restart has.
const mirrorsPerOrigin = 10

// measureRestarts measures each restart on a control plane of its own.
func measureRestarts(ctx context.Context, j job) error {
	for _, what := range j.plan.restarts {
		same := func(r report.Restart) bool { return r.Mirrors == what.mirrors }
		if !j.chosen(fmt.Sprintf("restart/%d", what.mirrors), slices.ContainsFunc(j.results.Restarts, same)) {
			continue
		}
		measured, err := restartOnce(ctx, j.programs, what)
		if err != nil {
			return fmt.Errorf("restart with %d mirrors: %w", what.mirrors, err)
		}
		j.results.Restarts = append(slices.DeleteFunc(j.results.Restarts, same), measured)
		if err := j.out.save(j.results); err != nil {
			return err
		}
	}
	return nil
}

func restartOnce(ctx context.Context, programs programs, what restart) (measured report.Restart, err error) {
	tell("starting a control plane with %d bound mirrors in %d namespaces", what.mirrors, what.namespaces)
	s, err := newStage(ctx, programs, controlplane.Options{})
	if err != nil {
		return measured, err
	}
	defer func() { err = errors.Join(err, s.plane.Stop()) }()
	if err := s.bind(ctx, false); err != nil { // else the binder would look at everything as it comes
		return measured, err
	}
	if err := s.loadMirrors(ctx, what); err != nil {
		return measured, fmt.Errorf("load the mirrors: %w", err)
	}
	measured = report.Restart{Mirrors: what.mirrors, Namespaces: what.namespaces}
	waiting := s.mirrorClaim(s.tenants[0], "waiting", s.origins[0])
	seen, err := s.follow(ctx, 1)
	if err != nil {
		return measured, err
	}
	defer seen.end()
	if err := s.createAll(ctx, []*corev1.PersistentVolumeClaim{waiting}, seen); err != nil {
		return measured, err
	}
	process := s.provisioners[report.Mooring]
	began := time.Now()
	if err := process.Start(ctx); err != nil {
		return measured, err
	}
	measured.ReadySeconds = time.Since(began).Seconds()
	if err := seen.wait(ctx, seen.volumes); err != nil {
		return measured, err
	}
	measured.FirstDecisionSeconds = seen.lastVolume.Sub(began).Seconds()
	if err := s.settle(ctx); err != nil {
		return measured, err
	}
	if err := s.whileUnrelated(ctx, process, what.churn, &measured); err != nil {
		return measured, err
	}
	measured.PeakMiB, err = peakMiB(process.PID())
	tell("restart with %d mirrors: ready in %.1f s, first volume in %.1f s, %.0f MiB; %d unrelated changes: CPU %.2f s, requests %v", measured.Mirrors,
		measured.ReadySeconds, measured.FirstDecisionSeconds, measured.PeakMiB, measured.ChurnChanges, measured.ChurnCPUSeconds, measured.ChurnRequests)
	return measured, errors.Join(err, s.stop(ctx, process))
}

// loadMirrors makes mirrors as they are once everybody has done their work.
func (s *stage) loadMirrors(ctx context.Context, what restart) error {
	var err error
	if s.tenants, err = s.namespaces(ctx, "tenant", what.namespaces); err != nil {
		return err
	}
	if err := s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ownerName}}); err != nil {
		return err
	}
	if err := s.addOrigins(ctx, max(what.mirrors/mirrorsPerOrigin, 1)); err != nil {
		return err
	}
	err = each(ctx, len(s.origins), func(ctx context.Context, i int) error {
		return s.Patch(ctx, s.origins[i].claim, client.RawPatch("application/merge-patch+json",
			fmt.Appendf(nil, `{"metadata":{"finalizers":["kubernetes.io/pvc-protection",%q]}}`, s.names.Finalizer())))
	})
	if err != nil {
		return err
	}
	return each(ctx, what.mirrors, func(ctx context.Context, i int) error {
		if i > 0 && i%10000 == 0 {
			tell("%d mirrors loaded", i)
		}
		return s.loadMirror(ctx, i)
	})
}

func (s *stage) loadMirror(ctx context.Context, i int) error {
	of := s.origins[i%len(s.origins)]
	claim := s.mirrorClaim(s.tenants[i%len(s.tenants)], fmt.Sprintf("m%d", i), of)
	claim.Labels = nil // no claim of a trial
	if err := s.Create(ctx, claim); err != nil {
		return err
	}
	volume, _, err := s.mirrorVolume(claim, of)
	if err != nil {
		return err
	}
	if err := s.Create(ctx, volume); err != nil {
		return err
	}
	claim.Spec.VolumeName = volume.Name
	claim.Annotations[bindComplete] = "yes"
	if err := s.Update(ctx, claim); err != nil {
		return err
	}
	return s.markBound(ctx, claim, volume)
}

// whileUnrelated changes what no mirror depends on, twenty times a second, and
// sees what that costs the controller.
func (s *stage) whileUnrelated(ctx context.Context, process *controlplane.Process, churn time.Duration, measured *report.Restart) error {
	changes, err := s.newUnrelated(ctx)
	if err != nil {
		return err
	}
	before, cpuBefore, err := s.spent(ctx, process)
	if err != nil {
		return err
	}
	began := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ; time.Since(began) < churn; measured.ChurnChanges++ {
		if err := changes[measured.ChurnChanges%len(changes)](ctx, measured.ChurnChanges); err != nil {
			return err
		}
		<-tick.C
	}
	measured.ChurnSeconds = time.Since(began).Seconds()
	after, cpuAfter, err := s.spent(ctx, process)
	measured.ChurnRequests, measured.ChurnCPUSeconds = since(before, after), cpuAfter-cpuBefore
	return err
}

func (s *stage) spent(ctx context.Context, process *controlplane.Process) (map[string]int, float64, error) {
	scrape, err := fetch(ctx, s.metricsURL)
	if err != nil {
		return nil, 0, err
	}
	requests, err := clientRequests(scrape)
	if err != nil {
		return nil, 0, err
	}
	cpu, err := cpuSeconds(process.PID())
	return requests, cpu, err
}

// newUnrelated makes a namespace and a node, and returns changes of them and of
// claims in there: a claim comes and goes, labels and a node's state change.
func (s *stage) newUnrelated(ctx context.Context) ([]func(context.Context, int) error, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "unrelated"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "unrelated"}}
	if err := errors.Join(s.Create(ctx, namespace), s.Create(ctx, node)); err != nil {
		return nil, err
	}
	return []func(context.Context, int) error{
		func(ctx context.Context, i int) error {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: fmt.Sprintf("c%d", i)}, Spec: claimSpec(staticClass)}
			if err := s.Create(ctx, claim); err != nil {
				return err
			}
			return s.remove(ctx, claim)
		},
		func(ctx context.Context, i int) error {
			return s.Patch(ctx, namespace, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{"change":"%d"}}}`, i)))
		},
		func(ctx context.Context, i int) error {
			return s.Status().Patch(ctx, node, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"status":{"nodeInfo":{"bootID":"%d"}}}`, i)))
		},
	}, nil
}
