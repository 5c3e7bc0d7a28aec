// Package recipe knows how each storage driver's volume is mirrored: which
// fields of the origin volume are copied, changed, dropped or refused, so that
// the mirror volume reaches the same data and can do it no harm. It is pure.
//
// A recipe rests on the driver's own source; each row of the table names the
// place. A row is data: row.go says what its fields mean, driver_*.go hold the
// rows.
package recipe

import (
	"slices"

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
	// Limits is what whoever uses the mirror must know; "" for nothing.
	Limits string
}

// Table is a list of recipes. The first row that knows a volume's driver, and
// whose When the volume has, is its recipe. Two rows have names that no driver
// has: InTreeNFS and UnknownDriver.
type Table []Row

// Drivers returns the table that Mooring ships.
func Drivers() Table { return slices.Clone(table) }

// Make returns how the origin volume is mirrored, or why it is not.
func Make(request Request) Mirror { return table.Make(request) }

// Make is Make with a table of its own.
func (t Table) Make(request Request) Mirror {
	switch source := request.Origin.Spec.PersistentVolumeSource; {
	case source.NFS != nil:
		return t.makeNFS(request)
	case source.CSI != nil:
		return t.makeCSI(request)
	default:
		return Mirror{Outcome: SourceUnsupported,
			Detail: "only CSI volumes and in-tree NFS volumes can be mirrored"}
	}
}

// makeNFS mirrors an in-tree NFS volume: it has no handle, and kubelet mounts
// it for each Pod. The source's readOnly field is not read there for a
// PersistentVolume; the mount option is.
func (t Table) makeNFS(request Request) Mirror {
	nfs := request.Origin.Spec.NFS.DeepCopy()
	nfs.ReadOnly = nfs.ReadOnly || request.ReadOnly
	return t.named(InTreeNFS).finish(request, corev1.PersistentVolumeSource{NFS: nfs})
}

func (t Table) makeCSI(request Request) Mirror {
	origin := request.Origin.Spec.CSI
	row, ok := t.find(origin)
	if !ok {
		return t.makeUnknown(request)
	}
	if why := row.refuses(request); why != "" {
		return Mirror{Outcome: DriverRefused, Detail: why}
	}
	csi := copyCSI(origin)
	csi.ReadOnly = csi.ReadOnly || request.ReadOnly
	attributes, why := row.attributes(origin, request.ReadOnly)
	if why != "" {
		return Mirror{Outcome: DriverRefused, Detail: why}
	}
	csi.VolumeAttributes = attributes
	if csi.VolumeHandle, why = row.Handle.of(origin.VolumeHandle, request.ClaimUID); why != "" {
		return Mirror{Outcome: DriverRefused, Detail: why}
	}
	return row.finish(request, corev1.PersistentVolumeSource{CSI: csi})
}

// copyCSI copies what a node needs to mount the volume. Left behind are the
// secrets by which a controller would attach, grow or otherwise change the
// origin.
func copyCSI(origin *corev1.CSIPersistentVolumeSource) *corev1.CSIPersistentVolumeSource {
	csi := origin.DeepCopy()
	csi.ControllerPublishSecretRef = nil
	csi.ControllerExpandSecretRef = nil
	csi.NodeExpandSecretRef = nil
	return csi
}

// finish adds to a source the modes and options of the row.
func (r Row) finish(request Request, source corev1.PersistentVolumeSource) Mirror {
	if r.Handle.Kind == "" {
		return Mirror{Outcome: DriverRefused, Detail: "the table has no recipe for such volumes"}
	}
	if request.ReadOnly && r.ReadOnly == nil {
		return Mirror{Outcome: ReadOnlyUnsupported,
			Detail: "nothing would keep a Pod from writing through a read-only mirror of a volume of " + driverOf(request)}
	}
	mirror := Mirror{
		Outcome:      Made,
		Source:       source,
		AccessModes:  []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		MountOptions: r.mountOptions(request.Origin.Spec.MountOptions, request.ReadOnly),
		SharedHandle: r.Handle.Kind == SharedHandle,
	}
	if request.ReadOnly {
		mirror.AccessModes = slices.Clone(r.ReadOnly.Modes)
		mirror.Limits = r.ReadOnly.Caveat
	}
	if mirror.SharedHandle {
		mirror.Limits = sharedLimits
	}
	return mirror
}

const sharedLimits = "it has the origin's own volume handle, so that kubelet takes both for one volume: on a node, the mount options " +
	"and secrets of whichever is mounted first serve both, and a Pod cannot have two volumes of one origin"

func driverOf(request Request) string {
	if csi := request.Origin.Spec.CSI; csi != nil {
		return csi.Driver
	}
	return InTreeNFS
}
