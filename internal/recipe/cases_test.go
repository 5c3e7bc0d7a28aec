package recipe_test

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/mooring-k8s/mooring/internal/recipe"
)

// kase is one origin volume and what its mirrors are: the one that writes and
// the one that does not. One that is refused has only an outcome and a part of
// the detail.
type kase struct {
	name   string
	origin *corev1.PersistentVolume
	driver *storagev1.CSIDriver

	write, read made
	// writeSays and readSays are refusals instead.
	writeSays, readSays string
	outcome             recipe.Outcome // of writeSays; of both where readSays is empty too
	readOutcome         recipe.Outcome
}

func refusedCase(name string, origin *corev1.PersistentVolume, says string) kase {
	return kase{name: name, origin: origin, writeSays: says, outcome: recipe.DriverRefused}
}

// cases returns every case of the table. Each element of each row is needed by
// at least one: mutation_test.go takes each away and looks.
func cases() []kase {
	var all []kase
	for _, part := range [][]kase{
		nfsCases(), cephCases(), smbCases(), azureCases(), awsCases(), googleCases(), juiceFSCases(), refusedCases(), unknownCases(),
	} {
		all = append(all, part...)
	}
	return all
}

func nfsCases() []kase {
	nfs := attrs{"server": "nfs.example.com", "share": "/export", "subdir": "${pv.metadata.name}", "csi.storage.k8s.io/pv/name": "pvc-origin",
		"csi.storage.k8s.io/pvc/name": "mydrive", "csi.storage.k8s.io/pvc/namespace": "drives"}
	mirrored := nfs.with("mountPermissions", "0")
	const dynamic = "nfs.example.com#export#pvc-origin##"
	return []kase{{
		name: "in-tree", origin: inTree("nfs.example.com", "/export/a", options{"hard", "nfsvers=4.1"}),
		write: made{options: options{"hard", "nfsvers=4.1"}},
		read:  made{options: options{"hard", "nfsvers=4.1", "ro", "nosharecache"}, modes: modes{rox}},
	}, {
		name: "in-tree, no options", origin: inTree("nfs.example.com", "/export/a", nil),
		read: made{options: options{"ro", "nosharecache"}, modes: modes{rox}},
	}, {
		name: "in-tree, contrary options", origin: inTree("nfs.example.com", "/export/a", options{"rw,hard", "sharecache", "defaults"}),
		write: made{options: options{"rw,hard", "sharecache", "defaults"}},
		read:  made{options: options{"hard", "ro", "nosharecache"}, modes: modes{rox}},
	}, {
		name: "in-tree, read-only already", origin: inTree("nfs.example.com", "/export/a", options{"ro,nosharecache"}),
		write: made{options: options{"ro,nosharecache"}},
		read:  made{options: options{"ro,nosharecache"}, modes: modes{rox}},
	}, {
		name: "in-tree, a comma within quotes", origin: inTree("nfs.example.com", "/export/a", options{`context="system_u:object_r:nfs_t:s0:c1,rw"`}),
		write: made{options: options{`context="system_u:object_r:nfs_t:s0:c1,rw"`}},
		read:  made{options: options{`context="system_u:object_r:nfs_t:s0:c1,rw"`, "ro", "nosharecache"}, modes: modes{rox}},
	}, {
		name: "nfs.csi.k8s.io", origin: volume("nfs.csi.k8s.io", dynamic, nfs, options{"hard"}),
		write: made{handle: handle, attributes: mirrored, options: options{"hard"}},
		read:  made{handle: handle, attributes: mirrored, options: options{"hard", "ro", "nosharecache"}, modes: modes{rox}},
	}, {
		name:   "nfs.csi.k8s.io, other variants of keys, and what a Pod adds",
		origin: static("nfs.csi.k8s.io", "any", attrs{"Server": "s", "SHARE": "/e", "MountPermissions": "0777", "mountpermissions": "0700", "csi.storage.k8s.io/pod.name": "p", "csi.storage.k8s.io/serviceAccount.tokens": "t", "csi.storage.k8s.io/ephemeral": "true"}, options{"rw", "sharecache", "defaults"}),
		write:  made{handle: handle, attributes: attrs{"Server": "s", "SHARE": "/e", "mountPermissions": "0"}, options: options{"rw", "sharecache", "defaults"}},
		read:   made{handle: handle, attributes: attrs{"Server": "s", "SHARE": "/e", "mountPermissions": "0"}, options: options{"ro", "nosharecache"}, modes: modes{rox}},
	}, {
		name:   "nfs.csi.k8s.io, mount options in the attributes",
		origin: static("nfs.csi.k8s.io", "any", attrs{"server": "s", "share": "/e", "mountOptions": "rw,nolock,sharecache"}, nil),
		write:  made{handle: handle, attributes: attrs{"server": "s", "share": "/e", "mountOptions": "rw,nolock,sharecache", "mountPermissions": "0"}},
		read:   made{handle: handle, attributes: attrs{"server": "s", "share": "/e", "mountOptions": "nolock", "mountPermissions": "0"}, options: options{"ro", "nosharecache"}, modes: modes{rox}},
	},
		refusedCase("nfs.csi.k8s.io without server", static("nfs.csi.k8s.io", "any", attrs{"share": "/e"}, nil), "no attribute server"),
		refusedCase("nfs.csi.k8s.io with an empty share", static("nfs.csi.k8s.io", "any", attrs{"server": "s", "share": ""}, nil), "no attribute share"),
		refusedCase("nfs.csi.k8s.io without attributes", static("nfs.csi.k8s.io", "any", nil, nil), "no attribute server"),
		{name: "nfs.csi.k8s.io that is attached", origin: static("nfs.csi.k8s.io", "any", nfs, nil), driver: csiDriver("nfs.csi.k8s.io", ptr(true)),
			writeSays: "attachRequired: true", outcome: recipe.DriverRefused},
		{name: "nfs.csi.k8s.io that is not attached", origin: static("nfs.csi.k8s.io", "any", nfs, nil), driver: csiDriver("nfs.csi.k8s.io", ptr(false)),
			write: made{handle: handle, attributes: mirrored}, read: made{handle: handle, attributes: mirrored, options: options{"ro", "nosharecache"}, modes: modes{rox}}},
		{name: "nfs.csi.k8s.io beside another driver's object", origin: static("nfs.csi.k8s.io", "any", nfs, nil), driver: csiDriver("other", ptr(true)),
			write: made{handle: handle, attributes: mirrored}, read: made{handle: handle, attributes: mirrored, options: options{"ro", "nosharecache"}, modes: modes{rox}}},
	}
}

