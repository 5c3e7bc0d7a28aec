package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// Adoption is what is done with mirror volumes of a provisioner that had the
// name before.
type Adoption string

// The adoptions. The zero value is AdoptReport.
const (
	AdoptReport  Adoption = "Report"  // adopted; a grant that ends is only reported
	AdoptEnforce Adoption = "Enforce" // adopted, and treated like any other mirror
	AdoptOff     Adoption = "Off"     // left alone
)

// adopt makes a mirror volume without a record safe, and writes the record if
// what it mirrors can be proven. What cannot be proven is told, never guessed
// and never deleted.
func (r *volumeReconciler) adopt(ctx context.Context, name string) error {
	volume, err := r.live.volume(ctx, name)
	if err != nil || volume == nil || volume.DeletionTimestamp != nil || !r.isToAdopt(volume) {
		return err
	}
	// 1. First of all: nobody's driver may ever delete the data behind it.
	if err := r.harden(ctx, volume); err != nil {
		return err
	}
	// 2. Then: nobody but its claim may be bound to it. It comes here once more.
	if reserved, err := r.reserve(ctx, volume); err != nil || reserved {
		return err
	}
	// 3. What it mirrors, on live reads.
	return r.prove(ctx, volume)
}

func (r *volumeReconciler) prove(ctx context.Context, volume *corev1.PersistentVolume) error {
	facts, err := r.factsOfFormer(ctx, volume)
	switch {
	case err != nil:
		return err
	case r.isLeftover(volume, facts.Claim):
		return client.IgnoreNotFound(r.write.deleteVolume(ctx, volume))
	case facts.Claim != nil && r.isLeft(volume, facts):
		return nil // the one whose it is adopts it
	}
	proof, missing := mirror.Prove(facts, volume)
	if missing == "" {
		return r.record(ctx, volume, facts.Claim, proof)
	}
	return r.unprovable(ctx, volume, facts.Claim, missing)
}

// unprovable tells of a volume of which it is not certain what it mirrors.
func (r *volumeReconciler) unprovable(ctx context.Context, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, missing string) error {
	r.unproven.add(volume.Name)
	if mirror.IsStripped(r.options.Names, volume) {
		return r.broken(ctx, volume, claim, missing)
	}
	if r.told.isNews(types.NamespacedName{Name: volume.Name}, missing) {
		r.say.notAdopted(volume, missing)
	}
	return nil
}

// isToAdopt reports whether a volume is one without a record, and one that an
// administrator lets be touched: what was Mooring's own is, in any case.
func (r *volumeReconciler) isToAdopt(volume *corev1.PersistentVolume) bool {
	return mirror.IsFormer(r.options.Names, volume) &&
		(r.options.Adopt != AdoptOff || mirror.IsStripped(r.options.Names, volume))
}

// isLeft reports whether a volume is somebody else's to adopt, whose class its
// claim has, or who serves the namespace of its claim; or was just made: once the binder has bound it, the
// claim wakes it again.
func (r *volumeReconciler) isLeft(volume *corev1.PersistentVolume, facts mirror.Facts) bool {
	isOthers := mirror.IsNameless(volume) && volume.Labels[r.options.Names.OriginLabel()] == "" &&
		(facts.Class == nil || facts.Class.Provisioner != r.options.Names.Provisioner())
	return isOthers || !serves(r.options, facts.NamespaceLabels) || facts.Claim.Spec.VolumeName == "" && hasClaimRef(volume, facts.Claim)
}

// harden makes a volume Retain.
func (r *volumeReconciler) harden(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		return nil
	}
	retain := map[string]any{"persistentVolumeReclaimPolicy": corev1.PersistentVolumeReclaimRetain}
	if err := r.write.patchVolume(ctx, volume, nil, retain); err != nil {
		return fmt.Errorf("make volume %s Retain: %w", volume.Name, err)
	}
	log.FromContext(ctx).Info("made a mirror volume Retain that was not")
	return nil
}

// record writes the record of a volume whose origin is proven.
func (r *volumeReconciler) record(ctx context.Context, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, proof mirror.Proof) error {
	names, stripped := r.options.Names, mirror.IsStripped(r.options.Names, volume)
	annotations := map[string]any{}
	for key, value := range proof.Record {
		annotations[key] = value
	}
	if !stripped {
		annotations[names.AdoptedAt()] = time.Now().UTC().Format(time.RFC3339)
	}
	metadata := map[string]any{"annotations": annotations, "labels": map[string]any{names.OriginLabel(): mirror.OriginHash(proof.Origin)}}
	if err := r.write.patchVolume(ctx, volume, metadata, nil); err != nil {
		return fmt.Errorf("record what volume %s mirrors: %w", volume.Name, err)
	}
	r.unproven.remove(volume.Name)
	r.told.forget(types.NamespacedName{Name: volume.Name})
	if stripped {
		r.metrics.drift.WithLabelValues(driftRepaired).Inc()
		r.say.repaired(volume, "the record")
	} else {
		r.metrics.adopted.Inc()
		r.say.adopted(claim, proof.Origin)
	}
	log.FromContext(ctx).Info("recorded what a volume mirrors", "origin", proof.Origin.String(), "adopted", !stripped)
	return nil
}

// factsOfFormer reads what the proof rests on.
func (r *volumeReconciler) factsOfFormer(ctx context.Context, volume *corev1.PersistentVolume) (mirror.Facts, error) {
	facts := mirror.Facts{Names: r.options.Names, Instance: r.options.Instance, Now: time.Now()}
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.Name == "" {
		return facts, nil
	}
	var err error
	facts.Claim, err = r.live.claim(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil || facts.Claim == nil {
		return facts, err
	}
	if facts.Class, err = r.live.class(ctx, className(facts.Claim)); err != nil {
		return facts, err
	}
	if facts.NamespaceLabels, err = r.live.namespaceLabels(ctx, ref.Namespace); err != nil {
		return facts, err
	}
	err = r.addOrigin(ctx, &facts)
	return facts, err
}

// addOrigin reads the origin that the claim names.
func (r *volumeReconciler) addOrigin(ctx context.Context, facts *mirror.Facts) error {
	origin := mirror.Origin(r.options.Names, facts.Claim)
	if origin.Name == "" {
		return nil
	}
	var err error
	facts.Origin, err = r.live.claim(ctx, origin)
	if err != nil || facts.Origin == nil {
		return err
	}
	facts.OriginVolume, err = r.live.volume(ctx, facts.Origin.Spec.VolumeName)
	if err != nil || facts.OriginVolume == nil || facts.OriginVolume.Spec.CSI == nil {
		return err
	}
	facts.Driver, err = r.cache.driver(ctx, facts.OriginVolume.Spec.CSI.Driver)
	return err
}
