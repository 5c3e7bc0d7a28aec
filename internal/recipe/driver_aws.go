package recipe

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

var efsRows = []Row{{
	Name:   "efs.csi.aws.com",
	Handle: HandleRule{Kind: UniqueHandle, Form: "<origin's>, its path with /m-<UID>/.. added", Make: efsAlias},
	ReadOnly: &ReadOnlyRule{
		Modes:    writeManyFirst,
		Options:  []string{"ro", "nosharecache"},
		Contrary: []string{"rw", "sharecache", "defaults"},
		Caveat:   oldKernelsNFS,
	},
	Notes: []string{
		"The driver cleans the path in the handle, so that the mirror's handle differs and its path does not.",
		"Unknown attributes are refused by the driver: none is added.",
		"A read-only mirror lists ReadWriteMany first, since the driver refuses to mount ReadOnlyMany; the option ro keeps it from writing.",
		"The driver's controller would read the origin's access point out of the handle, were it ever asked to delete the mirror: " +
			"it is not, because a mirror volume is Retain and not the driver's.",
	},
	Unverified: []string{notRunNFS, "For S3 Files (s3files:fs-…) what the mount helper does with ro and nosharecache was not read."},
	Basis: "aws-efs-csi-driver a4fc676 (2026-07): pkg/driver/node.go, parseVolumeId (path.Clean), NodePublishVolume (unknown attributes, modes); " +
		"efs-utils src/mount_efs: EFS_ONLY_OPTIONS (other options go to NFS); " + kernelNFS,
}}

// efsAlias returns the origin's handle, [type:]fs-…[:path[:fsap-…]], with a path
// that differs and leads to the same place.
func efsAlias(origin string, claim types.UID) (string, string) {
	tokens := strings.Split(origin, ":")
	path := 1
	if tokens[0] == "efs" || tokens[0] == "s3files" {
		path = 2
	}
	if len(tokens) < path || len(tokens) > path+2 || !strings.HasPrefix(tokens[path-1], "fs-") {
		return "", "the origin's volume handle is not of the form fs-…[:path[:fsap-…]]"
	}
	if len(tokens) == path {
		tokens = append(tokens, "")
	}
	tokens[path] += "/m-" + string(claim) + "/.."
	return strings.Join(tokens, ":"), ""
}

var fsxRows = []Row{{
	Name:   "fsx.csi.aws.com",
	Handle: OpaqueHandle,
	Need:   []string{"dnsname"},
	ReadOnly: &ReadOnlyRule{
		Modes:    writeManyFirst,
		Options:  []string{"ro"},
		Contrary: []string{"rw", "defaults"},
	},
	Notes: []string{
		"FSx for Lustre.",
		"A read-only mirror lists ReadWriteMany first, the only mode that the driver mounts; the option ro keeps it from writing.",
	},
	Unverified: []string{"That ro makes the Lustre client's superblock read-only was not run."},
	Basis: "aws-fsx-csi-driver 5b22712 (2026-04): pkg/driver/node.go, NodePublishVolume (dnsname and mountname only; no staging); " +
		"controller.go, volumeCaps, DeleteVolume (an unknown handle deletes nothing); deploy: attachRequired: false; " + kernelLustre,
}}

var s3Rows = []Row{{
	Name:   "s3.csi.aws.com",
	Handle: OpaqueHandle,
	Need:   []string{"bucketName"},
	ReadOnly: &ReadOnlyRule{
		Modes:   readOnlyMany,
		Options: []string{"read-only"},
		Contrary: []string{"allow-delete", "--allow-delete", "allow-overwrite", "--allow-overwrite",
			"incremental-upload", "--incremental-upload"},
	},
	Notes: []string{
		"With authenticationSource: pod the mirror is mounted as the consumer's service account, which needs access to the bucket.",
		"Each mirror has a Mountpoint process of its own on each node.",
	},
	Unverified: []string{notRunFUSE},
	Basis: "mountpoint-s3-csi-driver 57c6bed (2026-08): pkg/driver/node/node.go, NodePublishVolume; pkg/mountpoint/args.go, ParseArgs; " +
		"pkg/mountpoint/mounter/mount_linux.go (MS_RDONLY); credentialprovider/provider.go, escapedVolumeIdentifier; Create- and DeleteVolume are unimplemented",
}}
