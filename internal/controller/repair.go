package controller

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/internal/recipe"
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
		if claims[i].UID == record.ClaimUID {
			return claims[i].DeepCopy(), nil
		}
	}
	return r.cache.claim(ctx, record.Claim)
}

// model returns the volume that a mirror volume follows: its origin's, if that
// is certainly the recorded one; else nil.
func (r *volumeReconciler) model(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, *storagev1.CSIDriver, error) {
	record := mirror.RecordOf(r.options.Names, volume)
	origin, err := r.cache.volume(ctx, record.OriginVolume)
	if err != nil || origin == nil || origin.UID != record.OriginVolumeUID {
		return nil, nil, err
	}
	ref := origin.Spec.ClaimRef
	if ref == nil || ref.UID != record.OriginUID || ref.Namespace != record.Origin.Namespace || ref.Name != record.Origin.Name {
		return nil, nil, nil
	}
	if origin.Spec.CSI == nil {
		return origin, nil, nil
	}
	driver, err := r.cache.driver(ctx, origin.Spec.CSI.Driver)
	return origin, driver, err
}

// repair puts a mirror volume back that somebody edited, and reports it.
func (r *volumeReconciler) repair(ctx context.Context, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (repaired bool, err error) {
	origin, driver, err := r.model(ctx, volume)
	if err != nil {
		return false, err
	}
	repair := mirror.RepairOf(r.options.Names, volume, claim, origin, driver)
	record := mirror.RecordOf(r.options.Names, volume)
	if own := (types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}); record.ClaimUID == claim.UID && record.Claim != own {
		repair.Fields = append(repair.Fields, "metadata.annotations["+r.options.Names.MirrorClaim()+"]")
		repair.Annotations[r.options.Names.MirrorClaim()] = own.String()
	}
	if origin == nil {
		r.originOfReference(volume, claim, &repair)
	}
	if !repair.IsNeeded() {
		return false, nil
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
	fields := strings.Join(repair.Fields, ", ")
	log.FromContext(ctx).Info("put back what somebody had changed", "fields", fields)
	r.metrics.drift.WithLabelValues("repaired").Inc()
	r.say.repaired(volume, fields)
	return true, nil
}

// originOfReference puts back the origin's name in a record where somebody
// edited it: the label, a second witness, is of the origin that the claim
// names. The rest of the record follows once the origin is known.
func (r *volumeReconciler) originOfReference(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, repair *mirror.Repair) {
	names := r.options.Names
	named, label := mirror.Origin(names, claim), volume.Labels[names.OriginLabel()]
	recorded := mirror.RecordOf(names, volume).Origin
	if named.Name == "" || label != mirror.OriginHash(named) || label == mirror.OriginHash(recorded) {
		return
	}
	repair.Fields = append(repair.Fields, "metadata.annotations["+names.OriginClaim()+"]")
	repair.Annotations[names.OriginClaim()] = named.String()
}

// followSize lets a mirror's size be its origin's. The volume's is never above
// the claim's: kubelet would take that for a wish to grow the file system when it
// mounts the volume, and call the driver (pkg/volume/util/operationexecutor,
// NodeExpandVolume). For a Pod that runs it calls it whatever the claim says,
// where the driver's node service can grow volumes (pkg/kubelet/volumemanager/
// cache, volumeNeedsExpansion). Those of the table cannot; of a driver that it
// does not know, only the claim's size grows, which is what people see.
func (r *volumeReconciler) followSize(ctx context.Context, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	origin, _, err := r.model(ctx, volume)
	if err != nil || claim.Status.Phase != corev1.ClaimBound {
		return err
	}
	ofVolume, ofClaim := volume.Spec.Capacity[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	if origin == nil { // what it would follow is not certain, or gone
		if ofVolume.Cmp(ofClaim) > 0 && !ofClaim.IsZero() {
			return r.write.patchVolume(ctx, volume, nil, sizePatch(ofClaim.String()))
		}
		return nil
	}
	size := origin.Spec.Capacity[corev1.ResourceStorage]
	if ofVolume.Cmp(size) > 0 {
		if err := r.write.patchVolume(ctx, volume, nil, sizePatch(size.String())); err != nil {
			return err
		}
	}
	if ofClaim.Cmp(size) != 0 {
		if err := r.write.setSize(ctx, claim, size); err != nil {
			return err
		}
	}
	if ofVolume.Cmp(size) < 0 && recipe.Knows(origin) {
		if err := r.write.patchVolume(ctx, volume, nil, sizePatch(size.String())); err != nil {
			return err
		}
	}
	if ofClaim.Cmp(size) != 0 {
		log.FromContext(ctx).Info("followed the origin's size", "from", ofClaim.String(), "to", size.String())
	}
	return nil
}

func sizePatch(size string) map[string]any {
	return map[string]any{"capacity": map[string]any{"storage": size}}
}
