package main

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// readOnlyScene is a grant to read: who asks to write is refused, never
// narrowed, and who asks to read gets a volume that is mounted read-only.
func readOnlyScene(ctx context.Context, s *stage) error {
	const namespace, name, origin = "team-b", "archive", "library/archive"
	s.tell.say("The library lets every project read its archive: read-only-target-ns-labels. Team-b asks to write, too.")
	if err := s.types(ctx, "apply", "-f", "examples/share/read-only-origin.yaml"); err != nil {
		return err
	}
	if err := s.opens(ctx, "library", "archive"); err != nil {
		return err
	}
	if _, err := s.mooring(ctx, exitMirrorRefused, "mirror", origin, "--into", namespace); err != nil {
		return err
	}
	if err := s.refused(ctx, refusal{namespace, name, "GrantReadOnly"}); err != nil {
		return err
	}
	s.tell.seen("Refused, not made less in silence")
	return s.readOnlyMirror(ctx, namespace, name, origin)
}

func (s *stage) readOnlyMirror(ctx context.Context, namespace, name, origin string) error {
	s.tell.say("A claim's access modes cannot be edited, so it is made anew, with ReadOnlyMany.")
	if err := s.types(ctx, "delete", "pvc", "-n", namespace, name); err != nil {
		return err
	}
	if err := s.types(ctx, "apply", "-f", "examples/share/read-only-mirror.yaml"); err != nil {
		return err
	}
	if err := s.mirrors(ctx, namespace, name, origin); err != nil {
		return err
	}
	mirror, err := s.bound(ctx, namespace, name)
	if err != nil {
		return err
	}
	if err := s.types(ctx, "get", "pv", s.before[origin].volume.Name, mirror.volume.Name, "-o",
		"custom-columns=VOLUME:.metadata.name,ACCESS:.spec.accessModes,MOUNT OPTIONS:.spec.mountOptions"); err != nil {
		return err
	}
	if err := mountedReadOnly(mirror.volume, s.before[origin].volume); err != nil {
		return err
	}
	s.tell.seen("The mount is to be read-only, with a superblock of its own; else it has the origin's options")
	s.tell.say("What that rests on, where no node is here to show it, the claim's event says:")
	if err := s.hasEvent(ctx, namespace, name, "Mirrored"); err != nil {
		return err
	}
	return s.types(ctx, "get", "events", "-n", namespace, "--field-selector", "involvedObject.name="+name+",reason=Mirrored",
		"-o", "custom-columns=REASON:.reason,MESSAGE:.message")
}

// mountedReadOnly sees that a mirror of an NFS volume cannot be written
// through, and is else mounted as its origin.
func mountedReadOnly(mirror, origin *corev1.PersistentVolume) error {
	if !slices.Equal(mirror.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}) {
		return surprised(mirror, "the mirror volume is ReadOnlyMany, and nothing else")
	}
	want := append(slices.Clone(origin.Spec.MountOptions), "ro", "nosharecache")
	if !slices.Equal(mirror.Spec.MountOptions, want) {
		return surprised(mirror, "the mirror volume's mount options are %v", want)
	}
	return nil
}
