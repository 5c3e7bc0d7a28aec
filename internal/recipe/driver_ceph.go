package recipe

const (
	cephBasis = "ceph-csi 52fcb7b (2024-10) and, for the node services, the newer 010e4a3 (cephfs) and 0756d54 (nfs): "
	// An encrypted or snapshot-backed volume is found by its handle in ways
	// that a mirror cannot follow.
	whyEncrypted = "it is encrypted, and the driver keeps the passphrase and a lock by the volume's own handle"
	whySnapshot  = "it is backed by a snapshot, which the driver mounts in ways of its own"
)

var cephFSRefusals = []Refusal{
	{Attribute: "encrypted", Values: trueValues, Why: whyEncrypted},
	{Attribute: "backingSnapshot", Values: trueValues, Why: whySnapshot},
	{Attribute: "backingSnapshotID", Why: whySnapshot},
}

var cephRows = []Row{{
	Name:         "nfs.csi.ceph.com",
	VendorPrefix: true,
	Handle:       OpaqueHandle,
	Need:         []string{"server", "share"},
	ReadOnly:     readOnlyNFS,
	// With a network namespace configured the driver passes the elements to
	// mount(8) as words, of which only the first belongs to -o.
	OneElement: true,
	Notes:      []string{"The mount options are joined into one element: with several, the driver's mount fails where it enters a network namespace."},
	Unverified: []string{notRunNFS},
	Basis: cephBasis + "internal/nfs/nodeserver/nodeserver.go, NodePublishVolume (attributes only), mountNFS; " +
		"DeleteVolume of a foreign handle: InvalidArgument; " + kernelNFS,
}, {
	Name:         "cephfs.csi.ceph.com",
	VendorPrefix: true,
	When:         map[string]string{"staticVolume": "true"},
	Refusals:     cephFSRefusals,
	Handle:       OpaqueHandle,
	Need:         []string{"clusterID", "rootPath"},
	Stages:       true,
	// Not in the mount options, which a FUSE mounter gets too and does not
	// know; a FUSE mount is a superblock of its own anyway.
	Unshare:          []string{"noshare"},
	UnshareIn:        "kernelMountOptions",
	Contrary:         []string{"share"},
	ReadOnly:         readOnlyMount,
	OptionAttributes: []string{"kernelMountOptions", "fuseMountOptions"},
	Notes:            []string{"For static volumes (staticVolume: \"true\"), whose stage secret holds a Ceph user."},
	Unverified: []string{
		"That noshare makes the kernel's mount a superblock of its own is read from the kernel's source; no kernel was run.",
		"Options in the driver's own configuration (--kernelmountoptions, ceph-csi-config) come before the volume's and were not examined.",
	},
	Basis: cephBasis + "internal/cephfs/nodeserver.go, getVolumeOptions, getCredentialsForVolume, setMountOptions; " +
		"store/volumeoptions.go, NewVolumeOptionsFromStaticVolume; internal/util/volid.go, DecomposeCSIID; " + kernelCeph,
}, {
	Name:         "cephfs.csi.ceph.com",
	VendorPrefix: true,
	Refusals:     cephFSRefusals,
	Handle:       OriginHandle,
	Stages:       true,
	Notes: []string{
		"A dynamically provisioned volume shares its handle: with another the driver would want a stage secret that holds a Ceph user (userID, userKey), " +
			"and the one that such volumes have holds the administrator (adminID, adminKey). For a read-only mirror make a static volume of the origin's subvolumePath.",
		"The driver's CSIDriver object has seLinuxMount: true, so Pods of both namespaces on one node must have the same SELinux label.",
	},
	Basis: cephBasis + "internal/cephfs/nodeserver.go, getCredentialsForVolume; internal/util/credentials.go, NewUserCredentials; " +
		"controllerserver.go, buildCreateVolumeResponse",
}}
