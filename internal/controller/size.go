package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mooring-k8s/mooring/internal/recipe"
)

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
	// 1. What it would follow is not certain, or gone.
	if origin == nil {
		if ofVolume.Cmp(ofClaim) <= 0 || ofClaim.IsZero() {
			return nil
		}
		return r.shrink(ctx, volume, ofClaim)
	}
	size := origin.Spec.Capacity[corev1.ResourceStorage]
	// 2. Somebody raised the volume's: an origin only grows.
	if ofVolume.Cmp(size) > 0 {
		if err := r.shrink(ctx, volume, size); err != nil {
			return err
		}
	}
	// 3. The claim's first, then the volume's.
	if ofClaim.Cmp(size) != 0 {
		if err := r.write.setSize(ctx, claim, size); err != nil {
			return err
		}
		log.FromContext(ctx).Info("followed the origin's size", "from", ofClaim.String(), "to", size.String())
	}
	if ofVolume.Cmp(size) < 0 && recipe.Knows(origin) {
		return r.write.patchVolume(ctx, volume, nil, sizePatch(size.String()))
	}
	return nil
}

// shrink puts back a mirror volume's size that somebody raised.
func (r *volumeReconciler) shrink(ctx context.Context, volume *corev1.PersistentVolume, size resource.Quantity) error {
	if err := r.write.patchVolume(ctx, volume, nil, sizePatch(size.String())); err != nil {
		return err
	}
	r.reportRepair(ctx, volume, "spec.capacity")
	return nil
}

func sizePatch(size string) map[string]any {
	return map[string]any{"capacity": map[string]any{"storage": size}}
}
