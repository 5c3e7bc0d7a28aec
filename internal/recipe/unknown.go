package recipe

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// unknownRows is the recipe of a driver that the table does not know: the
// volume as it is, handle included, since a changed handle may mean nothing or
// something else to the driver.
var unknownRows = []Row{{
	Name:   UnknownDriver,
	Handle: OriginHandle,
	Notes: []string{
		"Read-write only, and only if the cluster's CSIDriver object says attachRequired: false and the origin volume offers ReadWriteMany. " +
			"--unknown-drivers=refuse closes even that.",
	},
	Basis: "kubernetes v1.37.2: pkg/volume/csi (volumes of one handle are one volume)",
}}

// UnknownDriver is the name of the row for drivers that the table does not
// know.
const UnknownDriver = "any other driver"

// Knows reports whether the table knows a volume's driver: what its node service
// does is read then, and else anything can be expected of it.
func Knows(volume *corev1.PersistentVolume) bool {
	if volume.Spec.CSI == nil {
		return volume.Spec.NFS != nil
	}
	_, known := table.find(volume.Spec.CSI)
	return known
}

// makeUnknown mirrors an unknown driver's volume only if the cluster says that
// it is not attached to one node, and its owner that many nodes may write it.
// Either alone is not enough: there are drivers of block devices that need no
// attaching (iscsi.csi.k8s.io), and a file system on such a device that two
// nodes mount is destroyed.
func (t Table) makeUnknown(request Request) Mirror {
	driver := request.Origin.Spec.CSI.Driver
	refuse := func(why string) Mirror {
		return Mirror{Outcome: DriverUnknown, Detail: "driver " + driver + " is not in Mooring's table, and " + why}
	}
	if request.RefuseUnknown {
		return refuse("this installation mirrors only drivers that are (--unknown-drivers=refuse)")
	}
	if request.Driver == nil || request.Driver.Name != driver {
		return refuse("the cluster has no CSIDriver object of that name that would say whether its volumes are attached to a node")
	}
	if attach := request.Driver.Spec.AttachRequired; attach == nil || *attach {
		return refuse("its CSIDriver object does not say attachRequired: false, so its volumes may belong to one node at a time")
	}
	if !slices.Contains(request.Origin.Spec.AccessModes, corev1.ReadWriteMany) {
		return refuse("the origin volume does not offer ReadWriteMany, so two nodes that write it could destroy its file system")
	}
	csi := copyCSI(request.Origin.Spec.CSI)
	return t.named(UnknownDriver).finish(request, corev1.PersistentVolumeSource{CSI: csi})
}
