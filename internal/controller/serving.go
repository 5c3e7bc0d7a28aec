package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// isLookedAfter reports whether a mirror is this instance's to look after, and
// takes it over where another instance has it and this one selects its
// namespace. Until then the other one keeps it, so that no mirror falls between
// two chairs when its namespace changes hands.
func (r *claimReconciler) isLookedAfter(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (ours bool, again ctrl.Result, err error) {
	record := mirror.RecordOf(r.options.Names, volume)
	// 1. It is ours already, whatever its namespace.
	if record.ServedBy == r.options.Instance {
		r.held.remember(claim.UID)
		return true, again, nil
	}
	namespaceLabels, err := r.cache.namespaceLabels(ctx, claim.Namespace)
	if err != nil {
		return false, again, err
	}
	// 2. Somebody removed from the record who looks after it: we did.
	selects := r.isServed(namespaceLabels)
	if record.ServedBy == "" && r.held.has(claim.UID) {
		return true, again, r.takeOver(ctx, volume)
	}
	// 3. The namespace is not ours to serve; or the mirror was just taken from
	// us although it is: two instances that select one namespace must not take
	// a mirror from each other without end.
	again.RequeueAfter = r.held.rest(claim.UID, selects, labels.Set(namespaceLabels).String(), time.Now())
	if !selects || again.RequeueAfter > 0 {
		return false, again, nil
	}
	// 4. Taken over.
	if err := r.takeOver(ctx, volume); err != nil {
		return false, again, err
	}
	log.FromContext(ctx).Info("took over a mirror", "volume", volume.Name, "from", record.ServedBy)
	r.held.remember(claim.UID)
	return true, again, nil
}

func (r *claimReconciler) takeOver(ctx context.Context, volume *corev1.PersistentVolume) error {
	return r.write.annotateVolume(ctx, volume, map[string]any{r.options.Names.ServedBy(): r.options.Instance})
}
