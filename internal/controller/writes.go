package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// fieldManager is who Mooring writes as, and who its events come from.
const fieldManager = "mooring-controller"

// writer holds every write that Mooring makes to the cluster, events and its
// lease apart. Nothing else in this package writes.
type writer struct {
	client client.Client
	names  mooringapi.Names
}

// createVolume creates a mirror volume.
func (w writer) createVolume(ctx context.Context, volume *corev1.PersistentVolume) error {
	return w.client.Create(ctx, volume, client.FieldOwner(fieldManager))
}

// deleteVolume deletes a mirror volume's object, which is Retain, so that the
// data stays; only if it is still exactly the one that was looked at.
func (w writer) deleteVolume(ctx context.Context, volume *corev1.PersistentVolume) error {
	return w.client.Delete(ctx, volume, client.Preconditions{UID: &volume.UID, ResourceVersion: &volume.ResourceVersion})
}

// setNodeAffinity sets a mirror volume's node affinity; nil removes it. It fails
// with a conflict if the volume has changed since it was read.
func (w writer) setNodeAffinity(ctx context.Context, volume *corev1.PersistentVolume, affinity *corev1.VolumeNodeAffinity) error {
	return w.patchVolume(ctx, volume, nil, map[string]any{"nodeAffinity": affinity})
}

// annotateVolume sets annotations of a mirror volume; nil removes one. It fails
// with a conflict if the volume has changed since it was read.
func (w writer) annotateVolume(ctx context.Context, volume *corev1.PersistentVolume, annotations map[string]any) error {
	return w.patchVolume(ctx, volume, map[string]any{"annotations": annotations}, nil)
}

// patchVolume merges changes into a volume's metadata and spec, if it has not
// changed since it was read, and leaves in volume what the cluster answers.
func (w writer) patchVolume(ctx context.Context, volume *corev1.PersistentVolume, metadata, spec map[string]any) error {
	exactly := map[string]any{"uid": volume.UID, "resourceVersion": volume.ResourceVersion}
	maps.Copy(exactly, metadata)
	change := map[string]any{"metadata": exactly}
	if len(spec) > 0 { // null would remove it all
		change["spec"] = spec
	}
	patch, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encode a change of volume %s: %w", volume.Name, err)
	}
	return w.client.Patch(ctx, volume, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager))
}

// deleteClaim deletes a mirror claim whose grant has ended, only if it is still
// exactly the one that was looked at.
func (w writer) deleteClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	return w.client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion})
}

// setSize applies to a bound claim's status the size of its volume, which
// nobody else does once it is bound. The field manager is an own one: an apply
// takes away what its manager applied before and leaves out now.
func (w writer) setSize(ctx context.Context, claim *corev1.PersistentVolumeClaim, size resource.Quantity) error {
	status := corev1apply.PersistentVolumeClaimStatus().WithCapacity(corev1.ResourceList{corev1.ResourceStorage: size})
	apply := corev1apply.PersistentVolumeClaim(claim.Name, claim.Namespace).WithUID(claim.UID).WithStatus(status)
	return w.client.Status().Apply(ctx, apply, client.FieldOwner(fieldManager+"-size/"+w.names.Provisioner()), client.ForceOwnership)
}

// createBrake and updateBrake write the record of a stop of deletions.
func (w writer) createBrake(ctx context.Context, record *corev1.ConfigMap) error {
	return w.client.Create(ctx, record, client.FieldOwner(fieldManager))
}

func (w writer) updateBrake(ctx context.Context, record *corev1.ConfigMap) error {
	return w.client.Update(ctx, record, client.FieldOwner(fieldManager))
}

// addFinalizer puts the finalizer on an origin claim. The write fails with a
// conflict if that is not, or no longer, as it was read, be it from the cache; if
// it does not, the origin was so at that moment.
func (w writer) addFinalizer(ctx context.Context, origin *corev1.PersistentVolumeClaim) error {
	return w.setFinalizers(ctx, origin, append(slices.Clone(origin.Finalizers), w.names.Finalizer()))
}

// removeFinalizer takes Mooring's finalizer off an origin claim, and no other;
// with the same precondition.
func (w writer) removeFinalizer(ctx context.Context, origin *corev1.PersistentVolumeClaim) error {
	rest := slices.DeleteFunc(slices.Clone(origin.Finalizers), func(f string) bool { return f == w.names.Finalizer() })
	return w.setFinalizers(ctx, origin, rest)
}

func (w writer) setFinalizers(ctx context.Context, origin *corev1.PersistentVolumeClaim, finalizers []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             origin.UID,
		"resourceVersion": origin.ResourceVersion,
		"finalizers":      finalizers,
	}})
	if err != nil {
		return fmt.Errorf("encode the finalizers of %s/%s: %w", origin.Namespace, origin.Name, err)
	}
	target := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: origin.Namespace, Name: origin.Name},
	}
	return w.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager))
}

// setCondition applies Mooring's condition to a claim; server-side apply with
// an own field manager leaves everybody else's alone.
func (w writer) setCondition(ctx context.Context, claim *corev1.PersistentVolumeClaim, condition corev1.PersistentVolumeClaimCondition) error {
	status := corev1apply.PersistentVolumeClaimStatus().WithConditions(
		corev1apply.PersistentVolumeClaimCondition().
			WithType(condition.Type).
			WithStatus(condition.Status).
			WithReason(condition.Reason).
			WithMessage(condition.Message).
			WithLastProbeTime(condition.LastProbeTime).
			WithLastTransitionTime(condition.LastTransitionTime))
	apply := corev1apply.PersistentVolumeClaim(claim.Name, claim.Namespace).WithUID(claim.UID).WithStatus(status)
	return w.client.Status().Apply(ctx, apply, w.conditionOwner(), client.ForceOwnership)
}

// conditionOwner is who owns the condition of this provisioner name: under one
// name for all, two installations would remove each other's. A name has at most
// 63 characters, a field manager 128.
func (w writer) conditionOwner() client.FieldOwner {
	return client.FieldOwner(fieldManager + "/" + w.names.Provisioner())
}

// putBackClaimRef gives a mirror volume the claimRef that it was made with. It
// fails with a conflict if the volume has changed since it was read.
func (w writer) putBackClaimRef(ctx context.Context, volume *corev1.PersistentVolume, own *corev1.ObjectReference) error {
	return w.patchVolume(ctx, volume, nil, map[string]any{"claimRef": claimRefPatch(own)})
}

// claimRefPatch returns a merge patch by which a claimRef is this one and
// nothing else.
func claimRefPatch(own *corev1.ObjectReference) map[string]any {
	return map[string]any{
		"apiVersion": own.APIVersion, "kind": own.Kind, "namespace": own.Namespace, "name": own.Name, "uid": own.UID,
		"resourceVersion": nil, "fieldPath": nil,
	}
}