func cephCases() []kase {
	nfs := attrs{"server": "10.0.0.1", "share": "/0001-0009-rook-ceph-0000000000000001-c6b5a1a6", "clusterID": "rook-ceph", "fsName": "fs", "volumeNamePrefix": "nfs-", "nfsCluster": "n"}
	byHand := attrs{"staticVolume": "true", "clusterID": "rook-ceph", "fsName": "fs", "rootPath": "/volumes/csi/csi-vol-1"}
	dynamic := attrs{"clusterID": "rook-ceph", "fsName": "fs", "pool": "data", "subvolumeName": "csi-vol-1", "subvolumePath": "/volumes/csi/csi-vol-1/2"}
	const id = "0001-0009-rook-ceph-0000000000000001-c6b5a1a6-7e0d-4f4b-9d4e-2f6c1a3b5d7e"
	unshared := byHand.with("kernelMountOptions", "noshare")
	return []kase{{
		name: "Rook's nfs.csi.ceph.com", origin: volume("rook-ceph.nfs.csi.ceph.com", id, nfs, options{"hard"}),
		write: made{handle: handle, attributes: nfs, options: options{"hard"}},
		read:  made{handle: handle, attributes: nfs, options: options{"hard,ro,nosharecache"}, modes: modes{rox}},
	}, {
		name: "nfs.csi.ceph.com, contrary options", origin: volume("nfs.csi.ceph.com", id, nfs, options{"rw", "sharecache", "defaults", "hard", "nfsvers=4.1"}),
		write: made{handle: handle, attributes: nfs, options: options{"rw,sharecache,defaults,hard,nfsvers=4.1"}},
		read:  made{handle: handle, attributes: nfs, options: options{"hard,nfsvers=4.1,ro,nosharecache"}, modes: modes{rox}},
	},
		refusedCase("nfs.csi.ceph.com without server", static("nfs.csi.ceph.com", "x", attrs{"share": "/e"}, nil), "no attribute server"),
		refusedCase("nfs.csi.ceph.com without share", static("nfs.csi.ceph.com", "x", attrs{"server": "s"}, nil), "no attribute share"),
		{
			name: "cephfs, static", origin: static("rook-ceph.cephfs.csi.ceph.com", "data", byHand, options{"noatime"}),
			write: made{handle: handle, attributes: unshared, options: options{"noatime"}},
			read:  made{handle: handle, attributes: unshared, options: options{"noatime", "ro"}, modes: modes{rox}},
		}, {
			name: "OpenShift's cephfs, static, contrary options",
			origin: static("openshift-storage.cephfs.csi.ceph.com", "data",
				byHand.with("kernelMountOptions", "rw,share,debug").with("fuseMountOptions", "rw,debug").with("mounter", "kernel"), options{"rw", "defaults", "share"}),
			write: made{handle: handle, options: options{"rw", "defaults"},
				attributes: byHand.with("kernelMountOptions", "rw,debug,noshare").with("fuseMountOptions", "rw,debug").with("mounter", "kernel")},
			read: made{handle: handle, options: options{"ro"}, modes: modes{rox},
				attributes: byHand.with("kernelMountOptions", "debug,noshare").with("fuseMountOptions", "debug").with("mounter", "kernel")},
		}, {
			name: "cephfs, dynamic", origin: volume("rook-ceph.cephfs.csi.ceph.com", id, dynamic, options{"noatime"}),
			write:    made{handle: id, attributes: dynamic, options: options{"noatime"}, shared: true},
			readSays: writable, readOutcome: recipe.ReadOnlyUnsupported,
		},
		refusedCase("cephfs, static, no path", static("cephfs.csi.ceph.com", "data", attrs{"staticVolume": "true", "clusterID": "c"}, nil), "no attribute rootPath"),
		refusedCase("cephfs, static, no cluster", static("cephfs.csi.ceph.com", "data", attrs{"staticVolume": "true", "rootPath": "/"}, nil), "no attribute clusterID"),
		refusedCase("cephfs, static, encrypted", static("cephfs.csi.ceph.com", "data", byHand.with("encrypted", "True"), nil), "encrypted"),
		refusedCase("cephfs, static, of a snapshot", static("cephfs.csi.ceph.com", "data", byHand.with("backingSnapshotID", "s"), nil), "snapshot"),
		refusedCase("cephfs, static, of a snapshot without name", static("cephfs.csi.ceph.com", "data", byHand.with("backingSnapshot", "1"), nil), "snapshot"),
		refusedCase("cephfs, encrypted", volume("cephfs.csi.ceph.com", id, dynamic.with("encrypted", "true"), nil), "encrypted"),
		refusedCase("cephfs, of a snapshot", volume("cephfs.csi.ceph.com", id, dynamic.with("backingSnapshotID", "s"), nil), "snapshot"),
		refusedCase("cephfs, shallow", volume("cephfs.csi.ceph.com", id, dynamic.with("backingSnapshot", "true"), nil), "snapshot"),
		refusedCase("Rook's rbd", volume("rook-ceph.rbd.csi.ceph.com", id, attrs{"pool": "p"}, nil), "block devices"),
	}
}

