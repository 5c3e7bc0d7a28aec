package recipe

//go:generate go run ../gen/drivers ../../docs/drivers.md

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
		Caveat:   oldKernelsNFS,
	}
	// readOnlyNFSUnshared is for mirrors that say nosharecache in any case.
	readOnlyNFSUnshared = &ReadOnlyRule{
		Modes:    readOnlyMany,
		Options:  []string{"ro"},
		Contrary: []string{"rw", "defaults"},
		Caveat:   oldKernelsNFS,
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
		"nfs_compare_super (nor is one that was mounted so); fs/nfs/namespace.c: nfs_d_automount"
	kernelCIFS = "Linux fs/smb/client/connect.c: match_server (nosharesock of either mount: no match, so cifs_match_super finds none); " +
		"fs_context.c: smb3_get_tree_common (cifs_smb3_do_mount is given no flags)"
	kernelCeph   = "Linux fs/ceph/super.c: ceph_get_tree (NOSHARE: no superblock is reused), ceph_compare_super (options are compared)"
	kernelLustre = "Lustre llite: lustre_mount (mount_nodev: each mount is a superblock of its own)"
)

// oldKernelsNFS: since Linux 5.6 an NFSv4 mount that crosses from the server's
// root into the export gets a superblock without SB_RDONLY, although the mount
// itself is read-only (commit 8675c69816e4 mends it), and container runtimes
// can make such a mount writable.
const oldKernelsNFS = "with NFSv4 the node's kernel must have the change \"NFS: Automounted filesystems should inherit ro,noexec,nodev,sync flags\" " +
	"(Linux 6.19, and stable releases from December 2025 on), or a container can write in spite of the option ro; a read-only export on the server holds everywhere"

// noReadOnlyCIFS: since Linux 5.11 the superblock of a CIFS mount is never
// SB_RDONLY, whatever the options: only the mount is, which container runtimes
// make writable.
const noReadOnlyCIFS = "No read-only mirrors: since Linux 5.11 the kernel does not make the superblock of an SMB mount read-only, " +
	"whatever the options, so a container can write through it (seen by a user: csi-driver-smb issue 987). Share such data read-only on the server."

// What nobody has run yet.
const (
	notRunNFS  = "That a mount with nosharecache is a superblock of its own is read from the kernel's source; no kernel was run."
	notRunCIFS = "That a mount with nosharesock is a superblock of its own is read from the kernel's source; no kernel was run. " +
		"Kernels before 5.16 without the fix \"nosharesock should not share socket with future sessions\" let an origin that is mounted later share the mirror's."
	notRunFUSE = "That ro makes the FUSE mount's superblock read-only is read from the source; it was not run."
)
