// Package recipe knows how each storage driver's volume is mirrored: which
// fields of the origin volume are copied, changed, dropped or refused, so that
// the mirror volume reaches the same data and can do it no harm. It is pure.
//
// A recipe rests on the driver's own source; table.go names the place.
package recipe

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Request is what a recipe is asked for.
type Request struct {
	// Origin is the origin volume.
	Origin *corev1.PersistentVolume
	// ClaimUID is the mirror claim's UID, never used again, hence good for
	// handles.
	ClaimUID types.UID
	// ReadOnly asks for a mirror that cannot write.
	ReadOnly bool
	// Driver is the cluster's CSIDriver object of the origin's driver; nil where
	// there is none.
	Driver *storagev1.CSIDriver
	// RefuseUnknown refuses drivers that the table does not know.
	RefuseUnknown bool
}

// Outcome says whether a volume can be mirrored. The zero value says no.
type Outcome int

// The outcomes.
const (
	// Refused: nothing was decided.
	Refused Outcome = iota
	// SourceUnsupported: the volume is neither CSI nor in-tree NFS.
	SourceUnsupported
	// DriverUnknown: the table does not know the driver and nothing shows that
	// its volumes can be shared.
	DriverUnknown
	// DriverRefused: the table knows the driver, and refuses this volume.
	DriverRefused
	// ReadOnlyUnsupported: nothing would enforce a read-only mirror.
	ReadOnlyUnsupported
	// Made: the volume can be mirrored, and the other fields say how.
	Made
)

// Mirror is what a recipe answers.
type Mirror struct {
	Outcome Outcome
	// Detail says for people why the outcome is not Made.
	Detail string

	// Source, AccessModes (in the driver's order: kubelet sends only the first)
	// and MountOptions are those of the mirror volume.
	Source       corev1.PersistentVolumeSource
	AccessModes  []corev1.PersistentVolumeAccessMode
	MountOptions []string
	// SharedHandle says that the mirror volume has the origin's volume handle.
	// Kubelet takes volumes of one handle for one volume, so that a Pod with two
	// of them gets one mount twice.
	SharedHandle bool
}

// Make returns how the origin volume is mirrored, or why it is not.
func Make(request Request) Mirror {
	switch source := request.Origin.Spec.PersistentVolumeSource; {
	case source.NFS != nil:
		return makeNFS(request)
	case source.CSI != nil:
		return makeCSI(request)
	default:
		return Mirror{Outcome: SourceUnsupported,
			Detail: "only CSI volumes and in-tree NFS volumes can be mirrored"}
	}
}

// makeNFS mirrors an in-tree NFS volume: it has no handle, and kubelet mounts
// it for each Pod (kubernetes pkg/volume/nfs/nfs.go). The source's readOnly
// field is not read there for a PersistentVolume; the mount option is.
func makeNFS(request Request) Mirror {
	nfs := request.Origin.Spec.NFS.DeepCopy()
	nfs.ReadOnly = nfs.ReadOnly || request.ReadOnly
	return finish(request, inTreeNFS, corev1.PersistentVolumeSource{NFS: nfs})
}

func makeCSI(request Request) Mirror {
	known, ok := find(request.Origin.Spec.CSI.Driver)
	if !ok {
		return makeUnknown(request)
	}
	csi := copyCSI(request.Origin.Spec.CSI)
	csi.ReadOnly = csi.ReadOnly || request.ReadOnly
	csi.VolumeAttributes = known.attributes(csi.VolumeAttributes)
	if missing := known.missing(csi.VolumeAttributes); missing != "" {
		return Mirror{Outcome: DriverRefused,
			Detail: "the origin volume has no attribute " + missing + ", without which " + known.Name + " cannot find the data"}
	}
	if known.Handle == UniqueHandle {
		csi.VolumeHandle = "mirror-" + string(request.ClaimUID)
	}
	return finish(request, known, corev1.PersistentVolumeSource{CSI: csi})
}

// copyCSI copies what a node needs to mount the volume. Left behind are the
// secrets by which a controller would attach, grow or otherwise change the
// origin (drivers.md, "Copy from spec.csi").
func copyCSI(origin *corev1.CSIPersistentVolumeSource) *corev1.CSIPersistentVolumeSource {
	csi := origin.DeepCopy()
	csi.ControllerPublishSecretRef = nil
	csi.ControllerExpandSecretRef = nil
	csi.NodeExpandSecretRef = nil
	return csi
}

func finish(request Request, row Row, source corev1.PersistentVolumeSource) Mirror {
	mirror := Mirror{
		Outcome:      Made,
		Source:       source,
		AccessModes:  []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		MountOptions: append([]string(nil), request.Origin.Spec.MountOptions...),
		SharedHandle: row.Handle == SharedHandle,
	}
	if !request.ReadOnly {
		return mirror
	}
	if row.ReadOnly == nil {
		return Mirror{Outcome: ReadOnlyUnsupported,
			Detail: "nothing would keep a Pod from writing through a read-only mirror of a volume of " + row.Name}
	}
	mirror.AccessModes = append([]corev1.PersistentVolumeAccessMode(nil), row.ReadOnly.Modes...)
	mirror.MountOptions = readOnlyOptions(mirror.MountOptions, *row.ReadOnly)
	return mirror
}
