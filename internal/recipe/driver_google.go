package recipe

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

var gcsFuseRows = []Row{{
	Name: "gcsfuse.csi.storage.gke.io",
	Refusals: []Refusal{{Attribute: "sharedMount", Values: trueValues,
		Why: "it is mounted once for a node (sharedMount), by the name of its own volume"}},
	Handle:           HandleRule{Kind: UniqueHandle, Form: "<bucket>:<UID>", Make: bucketAlias},
	ReadOnly:         &ReadOnlyRule{Modes: readOnlyMany, Options: []string{"ro"}, Contrary: []string{"rw", "o=rw", "defaults"}},
	OptionAttributes: []string{"mountOptions"},
	Notes: []string{
		"The bucket is reached as the consumer's service account, which needs access to it; the Pod needs the driver's annotation.",
	},
	Unverified: []string{notRunFUSE},
	Basis: "gcs-fuse-csi-driver 5fcdc04 (2026-08): pkg/util/util.go, ParseVolumeID (strips :.*$), prepareMountOptions; " +
		"pkg/csi_driver/utils.go, parseRequestArguments; pkg/webhook/volumes.go (the bucket _); pkg/csi_driver/shared_mount.go; deploy: attachRequired: false",
}}

// bucketAlias returns the bucket with a suffix that the driver strips.
func bucketAlias(origin string, claim types.UID) (string, string) {
	bucket, _, _ := strings.Cut(origin, ":")
	if bucket == "_" || bucket == "" {
		return "", "its handle names no bucket (_): which buckets it shows depends on who mounts it"
	}
	return bucket + ":" + string(claim), ""
}

var filestoreRows = []Row{{
	Name: "filestore.csi.storage.gke.io",
	Refusals: []Refusal{{InHandle: "modeMultishare",
		Why: "it is a share of a multishare instance, which the driver finds by the handle"}},
	Handle: OpaqueHandle,
	Need:   []string{"ip", "volume"},
	// Else the node would want to read an instance's name out of the handle.
	Drop:             []string{"supportLockRelease"},
	Stages:           true,
	Unshare:          []string{"nosharecache"},
	Contrary:         []string{"sharecache"},
	ReadOnly:         readOnlyNFSUnshared,
	OptionAttributes: []string{"mountOptions"},
	Notes: []string{
		"Locks that a crashed node held through a mirror are not released by the driver (supportLockRelease is dropped).",
	},
	Unverified: []string{notRunNFS, "The driver gives all mount options to the bind mount of NodePublishVolume too; that mount(8) ignores nosharecache there was not run."},
	Basis: "gcp-filestore-csi-driver 2edb466 (2026-06): pkg/csi_driver/node.go, NodeStageVolume (ip, volume; the handle only if it is multishare), " +
		"NodePublishVolume, nodeStageVolumeUpdateLockInfo; volume_id.go, isMultishareVolId; deploy: attachRequired: false; " + kernelNFS,
}}
