package recipe

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Handle is what a mirror volume's volume handle is.
type Handle string

// The kinds of handle.
const (
	// NoHandle: the source has none.
	NoHandle Handle = "none"
	// UniqueHandle: one of the mirror's own, which the driver's node service
	// does not interpret, so that kubelet tells origin and mirror apart.
	UniqueHandle Handle = "unique"
	// SharedHandle: the origin's, because the driver finds the data by it.
	SharedHandle Handle = "shared"
)

// Row is one driver's recipe.
type Row struct {
	// Name is the driver's name, or what stands for it in documentation.
	Name string
	// VendorPrefix says that distributions install the driver under names that
	// end in "." + Name.
	VendorPrefix bool
	Handle       Handle
	// Need lists the attributes without which the driver cannot find the data.
	Need []string
	// Set lists attributes with the value that a mirror must have; whatever
	// case variant of the key the origin has is replaced.
	Set map[string]string
	// ReadOnly is how a read-only mirror is enforced; nil if it cannot be.
	ReadOnly *ReadOnlyRule
	// Basis is where this was read: driver, snapshot, file and function.
	Basis string
}

// ReadOnlyRule is how a read-only mirror is enforced: by options that make the
// node's mount a read-only superblock of its own. A bind mount that is
// remounted read-only does not hold: runc 1.2 and later make it writable in
// the container.
type ReadOnlyRule struct {
	Modes []corev1.PersistentVolumeAccessMode
	// Options are added, Contrary removed.
	Options  []string
	Contrary []string
}

var readOnlyNFS = &ReadOnlyRule{
	Modes:    []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany},
	Options:  []string{"ro", "nosharecache"},
	Contrary: []string{"rw", "sharecache", "defaults"},
}

var inTreeNFS = Row{
	Name:     "nfs (in-tree)",
	Handle:   NoHandle,
	ReadOnly: readOnlyNFS,
	Basis:    "kubernetes v1.37.2: pkg/volume/nfs/nfs.go, getVolumeSource, SetUpAt",
}

// table is every CSI driver that Mooring knows.
var table = []Row{
	{
		Name:   "nfs.csi.k8s.io",
		Handle: UniqueHandle,
		Need:   []string{"server", "share"},
		// Else the node changes the mode of the shared directory, and fails to
		// when the mount is read-only.
		Set:      map[string]string{"mountPermissions": "0"},
		ReadOnly: readOnlyNFS,
		Basis: "csi-driver-nfs d3b27c0 (2026-08): pkg/nfs/nodeserver.go, NodePublishVolume (the handle is only a lock's key); " +
			"controllerserver.go, getNfsVolFromID (a handle without # deletes nothing)",
	},
	{
		Name:         "nfs.csi.ceph.com",
		VendorPrefix: true,
		Handle:       UniqueHandle,
		Need:         []string{"server", "share"},
		ReadOnly:     readOnlyNFS,
		Basis: "ceph-csi 52fcb7b (2024-10): internal/nfs/nodeserver/nodeserver.go, NodePublishVolume (attributes only); " +
			"DeleteVolume of a foreign handle: InvalidArgument",
	},
}

func find(driver string) (Row, bool) {
	for _, row := range table {
		if driver == row.Name || row.VendorPrefix && strings.HasSuffix(driver, "."+row.Name) {
			return row, true
		}
	}
	return Row{}, false
}

// dropped are attributes that belong to the origin's own provisioning or to
// one Pod (external-provisioner Provision; kubelet csi_mounter.go SetUpAt).
var dropped = []string{
	"storage.kubernetes.io/csiProvisionerIdentity",
	"csi.storage.k8s.io/ephemeral",
	"csi.storage.k8s.io/pod.",
	"csi.storage.k8s.io/serviceAccount.",
}

// attributes returns the mirror's volume attributes. Keys are compared without
// case, as these drivers do: a second variant of a key would win at random.
func (r Row) attributes(origin map[string]string) map[string]string {
	attributes := maps.Clone(origin)
	maps.DeleteFunc(attributes, func(key, _ string) bool {
		for _, prefix := range dropped {
			if strings.HasPrefix(key, prefix) {
				return true
			}
		}
		for set := range r.Set {
			if strings.EqualFold(key, set) {
				return true
			}
		}
		return false
	})
	if len(r.Set) > 0 && attributes == nil {
		attributes = map[string]string{}
	}
	maps.Copy(attributes, r.Set)
	return attributes
}

// missing returns the first attribute that the driver needs and the volume
// does not have, or "".
func (r Row) missing(attributes map[string]string) string {
	for _, need := range r.Need {
		found := false
		for key, value := range attributes {
			found = found || strings.EqualFold(key, need) && value != ""
		}
		if !found {
			return need
		}
	}
	return ""
}
