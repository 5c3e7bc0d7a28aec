package main

import (
	"context"
	"slices"
)

// originsScene makes the claims that the other scenes mirror.
func originsScene(ctx context.Context, s *stage) error {
	s.tell.say("The claims to be shared are ordinary ones on NFS, of two drivers. Nothing here provisions storage, " +
		"so their volumes are made by hand; all else is as on your cluster.")
	err := s.types(ctx, "apply", "-f", "examples/origin-volumes.yaml", "-f", "examples/crownlabs/mydrive.yaml",
		"-f", "examples/crownlabs/sharedvolume.yaml", "-f", "examples/share/origin.yaml")
	if err != nil {
		return err
	}
	for _, origin := range [][2]string{{"mydrive-pvcs", "s123456-drive"}, {"workspace-ml", "shvol-datasets"}, {"team-a", "data"}} {
		if err := s.opens(ctx, origin[0], origin[1]); err != nil {
			return err
		}
	}
	if err := s.types(ctx, "get", "pvc", "-A"); err != nil {
		return err
	}
	s.tell.say("One annotation of each is its grant: a selector that a namespace's labels must match.")
	return s.types(ctx, "get", "pvc", "-A", "-o",
		`custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,GRANT:.metadata.annotations.pmp\.crownlabs\.polito\.it/required-target-ns-labels`)
}

// opens waits until a claim that is to be mirrored is bound, and remembers it as
// it was before.
func (s *stage) opens(ctx context.Context, namespace, name string) error {
	found, err := s.bound(ctx, namespace, name)
	if err != nil {
		return err
	}
	if slices.Contains(found.claim.Finalizers, s.names.Finalizer()) {
		return surprised(found.claim, "an origin that has no mirrors has not got Mooring's finalizer")
	}
	s.before[namespace+"/"+name] = found
	return nil
}
