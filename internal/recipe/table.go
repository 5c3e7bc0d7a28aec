package recipe

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// table is every CSI driver that Mooring knows.
var table = Table(slices.Concat(
	nfsRows, cephRows, smbRows, azureFileRows, efsRows, fsxRows, s3Rows, gcsFuseRows, filestoreRows, juiceFSRows, refusedRows, unknownRows,
))

// Read-only rules that several drivers share.
var (
	readOnlyMany = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
	// writeManyFirst is for drivers whose node service refuses the mode
	// MULTI_NODE_READER_ONLY.
	writeManyFirst = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}

	// readOnlyNFS: some kernels let mounts of one export share a superblock
	// whether or not they are read-only, unless they say nosharecache.
	readOnlyNFS = &ReadOnlyRule{
		Modes:    readOnlyMany,
		Options:  []string{"ro", "nosharecache"},
		Contrary: []string{"rw", "sharecache", "defaults"},
	}
	// readOnlyMount is for mounts that are superblocks of their own anyway.
	readOnlyMount = &ReadOnlyRule{
		Modes:    readOnlyMany,
		Options:  []string{"ro"},
		Contrary: []string{"rw", "defaults"},
	}
)

// What of the Linux kernel recipes rest on.
const (
	kernelNFS = "Linux fs/nfs/super.c: nfs_get_tree_common (NFS_MOUNT_UNSHARED: no superblock is reused), " +
		"nfs_compare_super (nor is one that was mounted so)"
	kernelCIFS = "Linux fs/smb/client/connect.c: match_server (nosharesock of either mount: no match, so cifs_match_super finds none); " +
		"CIFS_MS_MASK has SB_RDONLY"
	kernelCeph   = "Linux fs/ceph/super.c: ceph_get_tree (NOSHARE: no superblock is reused), ceph_compare_super (options are compared)"
	kernelLustre = "Lustre llite: lustre_mount (mount_nodev: each mount is a superblock of its own)"
)

// What nobody has run yet.
const (
	notRunNFS  = "That a mount with nosharecache is a superblock of its own is read from the kernel's source; no kernel was run."
	notRunCIFS = "That a mount with nosharesock is a superblock of its own is read from the kernel's source; no kernel was run. " +
		"Kernels before 5.16 without the fix \"nosharesock should not share socket with future sessions\" let an origin that is mounted later share the mirror's."
	notRunFUSE = "That ro makes the FUSE mount's superblock read-only is read from the source; it was not run."
)
