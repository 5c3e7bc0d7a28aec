package mirror_test

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

var (
	names mooringapi.Names
	now   = time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
)

const (
	askUID    = "aaaaaaaa-0000-4000-8000-000000000001"
	originUID = "bbbbbbbb-0000-4000-8000-000000000002"
	volumeUID = "cccccccc-0000-4000-8000-000000000003"
	selector  = "crownlabs.polito.it/type=tenant"
)

// base is a claim of namespace tenant-1 that mirrors drives/mydrive and may:
// every case of the tests is this one and one change.
func base() mirror.Facts {
	return mirror.Facts{
		Names:           names,
		Instance:        "mooring",
		Now:             now,
		Claim:           asking(),
		Class:           &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "pvc-mirror"}, Provisioner: names.Provisioner()},
		NamespaceLabels: map[string]string{"crownlabs.polito.it/type": "tenant"},
		Origin:          originClaim(),
		OriginVolume:    originVolume(),
	}
}

func asking() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-1", Name: "drive", UID: askUID, CreationTimestamp: metav1.NewTime(now)},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			StorageClassName: ptr("pvc-mirror"),
			Resources:        corev1.VolumeResourceRequirements{Requests: storage("1")},
			DataSourceRef:    &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "mydrive", Namespace: ptr("drives")},
			VolumeMode:       ptr(corev1.PersistentVolumeFilesystem),
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
}

func originClaim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "drives", Name: "mydrive", UID: originUID,
			Annotations: map[string]string{names.ReadWriteGrant(): selector},
		},
		Spec:   corev1.PersistentVolumeClaimSpec{VolumeName: "pvc-origin"},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
}

func originVolume() *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: "pvc-origin", UID: volumeUID,
			Labels:      map[string]string{"owner": "drives"},
			Annotations: map[string]string{mooringapi.ProvisionedBy: "nfs.csi.k8s.io", "note": "the origin's own"},
			Finalizers:  []string{"kubernetes.io/pv-protection", "external-provisioner.volume.kubernetes.io/finalizer"},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      storage("5Gi"),
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			StorageClassName:              "nfs",
			MountOptions:                  []string{"hard", "nfsvers=4.1"},
			VolumeMode:                    ptr(corev1.PersistentVolumeFilesystem),
			NodeAffinity:                  affinity(),
			ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "drives", Name: "mydrive", UID: originUID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver:       "nfs.csi.k8s.io",
				VolumeHandle: "nfs.example.com#export#pvc-origin##",
				VolumeAttributes: map[string]string{
					"server": "nfs.example.com", "share": "/export", "subdir": "pvc-origin",
					"storage.kubernetes.io/csiProvisionerIdentity": "1-8081-nfs.csi.k8s.io",
				},
			}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
}

func affinity() *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"},
		}},
	}}}}
}

// sharedHandle makes the origin volume one of a driver that the table does not
// know, whose mirrors share the handle.
func sharedHandle(f *mirror.Facts) {
	f.OriginVolume.Spec.CSI.Driver = "shared.example.com"
	f.Driver = &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: "shared.example.com"},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: ptr(false)},
	}
}

// byAnnotation names the origin in the annotation instead of the reference.
func byAnnotation(text string) func(*mirror.Facts) {
	return func(f *mirror.Facts) {
		f.Claim.Spec.DataSourceRef = nil
		f.Claim.Annotations = map[string]string{names.Origin(): text}
	}
}

func modes(m ...corev1.PersistentVolumeAccessMode) func(*mirror.Facts) {
	return func(f *mirror.Facts) { f.Claim.Spec.AccessModes = m }
}

func storage(quantity string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(quantity)}
}

func rivals(r ...mirror.Rival) func(*mirror.Facts) {
	return func(f *mirror.Facts) { f.Rivals = r }
}

// longest returns a name of 253 characters, as long as Kubernetes has any.
func longest(letter string) string {
	return strings.Repeat(strings.Repeat(letter, 62)+".", 4)[:251] + letter + letter
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func ptr[T any](value T) *T { return &value }

func all(changes ...func(*mirror.Facts)) func(*mirror.Facts) {
	return func(f *mirror.Facts) {
		for _, change := range changes {
			change(f)
		}
	}
}
