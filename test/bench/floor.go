package main

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// writeFloor writes what Mooring writes for claims that are granted at once.
func (s *stage) writeFloor(ctx context.Context, claims []*corev1.PersistentVolumeClaim, origins []origin) error {
	return each(ctx, len(claims), func(ctx context.Context, i int) error {
		of := origins[i%len(origins)]
		if i < len(origins) {
			patch := fmt.Sprintf(`{"metadata":{"uid":%q,"finalizers":["kubernetes.io/pvc-protection",%q]}}`, of.claim.UID, s.names.Finalizer())
			target := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}}
			target.Namespace, target.Name = of.claim.Namespace, of.claim.Name
			if err := s.Patch(ctx, target, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
				return err
			}
		}
		volume, message, err := s.mirrorVolume(claims[i], of)
		if err != nil {
			return err
		}
		if err := s.Create(ctx, volume); err != nil {
			return err
		}
		return s.Create(ctx, eventFor(claims[i], message))
	})
}

// eventFor is an event as the recorder writes it.
func eventFor(claim *corev1.PersistentVolumeClaim, message string) *eventsv1.Event {
	now := metav1.NowMicro()
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name + "." + strconv.FormatInt(now.UnixNano(), 16)},
		EventTime:           now,
		ReportingController: "mooring-controller", ReportingInstance: "mooring-controller-bench",
		Action: "Mirror", Reason: string(mirror.Mirrored), Type: corev1.EventTypeNormal, Note: message,
		Regarding: corev1.ObjectReference{
			Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name,
			UID: claim.UID, ResourceVersion: claim.ResourceVersion,
		},
	}
}
