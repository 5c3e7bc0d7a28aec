package recipe_test

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/internal/recipe"
)

const (
	uid    = "0b0f4a52-6a3e-4f4e-9c5e-3d1f6b7a8c90"
	handle = "mirror-" + uid
	rwx    = corev1.ReadWriteMany
	rox    = corev1.ReadOnlyMany
)

type (
	attrs   map[string]string
	options []string
	modes   []corev1.PersistentVolumeAccessMode
)

// volume returns an origin volume as a driver's provisioner makes it: with
// everything on it that a mirror must not have.
func volume(driver, handle string, attributes attrs, opts options) *corev1.PersistentVolume {
	secret := func(name string) *corev1.SecretReference {
		return &corev1.SecretReference{Namespace: "storage", Name: name}
	}
	attributes = maps.Clone(attributes)
	if attributes != nil {
		attributes["storage.kubernetes.io/csiProvisionerIdentity"] = "1700000000000-8081-" + driver
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "pvc-origin",
			Labels:      map[string]string{"origin": "label"},
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": driver, "origin": "annotation"},
			Finalizers:  []string{"external-provisioner.volume.kubernetes.io/finalizer"},
		},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:  modes{rwx},
			MountOptions: opts,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: driver, VolumeHandle: handle, VolumeAttributes: attributes, FSType: "ext4",
				ControllerPublishSecretRef: secret("controller-publish"),
				ControllerExpandSecretRef:  secret("controller-expand"),
				NodeExpandSecretRef:        secret("node-expand"),
				NodeStageSecretRef:         secret("node-stage"),
				NodePublishSecretRef:       secret("node-publish"),
			}},
		},
	}
}

// static returns the volume as an administrator writes it: without what a
// provisioner adds.
func static(driver, handle string, attributes attrs, opts options) *corev1.PersistentVolume {
	v := volume(driver, handle, attributes, opts)
	v.Annotations, v.Finalizers = nil, nil
	delete(v.Spec.CSI.VolumeAttributes, "storage.kubernetes.io/csiProvisionerIdentity")
	return v
}

func inTree(server, path string, opts options) *corev1.PersistentVolume {
	v := volume("", "", nil, opts)
	v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: server, Path: path}}
	return v
}

func csiDriver(name string, attachRequired *bool) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSIDriverSpec{AttachRequired: attachRequired}}
}

// made is what a mirror of a volume must be.
type made struct {
	handle     string
	attributes attrs
	options    options
	modes      modes
	shared     bool
}

// mirrorOf returns the whole answer that made stands for: the origin's driver,
// file system and the secrets that a node needs, and nothing else of it.
func (m made) mirrorOf(origin *corev1.PersistentVolume, readOnly bool) recipe.Mirror {
	mirror := recipe.Mirror{Outcome: recipe.Made, AccessModes: m.modes, MountOptions: m.options, SharedHandle: m.shared}
	if mirror.AccessModes == nil {
		mirror.AccessModes = modes{rwx}
	}
	if nfs := origin.Spec.NFS; nfs != nil {
		mirror.Source.NFS = &corev1.NFSVolumeSource{Server: nfs.Server, Path: nfs.Path, ReadOnly: readOnly}
		return mirror
	}
	mirror.Source.CSI = &corev1.CSIPersistentVolumeSource{
		Driver: origin.Spec.CSI.Driver, VolumeHandle: m.handle, ReadOnly: readOnly, FSType: "ext4", VolumeAttributes: m.attributes,
		NodeStageSecretRef:   &corev1.SecretReference{Namespace: "storage", Name: "node-stage"},
		NodePublishSecretRef: &corev1.SecretReference{Namespace: "storage", Name: "node-publish"},
	}
	return mirror
}

func ptr[T any](value T) *T { return &value }
