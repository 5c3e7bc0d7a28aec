package main

import (
	"context"
	"slices"
)

// refusedDriverScene is an origin that is granted, and that no two nodes could
// mount.
func refusedDriverScene(ctx context.Context, s *stage) error {
	const namespace, name = "team-b", "disk-of-team-a"
	s.tell.say("Team-a grants its disk to the project. The grant is good; the driver, ebs.csi.aws.com, is of block devices.")
	if err := s.types(ctx, "apply", "-f", "examples/share/refused-disk-origin.yaml"); err != nil {
		return err
	}
	if err := s.opens(ctx, "team-a", "disk"); err != nil {
		return err
	}
	if err := s.asksInVain(ctx, refusal{namespace, name, "DriverRefused"}, "examples/share/refused-disk-mirror.yaml"); err != nil {
		return err
	}
	origin, err := s.claim("team-a", "disk")(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(origin.Finalizers, s.names.Finalizer()) {
		return surprised(origin, "an origin that cannot be mirrored has not got Mooring's finalizer")
	}
	s.tell.seen("Refused, with the reason, before anything was made or marked")
	return nil
}
