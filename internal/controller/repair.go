package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

// owner returns the claim that a mirror volume was made for: by the UID, which
// nobody can give to another claim, where the cache knows it; else the one that
// the record names.
func (r *volumeReconciler) owner(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, error) {
	claims, err := claimsWhere(ctx, r.cache, claimsByVolume, volume.Name)
	if err != nil {
		return nil, err
	}
	record := mirror.RecordOf(r.options.Names, volume)
	for i := range claims {
		if claims[i].UID == record.ClaimUID || mirror.Owns(&claims[i], volume) {
			return claims[i].DeepCopy(), nil
		}
	}
	return r.cache.claim(ctx, record.Claim)
}

// model returns the volume that a mirror volume follows: its origin's, if that
// is certainly the recorded one; else nil. Both are known by UID, so that an
// edited name can be put back.
func (r *volumeReconciler) model(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, *storagev1.CSIDriver, error) {
	record := mirror.RecordOf(r.options.Names, volume)
	origin, err := r.cache.volume(ctx, record.OriginVolume)
	if err != nil || origin == nil || !mirror.IsOriginOf(record, origin) {
		return nil, nil, err
	}
	if origin.Spec.CSI == nil {
		return origin, nil, nil
	}
	driver, err := r.cache.driver(ctx, origin.Spec.CSI.Driver)
	return origin, driver, err
}

// kept gathers what is to be known of a volume that serves its claim.
func (r *volumeReconciler) kept(ctx context.Context, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (mirror.Kept, error) {
	facts := mirror.Kept{Names: r.options.Names, Volume: volume, Claim: claim}
	var err error
	if facts.Origin, facts.Driver, err = r.model(ctx, volume); err != nil || facts.Origin == nil {
		return facts, err
	}
	ref := facts.Origin.Spec.ClaimRef
	origin, err := r.cache.claim(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil || origin == nil {
		return facts, err
	}
	namespaceLabels, err := r.cache.namespaceLabels(ctx, claim.Namespace)
	if err == nil && namespaceLabels != nil {
		facts.Grant = grant.Evaluate(r.options.Names, origin.Annotations, namespaceLabels, time.Now())
	}
	return facts, err
}

// repairPause is the least time from one repair of a volume to the next: whoever
// writes the same field again and again must not make two controllers write as
// fast as they can.
const repairPause = time.Second

// repair puts a mirror volume back that somebody edited, and reports it.
func (r *volumeReconciler) repair(ctx context.Context, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (repaired bool, err error) {
	facts, err := r.kept(ctx, volume, claim)
	if err != nil {
		return false, err
	}
	repair := mirror.RepairOf(facts)
	if !repair.IsNeeded() {
		return false, nil
	}
	key := types.NamespacedName{Name: volume.Name}
	if rest := r.repairs.rest(key, time.Now()); rest > 0 {
		return false, notYet{rest}
	}
	metadata := map[string]any{}
	if len(repair.Annotations) > 0 {
		metadata["annotations"] = repair.Annotations
	}
	if len(repair.Labels) > 0 {
		metadata["labels"] = repair.Labels
	}
	if err := r.write.patchVolume(ctx, volume, metadata, repair.Spec); err != nil {
		return false, fmt.Errorf("put back volume %s: %w", volume.Name, err)
	}
	r.repairs.pause(key, repairPause, time.Now())
	r.reportRepair(ctx, volume, strings.Join(repair.Fields, ", "))
	return true, nil
}

func (r *volumeReconciler) reportRepair(ctx context.Context, volume *corev1.PersistentVolume, fields string) {
	log.FromContext(ctx).Info("put back what somebody had changed", "fields", fields)
	r.metrics.drift.WithLabelValues(driftRepaired).Inc()
	r.say.repaired(volume, fields)
}
