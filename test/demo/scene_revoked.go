package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// The mirror whose grant ends, and its origin.
const (
	endedNamespace = "team-b"
	endedClaim     = "data-of-team-a"
	endedOrigin    = "team-a/data"
	onlyTeamC      = "kubernetes.io/metadata.name=team-c"
)

// revokedScene is the end of a grant: it is told on both sides, and what else
// happens the class says.
func revokedScene(ctx context.Context, s *stage) error {
	s.tell.say("From now on team-a lets in team-c alone: it narrows its grant. Team-b has a mirror, which is bound already.")
	if err := s.grant(ctx, onlyTeamC); err != nil {
		return err
	}
	if err := s.hasCondition(ctx, corev1.ConditionFalse, "NotShared"); err != nil {
		return err
	}
	if err := s.types(ctx, "describe", "pvc", "-n", endedNamespace, endedClaim); err != nil {
		return err
	}
	s.tell.say("The owner is told who lost access, and why:")
	if err := s.hasEvent(ctx, "team-a", "data", "AccessEnded"); err != nil {
		return err
	}
	if err := s.types(ctx, "events", "-n", "team-a", "--for", "pvc/data", "--types", "Warning"); err != nil {
		return err
	}
	if err := s.stillBound(ctx); err != nil {
		return err
	}
	s.tell.seen("Both sides know, and nothing is removed: the class says Report, as it does unless it is told otherwise")
	if err := s.grantedInTime(ctx); err != nil {
		return err
	}
	return s.endsAfterDelay(ctx)
}

// grantedInTime sees a revocation withdrawn, in a class that says Delete.
func (s *stage) grantedInTime(ctx context.Context) error {
	s.tell.say("An administrator lets the class delete such claims, by default 5 minutes later. Before that, team-a thinks better of it.")
	if err := s.onRevoke(ctx, s.names.OnRevoke()+"="+mooringapi.OnRevokeDelete); err != nil {
		return err
	}
	if err := s.grant(ctx, wantedLabel+"="+wantedProject); err != nil {
		return err
	}
	if err := s.hasCondition(ctx, corev1.ConditionTrue, "Mirrored"); err != nil {
		return err
	}
	if err := s.stillBound(ctx); err != nil {
		return err
	}
	s.tell.seen("Granted again in time: all is as before")
	return nil
}

// endsAfterDelay sees a mirror claim deleted after the class's delay, and
// nothing else.
func (s *stage) endsAfterDelay(ctx context.Context) error {
	s.tell.say("With a delay of 2 seconds, the same again.")
	if err := s.onRevoke(ctx, s.names.RevokeAfter()+"=2s"); err != nil {
		return err
	}
	mirror, err := s.bound(ctx, endedNamespace, endedClaim)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := s.grant(ctx, onlyTeamC); err != nil {
		return err
	}
	if err := s.claimGone(ctx, endedNamespace, endedClaim); err != nil {
		return err
	}
	if took := time.Since(began); took < 2*time.Second {
		return fmt.Errorf("the claim is deleted after 2 s, not after %v", took)
	}
	if err := s.volumeGone(ctx, mirror.volume.Name); err != nil {
		return err
	}
	if err := s.hasEvent(ctx, endedNamespace, endedClaim, "ClaimDeleted"); err != nil {
		return err
	}
	if err := s.types(ctx, "events", "-n", endedNamespace, "--for", "pvc/"+endedClaim); err != nil {
		return err
	}
	if err := s.sameData(ctx, s.before[endedOrigin]); err != nil {
		return err
	}
	if err := s.types(ctx, "get", "pvc", "-n", "team-a", "data"); err != nil {
		return err
	}
	s.tell.seen("The mirror is gone, 2 seconds later; the origin and its data are untouched, and team-c has them as before:")
	if err := s.mirrors(ctx, askingNamespace, askingClaim, endedOrigin); err != nil {
		return err
	}
	return s.onRevoke(ctx, s.names.OnRevoke()+"="+mooringapi.OnRevokeReport)
}

// grant types the origin's grant.
func (s *stage) grant(ctx context.Context, selector string) error {
	_, err := s.mooring(ctx, exitOK, "share", endedOrigin, "--with", selector, "--yes")
	return err
}

// onRevoke types what the class does when a grant ends.
func (s *stage) onRevoke(ctx context.Context, annotation string) error {
	return s.types(ctx, "annotate", "storageclass", "pvc-mirror", "--overwrite", annotation)
}

// hasCondition waits until the mirror whose grant ends has a condition.
func (s *stage) hasCondition(ctx context.Context, status corev1.ConditionStatus, reason string) error {
	_, err := until(ctx, fmt.Sprintf("the condition of %s/%s is %s, %s", endedNamespace, endedClaim, status, reason),
		s.claim(endedNamespace, endedClaim), func(claim *corev1.PersistentVolumeClaim) bool {
			condition := s.condition(claim)
			return condition.Status == status && condition.Reason == reason
		})
	return err
}

// stillBound sees that the mirror is what it was.
func (s *stage) stillBound(ctx context.Context) error {
	mirror, err := s.bound(ctx, endedNamespace, endedClaim)
	if err != nil {
		return err
	}
	if mirror.claim.DeletionTimestamp != nil || mirror.volume.Name != mooringapi.VolumeNamePrefix+string(mirror.claim.UID) {
		return surprised(mirror.claim, "nothing is done to the mirror")
	}
	return nil
}

func (s *stage) claimGone(ctx context.Context, namespace, name string) error {
	_, err := until(ctx, "claim "+namespace+"/"+name+" is gone", func(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
		claim, err := s.claim(namespace, name)(ctx)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return claim, err
	}, func(claim *corev1.PersistentVolumeClaim) bool { return claim == nil })
	return err
}

// sameData sees that an origin's volume is what it was before the first mirror,
// and that the claim has it.
func (s *stage) sameData(ctx context.Context, before pair) error {
	now, err := s.bound(ctx, before.claim.Namespace, before.claim.Name)
	if err != nil {
		return err
	}
	if now.claim.UID != before.claim.UID {
		return surprised(now.claim, "the origin claim is the one that it was")
	}
	if what := differ(facts(before.volume, before.volume.Spec, before.volume.Status.Phase), facts(now.volume, now.volume.Spec, now.volume.Status.Phase)); what != "" {
		return surprised(now.volume, "the origin volume is as before, but %s", what)
	}
	return nil
}