// writable is said where nothing enforces a read-only mirror.
const writable = "nothing would keep a Pod from writing"

func smbCases() []kase {
	smb := attrs{"source": "//smb.example.com/share", "subDir": "pvc-origin"}
	return []kase{{
		name: "smb", origin: volume("smb.csi.k8s.io", "smb.example.com/share#pvc-origin##", smb, options{"dir_mode=0777", "vers=3.0"}),
		write:    made{handle: handle, attributes: smb, options: options{"dir_mode=0777", "vers=3.0", "nosharesock"}},
		readSays: writable, readOutcome: recipe.ReadOnlyUnsupported,
	}, {
		name: "smb, contrary options", origin: static("smb.csi.k8s.io", "x", smb.with("mountOptions", "rw,noperm"), options{"rw", "nosharesock", "defaults"}),
		write:    made{handle: handle, attributes: smb.with("mountOptions", "rw,noperm"), options: options{"rw", "nosharesock", "defaults"}},
		readSays: writable, readOutcome: recipe.ReadOnlyUnsupported,
	},
		refusedCase("smb with Kerberos", static("smb.csi.k8s.io", "x", smb, options{"vers=3.0,sec=krb5i"}), "Kerberos"),
		refusedCase("smb without source", static("smb.csi.k8s.io", "x", attrs{"subDir": "a"}, nil), "no attribute source"),
	}
}

