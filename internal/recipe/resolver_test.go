package recipe_test

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// This is what the drivers do with a volume on a node, written anew from their
// sources and not from the recipes: which data is mounted, whether the kernel
// would let a Pod write, and whether the mount is a superblock of its own.

// mounted is what a node has after NodeStage and NodePublish.
type mounted struct {
	source   string
	writable bool
	// own says that the superblock cannot be one of another mount of the source.
	own bool
}

type nodeDriver func(csi *corev1.CSIPersistentVolumeSource, options []string, mode corev1.PersistentVolumeAccessMode) mounted

var nodeDrivers = map[string]nodeDriver{
	"nfs.csi.k8s.io": func(c *corev1.CSIPersistentVolumeSource, o []string, _ corev1.PersistentVolumeAccessMode) mounted {
		o = append(slices.Clone(o), fold(c, "mountoptions"))
		sub := strings.NewReplacer("${pv.metadata.name}", fold(c, "csi.storage.k8s.io/pv/name"), "${pvc.metadata.name}", fold(c, "csi.storage.k8s.io/pvc/name")).
			Replace(fold(c, "subdir"))
		return nfsMount(fold(c, "server")+":"+path.Clean(fold(c, "share")+"/"+sub), o)
	},
	"nfs.csi.ceph.com": func(c *corev1.CSIPersistentVolumeSource, o []string, _ corev1.PersistentVolumeAccessMode) mounted {
		// Within a network namespace only the first element is an option.
		if len(o) > 1 {
			return mounted{source: "mount(8): bad usage", writable: true}
		}
		return nfsMount(c.VolumeAttributes["server"]+":"+c.VolumeAttributes["share"], o)
	},
	"smb.csi.k8s.io": func(c *corev1.CSIPersistentVolumeSource, o []string, _ corev1.PersistentVolumeAccessMode) mounted {
		return cifsMount(strings.TrimRight(fold(c, "source"), "/")+"/"+fold(c, "subdir"), o)
	},
	"file.csi.azure.com": azureMount,
	"cephfs.csi.ceph.com": func(c *corev1.CSIPersistentVolumeSource, o []string, _ corev1.PersistentVolumeAccessMode) mounted {
		if strings.HasPrefix(c.VolumeHandle, "0001-") {
			return mounted{source: "volume " + c.VolumeHandle, writable: true}
		}
		o = append([]string{c.VolumeAttributes["kernelMountOptions"]}, o...)
		words := all(o)
		return mounted{source: c.VolumeAttributes["clusterID"] + ":" + c.VolumeAttributes["rootPath"],
			writable: last(words, "rw", "ro") != "ro", own: last(words, "share", "noshare") == "noshare"}
	},
	"efs.csi.aws.com": func(c *corev1.CSIPersistentVolumeSource, o []string, mode corev1.PersistentVolumeAccessMode) mounted {
		if mode != rwx {
			return mounted{source: "refused: mode " + string(mode), writable: true}
		}
		tokens := strings.Split(c.VolumeHandle, ":")
		if !strings.HasPrefix(tokens[0], "fs-") {
			tokens = tokens[1:]
		}
		tokens = append(tokens, "", "")
		m := nfsMount(tokens[0]+":"+path.Clean("/"+tokens[1])+" by "+tokens[2], o)
		return m
	},
	"fsx.csi.aws.com": func(c *corev1.CSIPersistentVolumeSource, o []string, mode corev1.PersistentVolumeAccessMode) mounted {
		if mode != rwx {
			return mounted{source: "refused: mode " + string(mode), writable: true}
		}
		return ownMount(c.VolumeAttributes["dnsname"]+"@tcp:/"+c.VolumeAttributes["mountname"], o)
	},
	"s3.csi.aws.com": func(c *corev1.CSIPersistentVolumeSource, o []string, _ corev1.PersistentVolumeAccessMode) mounted {
		prefix := ""
		for _, option := range o {
			if after, is := strings.CutPrefix(option, "prefix "); is {
				prefix = after
			}
		}
		deletes := slices.Contains(o, "allow-delete")
		readOnly := slices.Contains(o, "read-only") || slices.Contains(o, "--read-only")
		return mounted{source: c.VolumeAttributes["bucketName"] + "/" + prefix, writable: !readOnly || deletes, own: true}
	},
	"gcsfuse.csi.storage.gke.io": func(c *corev1.CSIPersistentVolumeSource, o []string, _ corev1.PersistentVolumeAccessMode) mounted {
		bucket, _, _ := strings.Cut(c.VolumeHandle, ":")
		return ownMount(bucket, append(slices.Clone(o), c.VolumeAttributes["mountOptions"]))
	},
	"filestore.csi.storage.gke.io": func(c *corev1.CSIPersistentVolumeSource, o []string, _ corev1.PersistentVolumeAccessMode) mounted {
		return nfsMount(c.VolumeAttributes["ip"]+":/"+c.VolumeAttributes["volume"], append(slices.Clone(o), c.VolumeAttributes["mountOptions"]))
	},
	"csi.juicefs.com": func(c *corev1.CSIPersistentVolumeSource, o []string, _ corev1.PersistentVolumeAccessMode) mounted {
		m := ownMount("juicefs", append([]string{c.VolumeAttributes["mountOptions"]}, o...))
		m.source = "juicefs of " + c.NodePublishSecretRef.Name + ":" + c.VolumeAttributes["subPath"]
		return m
	},
}

func azureMount(c *corev1.CSIPersistentVolumeSource, o []string, _ corev1.PersistentVolumeAccessMode) mounted {
	segments := append(strings.Split(c.VolumeHandle, "#"), "", "", "", "", "", "", "")
	share, account, group := fold(c, "sharename"), fold(c, "storageaccount"), fold(c, "resourcegroup")
	if strings.Count(c.VolumeHandle, "#") >= 2 {
		share, account, group = or(share, segments[2]), or(account, segments[1]), or(group, segments[0])
	}
	source := group + "/" + account + "/" + share + "/" + fold(c, "foldername")
	if fold(c, "protocol") == "nfs" {
		if fold(c, "mountpermissions") != "0" {
			source += " with its mode changed"
		}
		return nfsMount(source, o)
	}
	return cifsMount(source, o)
}

func nfsMount(source string, options []string) mounted {
	words := all(options)
	own := last(words, "sharecache", "nosharecache") == "nosharecache"
	// A shared superblock may have been mounted to write, and then this one
	// is a read-only bind mount of it, which runc makes writable.
	return mounted{source: source, writable: last(words, "rw", "defaults", "ro") != "ro" || !own, own: own}
}

func cifsMount(source string, options []string) mounted {
	// The kernel makes no superblock of SMB read-only, so containers write.
	return mounted{source: source, writable: true, own: slices.Contains(all(options), "nosharesock")}
}

func ownMount(source string, options []string) mounted {
	return mounted{source: source, writable: last(all(options), "rw", "defaults", "o=rw", "ro") != "ro", own: true}
}

// all returns the options of all elements.
func all(elements []string) []string { return strings.Split(strings.Join(elements, ","), ",") }

// last returns which of some words comes last.
func last(options []string, words ...string) string {
	for _, option := range slices.Backward(options) {
		if slices.Contains(words, option) {
			return option
		}
	}
	return ""
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// fold returns an attribute by its key in lower case; "" if two keys fold to
// it, of which one would win at random.
func fold(c *corev1.CSIPersistentVolumeSource, key string) string {
	found := []string{}
	for k, v := range c.VolumeAttributes {
		if strings.EqualFold(k, key) {
			found = append(found, v)
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}
