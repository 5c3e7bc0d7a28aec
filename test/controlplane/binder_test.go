package controlplane

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func newClaim(t *testing.T, api kubernetes.Interface, namespace, name string) *corev1.PersistentVolumeClaim {
	t.Helper()
	noClass := ""
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			StorageClassName: &noClass,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1")},
			},
		},
	}
	made, err := api.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), claim, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// newVolumeFor makes a volume that is bound in advance, and removes it when
// the test ends.
func newVolumeFor(t *testing.T, api kubernetes.Interface, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	t.Helper()
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(claim.UID)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				NFS: &corev1.NFSVolumeSource{Server: "server.invalid", Path: "/export"},
			},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
		},
	}
	made, err := api.CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.CoreV1().PersistentVolumes().Delete(context.Background(), made.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete the volume: %v", err)
		}
	})
	return made
}

func waitBound(t *testing.T, api kubernetes.Interface, claim *corev1.PersistentVolumeClaim, volume string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		now, err := api.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if now.Status.Phase != corev1.ClaimBound || now.Spec.VolumeName != volume {
			return fmt.Errorf("the claim is %s to %q", now.Status.Phase, now.Spec.VolumeName)
		}
		return nil
	})
}

func TestTheRealBinderBinds(t *testing.T) {
	api := clientFor(t, shared.ForTest(t).Admin())
	claim := newClaim(t, api, newNamespace(t, api), "claim")
	volume := newVolumeFor(t, api, claim)
	waitBound(t, api, claim, volume.Name)
}

func TestManyClaimsBind(t *testing.T) {
	if testing.Short() {
		t.Skip("200 claims are not a short test")
	}
	api := clientFor(t, shared.ForTest(t).Admin())
	namespace := newNamespace(t, api)
	const count = 200
	for i := range count {
		newVolumeFor(t, api, newClaim(t, api, namespace, fmt.Sprintf("claim-%d", i)))
	}
	eventually(t, func(ctx context.Context) error {
		list, err := api.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		bound := 0
		for i := range list.Items {
			if list.Items[i].Status.Phase == corev1.ClaimBound {
				bound++
			}
		}
		if bound != count {
			return fmt.Errorf("%d of %d claims are bound", bound, count)
		}
		return nil
	})
}

func TestNamespaceControllerEmptiesADeletedNamespace(t *testing.T) {
	api := clientFor(t, shared.ForTest(t).Admin())
	made, err := api.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "short-lived-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	newClaim(t, api, made.Name, "claim")
	if err := api.CoreV1().Namespaces().Delete(t.Context(), made.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		list, err := api.CoreV1().Namespaces().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + made.Name})
		if err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("the namespace is %s", list.Items[0].Status.Phase)
		}
		return nil
	})
}