func azureCases() []kase {
	const dynamic = "rg#account#pvc-share#"
	filled := attrs{"resourceGroup": "rg", "storageAccount": "account", "shareName": "pvc-share", "skuName": "Standard_LRS"}
	nfs := attrs{"resourceGroup": "rg", "storageAccount": "account", "shareName": "pvc-share", "protocol": "nfs", "mountPermissions": "0", "fsGroupChangePolicy": "None"}
	byHand := attrs{"shareName": "share", "resourceGroup": "other", "secretNamespace": "storage"}
	return []kase{{
		name: "azure file", origin: volume("file.csi.azure.com", dynamic, attrs{"skuName": "Standard_LRS"}, options{"mfsymlinks", "cache=strict"}),
		write:    made{handle: handle, attributes: filled, options: options{"mfsymlinks", "cache=strict", "nosharesock"}},
		readSays: writable, readOutcome: recipe.ReadOnlyUnsupported,
	}, {
		name:   "azure file, the whole handle",
		origin: volume("file.csi.azure.com", "rg#account#pvc-share##0b0f#storage#sub", attrs{"ShareName": "", "createFolderIfNotExist": "true", "shareNamePrefix": "x"}, nil),
		// An attribute that is there wins, in the driver too: the share's name is empty.
		writeSays: "no attribute shareName", outcome: recipe.DriverRefused,
	}, {
		name:   "azure file, namespace and subscription in the handle",
		origin: volume("file.csi.azure.com", "rg#account#pvc-share##0b0f#storage#sub", attrs{"createFolderIfNotExist": "true"}, options{"rw", "defaults"}),
		write: made{handle: handle, options: options{"rw", "defaults", "nosharesock"},
			attributes: attrs{"resourceGroup": "rg", "storageAccount": "account", "shareName": "pvc-share", "secretNamespace": "storage", "subscriptionID": "sub"}},
		readSays: writable, readOutcome: recipe.ReadOnlyUnsupported,
	}, {
		name: "azure file, migrated from the in-tree driver", origin: volume("file.csi.azure.com", "#account#share##storage", nil, nil),
		write:    made{handle: handle, options: options{"nosharesock"}, attributes: attrs{"storageAccount": "account", "shareName": "share", "secretNamespace": "storage"}},
		readSays: writable, readOutcome: recipe.ReadOnlyUnsupported,
	}, {
		name: "azure file, static", origin: static("file.csi.azure.com", "any name", byHand.with("mountOptions", "rw,noperm"), nil),
		write:    made{handle: handle, attributes: byHand.with("mountOptions", "rw,noperm"), options: options{"nosharesock"}},
		readSays: writable, readOutcome: recipe.ReadOnlyUnsupported,
	}, {
		name: "azure file, nfs", origin: volume("file.csi.azure.com", dynamic, attrs{"Protocol": "nfs", "MountPermissions": "0755", "fsgroupchangepolicy": "Always", "createfolderifnotexist": "true"}, options{"nconnect=4"}),
		write: made{handle: handle, attributes: nfs.without("protocol").with("Protocol", "nfs"), options: options{"nconnect=4", "nosharecache"}},
		read:  made{handle: handle, attributes: nfs.without("protocol").with("Protocol", "nfs"), options: options{"nconnect=4", "nosharecache", "ro"}, modes: modes{rox}},
	}, {
		name: "azure file, nfs, contrary options", origin: volume("file.csi.azure.com", dynamic, attrs{"protocol": "nfs", "mountOptions": "rw,sharecache,nolock"}, options{"rw", "sharecache", "defaults"}),
		write: made{handle: handle, attributes: nfs.with("mountOptions", "rw,nolock"), options: options{"rw", "defaults", "nosharecache"}},
		read:  made{handle: handle, attributes: nfs.with("mountOptions", "nolock"), options: options{"nosharecache", "ro"}, modes: modes{rox}},
	},
		refusedCase("azure file, a disk in the handle", volume("file.csi.azure.com", "rg#account#share#disk.vhd", nil, nil), "disk image"),
		refusedCase("azure file, a disk", static("file.csi.azure.com", "any", byHand.with("diskName", "d.vhd"), nil), "disk image"),
		refusedCase("azure file, a disk's file system", static("file.csi.azure.com", "any", byHand.with("fsType", "ext4"), nil), "disk image"),
		refusedCase("azure file, managed identity", static("file.csi.azure.com", "any", byHand.with("mountWithManagedIdentity", "true"), nil), "ticket"),
		refusedCase("azure file, OAuth", static("file.csi.azure.com", "any", byHand.with("mountwithoauthtoken", "true"), nil), "ticket"),
		refusedCase("azure file, no share", static("file.csi.azure.com", "any", attrs{"storageAccount": "a"}, nil), "no attribute shareName"),
		refusedCase("azure file, nfs, a disk in the handle", volume("file.csi.azure.com", "rg#account#share#disk.vhd", attrs{"protocol": "nfs"}, nil), "disk image"),
		refusedCase("azure file, nfs, a disk", static("file.csi.azure.com", "any", byHand.with("protocol", "nfs").with("diskName", "d.vhd"), nil), "disk image"),
		refusedCase("azure file, nfs, a disk's file system", static("file.csi.azure.com", "any", byHand.with("protocol", "nfs").with("fsType", "xfs"), nil), "disk image"),
		refusedCase("azure file, nfs, managed identity", static("file.csi.azure.com", "any", byHand.with("protocol", "nfs").with("mountWithManagedIdentity", "1"), nil), "ticket"),
		refusedCase("azure file, nfs, OAuth", static("file.csi.azure.com", "any", byHand.with("protocol", "nfs").with("mountWithOAuthToken", "t"), nil), "ticket"),
		refusedCase("azure file, nfs, no share", static("file.csi.azure.com", "any", attrs{"protocol": "nfs"}, nil), "no attribute shareName"),
	}
}

