package recipe

// InTreeNFS is the name of the row for Kubernetes' own NFS volumes, which have
// no driver.
const InTreeNFS = "nfs (in-tree)"

var nfsRows = []Row{{
	Name:       InTreeNFS,
	Handle:     NoHandleRule,
	ReadOnly:   readOnlyNFS,
	Unverified: []string{notRunNFS},
	Basis:      "kubernetes v1.37.2: pkg/volume/nfs/nfs.go, getVolumeSource, SetUpAt; " + kernelNFS,
}, {
	Name:   "nfs.csi.k8s.io",
	Handle: OpaqueHandle,
	Need:   []string{"server", "share"},
	// Else the node changes the mode of the shared directory, and fails to
	// when the mount is read-only.
	Set:              map[string]string{"mountPermissions": "0"},
	ReadOnly:         readOnlyNFS,
	OptionAttributes: []string{"mountOptions"},
	Notes: []string{
		"The attribute mountOptions is appended after the volume's mount options, so rw is taken out of it too.",
	},
	Unverified: []string{notRunNFS},
	Basis: "csi-driver-nfs d3b27c0 (2026-08): pkg/nfs/nodeserver.go, NodePublishVolume (the handle is only a lock's key; attributes last); " +
		"controllerserver.go, getNfsVolFromID (a handle without # deletes nothing); " + kernelNFS,
}}
