package main

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// originDeletedScene is an owner who deletes a claim that others mirror: it is
// held until the last mirror is gone.
func originDeletedScene(ctx context.Context, s *stage) error {
	const origin, namespace, name = "library/archive", "team-b", "archive"
	owner, claim, _ := strings.Cut(origin, "/")
	before := s.before[origin]
	mirror, err := s.bound(ctx, namespace, name)
	if err != nil {
		return err
	}
	s.tell.say("The library deletes its archive, and does not think of team-b, which reads it.")
	if err := s.types(ctx, "delete", "pvc", "-n", owner, claim, "--wait=false"); err != nil {
		return err
	}
	if err := s.hasEvent(ctx, owner, claim, "DeletionHeld"); err != nil {
		return err
	}
	if err := s.types(ctx, "get", "pvc", "-n", owner, claim); err != nil {
		return err
	}
	if err := s.types(ctx, "events", "-n", owner, "--for", "pvc/"+claim, "--types", "Warning"); err != nil {
		return err
	}
	if err := s.isHeld(ctx, before); err != nil {
		return err
	}
	s.tell.seen("Held under its reader, with who that is and both ways out")
	s.tell.say("Team-b is told too, and lets go.")
	if err := s.hasEvent(ctx, namespace, name, "OriginTerminating"); err != nil {
		return err
	}
	if err := s.types(ctx, "get", "events", "-n", namespace, "--field-selector", "involvedObject.name="+name+",reason=OriginTerminating",
		"-o", "custom-columns=REASON:.reason,MESSAGE:.message"); err != nil {
		return err
	}
	if err := s.types(ctx, "delete", "pvc", "-n", namespace, name); err != nil {
		return err
	}
	return s.originGoes(ctx, before, mirror)
}

// isHeld sees that an origin that is being deleted is there, with its volume.
func (s *stage) isHeld(ctx context.Context, before pair) error {
	held, err := s.claim(before.claim.Namespace, before.claim.Name)(ctx)
	if err != nil {
		return err
	}
	if held.DeletionTimestamp == nil || held.Status.Phase != corev1.ClaimBound {
		return surprised(held, "the origin is being deleted, and is still bound")
	}
	return s.sameData(ctx, before)
}

// originGoes waits until the last mirror and its origin are gone; the data, which
// its volume is to retain, stays.
func (s *stage) originGoes(ctx context.Context, before, mirror pair) error {
	if err := s.volumeGone(ctx, mirror.volume.Name); err != nil {
		return err
	}
	if err := s.claimGone(ctx, before.claim.Namespace, before.claim.Name); err != nil {
		return err
	}
	volume, err := until(ctx, "the origin's volume is Released", s.volume(before.volume.Name),
		func(volume *corev1.PersistentVolume) bool { return volume.Status.Phase == corev1.VolumeReleased })
	if err != nil {
		return err
	}
	if what := differ(map[string]any{"source": before.volume.Spec.PersistentVolumeSource}, map[string]any{"source": volume.Spec.PersistentVolumeSource}); what != "" {
		return surprised(volume, "the origin volume is as before, but %s", what)
	}
	if err := s.types(ctx, "get", "pv", before.volume.Name); err != nil {
		return err
	}
	delete(s.before, before.claim.Namespace+"/"+before.claim.Name)
	s.tell.seen("With the last mirror the origin claim is gone; its volume is retained, as its owner had it")
	return nil
}
