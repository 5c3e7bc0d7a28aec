package main

import (
	"context"
	"errors"
)

// keptAndSharedScene is where both doors meet: a mirror of a retained volume.
func keptAndSharedScene(ctx context.Context, s *stage) error {
	const namespace, name = "team-b", "projects"
	s.tell.say("The owner of the retained volume's claim lets one namespace in, by its name, and that namespace asks.")
	if _, err := s.mooring(ctx, exitOK, "share", retainedClaim, "--with", "kubernetes.io/metadata.name="+namespace, "--yes"); err != nil {
		return err
	}
	if _, err := s.mooring(ctx, exitOK, "mirror", retainedClaim, "--into", namespace); err != nil {
		return err
	}
	if err := s.mirrors(ctx, namespace, name, retainedClaim); err != nil {
		return err
	}
	mirror, err := s.bound(ctx, namespace, name)
	if err != nil {
		return err
	}
	s.tell.say("A mirror is no conflict: the retained volume is unchanged, its mirror is listed, nothing has drifted.")
	out, err := s.mooring(ctx, exitOK, "retain", "preview", retainedManifest, "--kubeconfig", retainKubeconfig)
	if err != nil {
		return err
	}
	if err := errors.Join(prints(out, retainedVolume+": unchanged"), prints(out, mirror.volume.Name)); err != nil {
		return err
	}
	if err := s.noDrift(ctx); err != nil {
		return err
	}
	s.tell.seen("Kept and shared")
	return nil
}
