package main

import (
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// createScene makes the retained volume, and shows that what was approved is all
// that is ever done.
func createScene(ctx context.Context, s *stage) error {
	if err := s.create(ctx, receiptFile, "created"); err != nil {
		return err
	}
	made, err := until(ctx, "the retained volume is Available", s.volume(retainedVolume), func(v *corev1.PersistentVolume) bool {
		return v.Status.Phase == corev1.VolumeAvailable
	})
	if err != nil {
		return err
	}
	s.tell.say("The same again, as after a lost connection or in the next pipeline:")
	if err := s.create(ctx, "again.json", "unchanged"); err != nil {
		return err
	}
	after, err := s.volume(retainedVolume)(ctx)
	if err != nil {
		return err
	}
	if after.UID != made.UID || after.ResourceVersion != made.ResourceVersion {
		return surprised(after, "a second create writes nothing")
	}
	s.tell.seen("One write in two runs")
	if err := s.conflict(ctx); err != nil {
		return err
	}
	return s.bindRetained(ctx)
}

// create runs mooring retain create for the approved plan, and sees that it
// prints the told outcome.
func (s *stage) create(ctx context.Context, receipt, outcome string) error {
	out, err := s.mooring(ctx, exitOK, "retain", "create", retainedManifest, "--kubeconfig", retainKubeconfig,
		"--approved-plan", s.approved, "-o", receipt)
	return errors.Join(err, prints(out, retainedVolume+": "+outcome))
}

// conflict is a second manifest that reaches the same directory.
func (s *stage) conflict(ctx context.Context) error {
	s.tell.say("Another manifest reaches the same directory, by another driver and spelling of the server's name:")
	const conflicting = "examples/retained-conflict.yaml"
	_, err := s.mooring(ctx, exitBackendShared, "retain", "create", conflicting, "--kubeconfig", retainKubeconfig,
		"--without-approval", "-o", "conflict.json")
	if err != nil {
		return err
	}
	if volume, err := s.volume("projects-again")(ctx); !apierrors.IsNotFound(err) {
		return surprised(volume, "what is refused is not made (%v)", err)
	}
	return nil
}

// bindRetained lets the binder bind the claim that the volume is reserved for.
func (s *stage) bindRetained(ctx context.Context) error {
	s.tell.say("The only claim that may have the volume comes, and Kubernetes binds it. The receipt still holds:")
	if err := s.types(ctx, "create", "namespace", "research"); err != nil {
		return err
	}
	if err := s.types(ctx, "apply", "-f", "examples/retained-claim.yaml"); err != nil {
		return err
	}
	namespace, name, _ := strings.Cut(retainedClaim, "/")
	if err := s.opens(ctx, namespace, name); err != nil {
		return err
	}
	if bound := s.before[retainedClaim]; bound.volume.Name != retainedVolume {
		return surprised(bound.claim, "the claim is bound to the volume %s", retainedVolume)
	}
	if err := s.types(ctx, "get", "pv", retainedVolume); err != nil {
		return err
	}
	return s.noDrift(ctx)
}

func (s *stage) noDrift(ctx context.Context) error {
	_, err := s.mooring(ctx, exitOK, "retain", "verify", receiptFile, "--kubeconfig", retainKubeconfig)
	return err
}
