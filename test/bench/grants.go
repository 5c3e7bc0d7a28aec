package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/test/bench/report"
)

// measureGrants gives and takes so many grants, one after the other, while
// nothing else happens.
func (s *stage) measureGrants(ctx context.Context, count int, results *report.Run) error {
	if err := s.bind(ctx, true); err != nil {
		return err
	}
	process := s.provisioners[report.Mooring]
	if err := s.startLeading(ctx, process); err != nil {
		return err
	}
	var toBound, toRevoked []time.Duration
	var failed error
	for i := range count {
		bound, revoked, err := s.grantOnce(ctx, i)
		if err != nil {
			failed = fmt.Errorf("grant %d: %w", i+1, err)
			break
		}
		toBound, toRevoked = append(toBound, bound), append(toRevoked, revoked)
	}
	if err := errors.Join(failed, s.stop(ctx, process)); err != nil {
		return err
	}
	results.Grants = &report.Grants{ToBound: report.LatencyOf(toBound), ToRevoked: report.LatencyOf(toRevoked)}
	tell("%d grants: Bound p50 %.0f ms, p99 %.0f ms; revoked p50 %.0f ms, p99 %.0f ms", count,
		results.Grants.ToBound.P50, results.Grants.ToBound.P99, results.Grants.ToRevoked.P50, results.Grants.ToRevoked.P99)
	return nil
}

// grantOnce lets a claim be refused, then writes the grant, then removes it.
func (s *stage) grantOnce(ctx context.Context, i int) (toBound, toRevoked time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	of, err := s.origin(ctx, fmt.Sprintf("granted-%d", i), nil)
	if err != nil {
		return 0, 0, err
	}
	claim := s.mirrorClaim(s.tenants[i%len(s.tenants)], fmt.Sprintf("granted-%d", i), of)
	events, err := s.Watch(ctx, &corev1.PersistentVolumeClaimList{}, client.InNamespace(claim.Namespace),
		client.MatchingFields{"metadata.name": claim.Name})
	if err != nil {
		return 0, 0, err
	}
	defer events.Stop()
	if err := s.Create(ctx, claim); err != nil {
		return 0, 0, err
	}
	seen := func(is func(*corev1.PersistentVolumeClaim) bool) (time.Time, error) {
		for {
			select {
			case <-ctx.Done():
				return time.Time{}, fmt.Errorf("claim %s/%s: %w", claim.Namespace, claim.Name, context.Cause(ctx))
			case event := <-events.ResultChan():
				now, ok := event.Object.(*corev1.PersistentVolumeClaim)
				if !ok {
					return time.Time{}, fmt.Errorf("the watch ended: %v", event.Object)
				}
				if is(now) {
					return time.Now(), nil
				}
			}
		}
	}
	if _, err := seen(s.isRefused); err != nil {
		return 0, 0, err
	}
	step := func(grant string, is func(*corev1.PersistentVolumeClaim) bool) (time.Duration, error) {
		began := time.Now()
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, s.names.ReadWriteGrant(), grant)
		if err := s.Patch(ctx, of.claim, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			return 0, err
		}
		end, err := seen(is)
		return end.Sub(began), err
	}
	toBound, err = step(fmt.Sprintf("%q", tenantsOnly), func(c *corev1.PersistentVolumeClaim) bool { return c.Status.Phase == corev1.ClaimBound })
	if err != nil {
		return 0, 0, err
	}
	toRevoked, err = step("null", func(c *corev1.PersistentVolumeClaim) bool {
		return c.Status.Phase == corev1.ClaimBound && s.isRefused(c)
	})
	if err != nil {
		return 0, 0, err
	}
	return toBound, toRevoked, s.clear(ctx, []*corev1.PersistentVolumeClaim{claim}, nil)
}

// isRefused reports whether a claim's condition says that it has no grant.
func (s *stage) isRefused(claim *corev1.PersistentVolumeClaim) bool {
	for _, condition := range claim.Status.Conditions {
		if string(condition.Type) == s.names.Condition() {
			return condition.Status == corev1.ConditionFalse
		}
	}
	return false
}
