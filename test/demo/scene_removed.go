package main

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// removedScene is the end of a mirror: its volume's object goes, and nothing
// of the origin has changed.
func removedScene(ctx context.Context, s *stage) error {
	const namespace, name, origin = "tenant-s123456", "datasets-jupyter-4711-mirror", "workspace-ml/shvol-datasets"
	before := s.before[origin]
	mirror, err := s.bound(ctx, namespace, name)
	if err != nil {
		return err
	}
	s.tell.say("While a claim is mirrored, a finalizer keeps it from being deleted under its users:")
	if err := s.showFinalizers(ctx, before); err != nil {
		return err
	}
	held, err := s.claim(before.claim.Namespace, before.claim.Name)(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(held.Finalizers, s.names.Finalizer()) {
		return surprised(held, "an origin that is mirrored has Mooring's finalizer")
	}
	s.tell.say("The instance has ended, and CrownLabs deletes its mirror.")
	if err := s.types(ctx, "delete", "pvc", "-n", namespace, name); err != nil {
		return err
	}
	if err := s.volumeGone(ctx, mirror.volume.Name); err != nil {
		return err
	}
	s.tell.seen("The mirror volume %s is gone", mirror.volume.Name)
	if err := s.unchanged(ctx, before); err != nil {
		return err
	}
	if err := s.showFinalizers(ctx, before); err != nil {
		return err
	}
	if err := s.types(ctx, "get", "pv", before.volume.Name, "-o",
		"custom-columns=VOLUME:.metadata.name,STATUS:.status.phase,CLAIM:.spec.claimRef.name,DATA:.spec.csi.volumeAttributes.share"); err != nil {
		return err
	}
	s.tell.seen("Claim, volume and data reference of %s are what they were before the first mirror", origin)
	return nil
}

func (s *stage) showFinalizers(ctx context.Context, origin pair) error {
	return s.types(ctx, "get", "pvc", "-n", origin.claim.Namespace, origin.claim.Name, "-o",
		"custom-columns=CLAIM:.metadata.name,STATUS:.status.phase,FINALIZERS:.metadata.finalizers")
}

func (s *stage) volumeGone(ctx context.Context, name string) error {
	_, err := until(ctx, "the mirror volume is gone", func(ctx context.Context) (*corev1.PersistentVolume, error) {
		volume, err := s.volume(name)(ctx)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return volume, err
	}, func(volume *corev1.PersistentVolume) bool { return volume == nil })
	return err
}

// unchanged waits until the origin has lost Mooring's finalizer, and compares
// all else of it and of its volume with what was there before.
func (s *stage) unchanged(ctx context.Context, before pair) error {
	claim, err := until(ctx, "the origin without mirrors has not got Mooring's finalizer any more",
		s.claim(before.claim.Namespace, before.claim.Name),
		func(claim *corev1.PersistentVolumeClaim) bool {
			return !slices.Contains(claim.Finalizers, s.names.Finalizer())
		})
	if err != nil {
		return err
	}
	volume, err := s.volume(before.volume.Name)(ctx)
	if err != nil {
		return err
	}
	if what := differ(facts(before.claim, before.claim.Spec, before.claim.Status.Phase), facts(claim, claim.Spec, claim.Status.Phase)); what != "" {
		return surprised(claim, "the origin claim is as before, but %s", what)
	}
	if what := differ(facts(before.volume, before.volume.Spec, before.volume.Status.Phase), facts(volume, volume.Spec, volume.Status.Phase)); what != "" {
		return surprised(volume, "the origin volume is as before, but %s", what)
	}
	return nil
}

// facts are all of an object but its version, who manages which field, and
// conditions, where Kubernetes itself writes since when a claim is not used.
func facts(object interface {
	GetUID() types.UID
	GetLabels() map[string]string
	GetAnnotations() map[string]string
	GetFinalizers() []string
}, spec, phase any) map[string]any {
	return map[string]any{
		"uid": object.GetUID(), "labels": object.GetLabels(), "annotations": object.GetAnnotations(),
		"finalizers": object.GetFinalizers(), "spec": spec, "phase": phase,
	}
}

func differ(before, after map[string]any) string {
	for what, value := range before {
		if !reflect.DeepEqual(value, after[what]) {
			return fmt.Sprintf("its %s was %v and is %v", what, value, after[what])
		}
	}
	return ""
}