func awsCases() []kase {
	const alias = "/m-" + uid + "/.."
	lustre := attrs{"dnsname": "fs-0123456789abcdef0.fsx.eu-west-1.amazonaws.com", "mountname": "fsx"}
	s3 := attrs{"bucketName": "bucket", "authenticationSource": "driver", "cache": "emptyDir"}
	efs := func(name, origin, mirror string) kase {
		return kase{name: "efs, " + name, origin: volume("efs.csi.aws.com", origin, attrs{"encryptInTransit": "true"}, options{"iam"}),
			write: made{handle: mirror, attributes: attrs{"encryptInTransit": "true"}, options: options{"iam"}},
			read:  made{handle: mirror, attributes: attrs{"encryptInTransit": "true"}, options: options{"iam", "ro", "nosharecache"}, modes: modes{rwx}}}
	}
	return []kase{
		efs("an access point", "fs-0123456789abcdef0::fsap-0123456789abcdef0", "fs-0123456789abcdef0:"+alias+":fsap-0123456789abcdef0"),
		efs("a path", "fs-0123456789abcdef0:/dir/sub", "fs-0123456789abcdef0:/dir/sub"+alias),
		efs("a file system", "fs-0123456789abcdef0", "fs-0123456789abcdef0:"+alias),
		efs("with its type", "efs:fs-0123456789abcdef0:/dir", "efs:fs-0123456789abcdef0:/dir"+alias),
		efs("S3 Files", "s3files:fs-0123456789abcdef0", "s3files:fs-0123456789abcdef0:"+alias),
		{name: "efs, no attributes, contrary options", origin: static("efs.csi.aws.com", "fs-0123456789abcdef0", nil, options{"tls,rw", "sharecache", "defaults"}),
			write: made{handle: "fs-0123456789abcdef0:" + alias, options: options{"tls,rw", "sharecache", "defaults"}},
			read:  made{handle: "fs-0123456789abcdef0:" + alias, options: options{"tls", "ro", "nosharecache"}, modes: modes{rwx}}},
		refusedCase("efs, no file system", static("efs.csi.aws.com", "any", nil, nil), "not of the form"),
		refusedCase("efs, too many parts", static("efs.csi.aws.com", "fs-01234567:/a:fsap-01234567:x", nil, nil), "not of the form"),
		refusedCase("efs, a type alone", static("efs.csi.aws.com", "efs", nil, nil), "not of the form"),
		refusedCase("efs, a long path", static("efs.csi.aws.com", "fs-0123456789abcdef0:/"+strings.Repeat("d", 70), nil, nil), "allows 128"),
		refusedCase("efs, a character that kubelet divides at", static("efs.csi.aws.com", "fs-0123456789abcdef0:/a^b", nil, nil), "character ^"),
		{name: "fsx", origin: volume("fsx.csi.aws.com", "fs-0123456789abcdef0", lustre, options{"flock"}),
			write: made{handle: handle, attributes: lustre, options: options{"flock"}},
			read:  made{handle: handle, attributes: lustre, options: options{"flock", "ro"}, modes: modes{rwx}}},
		{name: "fsx, contrary options", origin: static("fsx.csi.aws.com", "fs-0123456789abcdef0", lustre, options{"rw", "defaults"}),
			write: made{handle: handle, attributes: lustre, options: options{"rw", "defaults"}},
			read:  made{handle: handle, attributes: lustre, options: options{"ro"}, modes: modes{rwx}}},
		refusedCase("fsx without server", static("fsx.csi.aws.com", "fs-0123456789abcdef0", attrs{"mountname": "fsx"}, nil), "no attribute dnsname"),
		{name: "s3", origin: static("s3.csi.aws.com", "s3-volume", s3, options{"region eu-west-1", "prefix a,b/", "uid=1000"}),
			write: made{handle: handle, attributes: s3, options: options{"region eu-west-1", "prefix a,b/", "uid=1000"}},
			read:  made{handle: handle, attributes: s3, options: options{"region eu-west-1", "prefix a,b/", "uid=1000", "read-only"}, modes: modes{rox}}},
		{name: "s3, contrary options", origin: static("s3.csi.aws.com", "s3-volume", s3,
			options{"allow-delete", "--allow-delete", "allow-overwrite", "--allow-overwrite", "incremental-upload", "--incremental-upload"}),
			write: made{handle: handle, attributes: s3,
				options: options{"allow-delete", "--allow-delete", "allow-overwrite", "--allow-overwrite", "incremental-upload", "--incremental-upload"}},
			read: made{handle: handle, attributes: s3, options: options{"read-only"}, modes: modes{rox}}},
		refusedCase("s3 without bucket", static("s3.csi.aws.com", "b", nil, nil), "no attribute bucketName"),
	}
}

