package docs_test

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// snapshot is what a backup of objects holds of claims and volumes.
type snapshot struct {
	volumes []corev1.PersistentVolume
	claims  []corev1.PersistentVolumeClaim
}

// velero does to claims and volumes what Velero 1.18 does (pkg/restore/restore.go:
// resetMetadata, resetVolumeBindingInfo, and volumes before claims): no UIDs, no
// annotations of the binder, finalizers kept. That a volume whose policy is Delete
// is made anew by its driver does not happen here: there is no driver.
func (w *walk) velero(block block, args []string) {
	w.Helper()
	switch args[0] {
	case "backup":
		w.backup = w.snapshot()
	case "restore":
		w.loseEverything()
		w.restoreAll(block)
	default:
		w.Fatalf("%v: velero %s is not known here", block, args[0])
	}
}

func (w *walk) snapshot() snapshot {
	w.Helper()
	volumes, err := w.api.CoreV1().PersistentVolumes().List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	claims, err := w.api.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return snapshot{volumes: volumes.Items, claims: claims.Items}
}

// loseEverything removes claims and volumes as the loss of a cluster does: no
// finalizer holds them.
func (w *walk) loseEverything() {
	w.Helper()
	none := []byte(`{"metadata":{"finalizers":null}}`)
	w.until("every claim and volume is gone", func() (any, bool) {
		now := w.snapshot()
		for _, claim := range now.claims {
			claims := w.api.CoreV1().PersistentVolumeClaims(claim.Namespace)
			_ = claims.Delete(w.Context(), claim.Name, metav1.DeleteOptions{})
			_, _ = claims.Patch(w.Context(), claim.Name, types.MergePatchType, none, metav1.PatchOptions{})
		}
		for _, volume := range now.volumes {
			_ = w.api.CoreV1().PersistentVolumes().Delete(w.Context(), volume.Name, metav1.DeleteOptions{})
			_, _ = w.api.CoreV1().PersistentVolumes().Patch(w.Context(), volume.Name, types.MergePatchType, none, metav1.PatchOptions{})
		}
		return now, len(now.claims)+len(now.volumes) == 0
	})
}

func (w *walk) restoreAll(block block) {
	w.Helper()
	if len(w.backup.claims) == 0 {
		w.Fatalf("%v: there is no backup", block)
	}
	for _, volume := range w.backup.volumes {
		volume.ObjectMeta = restored(volume.ObjectMeta)
		volume.Status = corev1.PersistentVolumeStatus{}
		volume.Spec.ClaimRef.UID, volume.Spec.ClaimRef.ResourceVersion = "", ""
		if _, err := w.api.CoreV1().PersistentVolumes().Create(w.Context(), &volume, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			w.Fatalf("%v: restore volume %s: %v", block, volume.Name, err)
		}
	}
	for _, claim := range w.backup.claims {
		claim.ObjectMeta = restored(claim.ObjectMeta)
		claim.Status = corev1.PersistentVolumeClaimStatus{}
		if _, err := w.api.CoreV1().PersistentVolumeClaims(claim.Namespace).Create(w.Context(), &claim, metav1.CreateOptions{}); err != nil {
			w.Fatalf("%v: restore claim %s/%s: %v", block, claim.Namespace, claim.Name, err)
		}
	}
	for _, claim := range w.backup.claims {
		if claim.Status.Phase == corev1.ClaimBound {
			w.waitBound(claim.Namespace, claim.Name)
		}
	}
}

func restored(meta metav1.ObjectMeta) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, Labels: meta.Labels, Finalizers: meta.Finalizers,
		Annotations: map[string]string{},
	}
	for key, value := range meta.Annotations {
		if !strings.HasPrefix(key, "pv.kubernetes.io/bind-completed") && !strings.HasPrefix(key, "pv.kubernetes.io/bound-by-controller") {
			kept.Annotations[key] = value
		}
	}
	return kept
}
