package recipe

var juiceFSRows = []Row{{
	Name:   "csi.juicefs.com",
	Handle: OpaqueHandle,
	Drop: []string{
		"capacity",                // the node would set a quota on the shared directory
		"pathPattern",             // for the driver's own provisioner, which deletes by it
		"secretFinalizer",         // likewise
		"juicefs/clean-cache",     // would clear the node's cache of the same file system under the origin
		"juicefs/mount-cache-pvc", // a claim of the driver's namespace that may be for one node
		"csi.storage.k8s.io/provisioner-secret-name", // how the origin was made
		"csi.storage.k8s.io/provisioner-secret-namespace",
		"csi.storage.k8s.io/controller-expand-secret-name",
		"csi.storage.k8s.io/controller-expand-secret-namespace",
	},
	ReadOnly:         readOnlyMount,
	OptionAttributes: []string{"mountOptions"},
	Notes: []string{
		"Each mirror has a mount Pod of its own on each node; the handle becomes part of its name.",
		"No quota is set through a mirror, and the node's cache is not cleared when one is unmounted.",
	},
	Unverified: []string{
		notRunFUSE,
		"With the driver's share modes (STORAGE_CLASS_SHARE_MOUNT, FS_SHARE_MOUNT) volumes of other options get mount Pods of their own by the hash of their settings; that was read, not run.",
	},
	Basis: "juicefs-csi-driver 5e5a4b3 (2026-08): pkg/driver/node.go, NodePublishVolume; pkg/juicefs/juicefs.go, getUniqueId, CreateVol; " +
		"pkg/config/setting.go, GenHashOfSetting; pkg/driver/provisioner.go, Delete; deploy: attachRequired: false",
}}