func googleCases() []kase {
	fuse := attrs{"gcsfuseLoggingSeverity": "warning"}
	store := attrs{"ip": "10.1.2.3", "volume": "vol1", "fileProtocol": "NFS_V3"}
	return []kase{{
		name: "gcsfuse", origin: static("gcsfuse.csi.storage.gke.io", "bucket", fuse, options{"implicit-dirs", "only-dir=data"}),
		write: made{handle: "bucket:" + uid, attributes: fuse, options: options{"implicit-dirs", "only-dir=data"}},
		read:  made{handle: "bucket:" + uid, attributes: fuse, options: options{"implicit-dirs", "only-dir=data", "ro"}, modes: modes{rox}},
	}, {
		name:   "gcsfuse, a suffix and contrary options",
		origin: static("gcsfuse.csi.storage.gke.io", "bucket:other", fuse.with("mountOptions", "rw,uid=1000"), options{"rw", "o=rw", "defaults"}),
		write:  made{handle: "bucket:" + uid, attributes: fuse.with("mountOptions", "rw,uid=1000"), options: options{"rw", "o=rw", "defaults"}},
		read:   made{handle: "bucket:" + uid, attributes: fuse.with("mountOptions", "uid=1000"), options: options{"ro"}, modes: modes{rox}},
	},
		refusedCase("gcsfuse, all buckets", static("gcsfuse.csi.storage.gke.io", "_", fuse, nil), "names no bucket"),
		refusedCase("gcsfuse, all buckets and a suffix", static("gcsfuse.csi.storage.gke.io", "_:x", fuse, nil), "names no bucket"),
		refusedCase("gcsfuse, mounted once for a node", static("gcsfuse.csi.storage.gke.io", "bucket", fuse.with("sharedMount", "true"), nil), "sharedMount"),
		{
			name: "filestore", origin: volume("filestore.csi.storage.gke.io", "modeInstance/zone/name/vol1", store.with("supportLockRelease", "true"), options{"hard"}),
			write: made{handle: handle, attributes: store, options: options{"hard", "nosharecache"}},
			read:  made{handle: handle, attributes: store, options: options{"hard", "nosharecache", "ro"}, modes: modes{rox}},
		}, {
			name:   "filestore, contrary options",
			origin: volume("filestore.csi.storage.gke.io", "modeInstance/zone/name/vol1", store.with("mountOptions", "rw,sharecache,noatime"), options{"rw", "sharecache", "defaults"}),
			write:  made{handle: handle, attributes: store.with("mountOptions", "rw,noatime"), options: options{"rw", "defaults", "nosharecache"}},
			read:   made{handle: handle, attributes: store.with("mountOptions", "noatime"), options: options{"nosharecache", "ro"}, modes: modes{rox}},
		},
		refusedCase("filestore, multishare", volume("filestore.csi.storage.gke.io", "modeMultishare/prefix/project/region/name/share", store, nil), "multishare"),
		refusedCase("filestore without ip", volume("filestore.csi.storage.gke.io", "modeInstance/z/n/v", attrs{"volume": "v"}, nil), "no attribute ip"),
		refusedCase("filestore without volume", volume("filestore.csi.storage.gke.io", "modeInstance/z/n/v", attrs{"ip": "10.0.0.1"}, nil), "no attribute volume"),
	}
}

func juiceFSCases() []kase {
	juice := attrs{"subPath": "pvc-origin", "juicefs/mount-cpu-limit": "1"}
	dynamic := juice.with("capacity", "10737418240").with("pathPattern", "${.PVC.namespace}").with("secretFinalizer", "true").
		with("juicefs/clean-cache", "true").with("juicefs/mount-cache-pvc", "cache").
		with("csi.storage.k8s.io/provisioner-secret-name", "s").with("csi.storage.k8s.io/provisioner-secret-namespace", "n").
		with("csi.storage.k8s.io/controller-expand-secret-name", "s").with("csi.storage.k8s.io/controller-expand-secret-namespace", "n")
	return []kase{{
		name: "juicefs", origin: volume("csi.juicefs.com", "pvc-origin", dynamic, options{"cache-size=100"}),
		write: made{handle: handle, attributes: juice, options: options{"cache-size=100"}},
		read:  made{handle: handle, attributes: juice, options: options{"cache-size=100", "ro"}, modes: modes{rox}},
	}, {
		name: "juicefs, static, contrary options", origin: static("csi.juicefs.com", "jfs", attrs{"mountOptions": "rw,writeback"}, options{"rw", "defaults", "subdir=/a"}),
		write: made{handle: handle, attributes: attrs{"mountOptions": "rw,writeback"}, options: options{"rw", "defaults", "subdir=/a"}},
		read:  made{handle: handle, attributes: attrs{"mountOptions": "writeback"}, options: options{"subdir=/a", "ro"}, modes: modes{rox}},
	}}
}

func refusedCases() []kase {
	var all []kase
	for driver, says := range map[string]string{
		"rbd.csi.ceph.com": "block devices", "ebs.csi.aws.com": "block devices", "disk.csi.azure.com": "block devices",
		"pd.csi.storage.gke.io": "block devices", "cinder.csi.openstack.org": "block devices", "iscsi.csi.k8s.io": "block devices",
		"topolvm.io": "of one node", "topolvm.cybozu.com": "of one node", "local.csi.openebs.io": "of one node",
		"driver.longhorn.io": "attached to nodes", "csi.trident.netapp.io": "attached to nodes",
	} {
		// Even if the cluster says that they need no attaching.
		all = append(all, kase{name: driver, origin: volume(driver, "vol", attrs{"a": "b"}, nil), driver: csiDriver(driver, ptr(false)),
			writeSays: says, outcome: recipe.DriverRefused})
	}
	hostPath := volume("", "", nil, nil)
	hostPath.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
	return append(all, kase{name: "host path", origin: hostPath, writeSays: "only CSI volumes and in-tree NFS", outcome: recipe.SourceUnsupported})
}

func unknownCases() []kase {
	const name = "new.example.com"
	origin := func(m ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolume {
		v := static(name, "vol-1", attrs{"a": "b"}, options{"rw", "x"})
		v.Spec.AccessModes = m
		return v
	}
	unknown := func(title string, origin *corev1.PersistentVolume, driver *storagev1.CSIDriver, says string) kase {
		return kase{name: "unknown driver, " + title, origin: origin, driver: driver, writeSays: says, outcome: recipe.DriverUnknown}
	}
	return []kase{
		{name: "unknown driver", origin: origin(rwx), driver: csiDriver(name, ptr(false)),
			write:    made{handle: "vol-1", attributes: attrs{"a": "b"}, options: options{"rw", "x"}, shared: true},
			readSays: writable, readOutcome: recipe.ReadOnlyUnsupported},
		unknown("no object", origin(rwx), nil, "no CSIDriver object"),
		unknown("another's object", origin(rwx), csiDriver("other", ptr(false)), "no CSIDriver object"),
		unknown("attached", origin(rwx), csiDriver(name, ptr(true)), "does not say attachRequired: false"),
		unknown("attached by default", origin(rwx), csiDriver(name, nil), "does not say attachRequired: false"),
		unknown("for one node", origin(corev1.ReadWriteOnce), csiDriver(name, ptr(false)), "does not offer ReadWriteMany"),
		unknown("for readers", origin(rox), csiDriver(name, ptr(false)), "does not offer ReadWriteMany"),
		// A name that only ends like a known one is another driver's.
		unknown("a name that looks alike", volume("notnfs.csi.ceph.com", "x", attrs{"server": "s", "share": "/e"}, nil), nil, "not in Mooring's table"),
		unknown("a prefix that nobody gives", volume("my.nfs.csi.k8s.io", "x", attrs{"server": "s", "share": "/e"}, nil), nil, "not in Mooring's table"),
		unknown("the name of a row that is no driver", volume(recipe.InTreeNFS, "x", nil, nil), nil, "not in Mooring's table"),
	}
}

func (a attrs) with(key, value string) attrs {
	b := attrs{key: value}
	for k, v := range a {
		if k != key {
			b[k] = v
		}
	}
	return b
}

func (a attrs) without(key string) attrs {
	b := attrs{}
	for k, v := range a {
		if k != key {
			b[k] = v
		}
	}
	return b
}
