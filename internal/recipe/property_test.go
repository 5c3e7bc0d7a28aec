package recipe_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/recipe"
)

// generated returns a random origin volume of a driver: attributes, options
// and handles as people write them, in any combination.
func generated(driver string, random *rand.Rand) *corev1.PersistentVolume {
	pick := func(choices ...string) string { return choices[random.IntN(len(choices))] }
	some := func(choices ...string) options {
		var chosen options
		for _, choice := range choices {
			if random.IntN(3) == 0 {
				chosen = append(chosen, choice)
			}
		}
		random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		return chosen
	}
	network := some("rw", "hard", "defaults", "sharecache", "nosharecache", "ro", "noatime,rw", "nfsvers=4.1", "share", "nosharesock", "vers=3.0,rw")
	inAttribute := strings.Join(some("rw", "noatime", "sharecache", "defaults", "ro"), ",")
	name := fmt.Sprintf("n%d", random.IntN(1000))
	attributes, id := attrs{"csi.storage.k8s.io/pv/name": name, "csi.storage.k8s.io/pvc/name": "c" + name}, name
	set := func(key, value string) {
		if value != "" {
			attributes[key] = value
		}
	}
	switch driver {
	case "nfs.csi.k8s.io":
		set(pick("server", "Server"), "nfs")
		set("share", pick("/", "/export", "/a/b"))
		set(pick("subdir", "subDir"), pick("", "x", "${pv.metadata.name}", "${pvc.metadata.name}/y"))
		set(pick("mountPermissions", "MOUNTPERMISSIONS"), pick("", "0777"))
		set("mountOptions", inAttribute)
		id = "nfs#export#" + name + "##"
	case "nfs.csi.ceph.com":
		set("server", "10.0.0.1")
		set("share", "/"+name)
	case "smb.csi.k8s.io":
		set("source", "//smb/"+name)
		set(pick("subDir", "subdir"), pick("", "a"))
	case "file.csi.azure.com":
		set("protocol", pick("", "nfs", "smb"))
		set(pick("shareName", "sharename"), pick("", name))
		set("storageAccount", pick("", "other"))
		set("folderName", pick("", "f"))
		set("mountPermissions", pick("", "0755"))
		id = pick("rg#account#"+name+"#", "#account#"+name+"##ns", "rg#account#"+name+"##u#ns#sub", name)
	case "cephfs.csi.ceph.com":
		set("clusterID", "c")
		set("mounter", pick("", "kernel"))
		set("kernelMountOptions", strings.Join(some("rw", "share", "debug"), ","))
		if random.IntN(2) == 0 {
			set("staticVolume", "true")
			set("rootPath", "/volumes/"+name)
		} else {
			id = "0001-0001-c-0000000000000001-" + name
		}
	case "efs.csi.aws.com":
		attributes = attrs{}
		id = pick("", "efs:", "s3files:") + "fs-0123456789abcdef0" + pick("", ":", ":/", ":/a/b", ":a", "::fsap-0123456789abcdef0", ":/a:fsap-0123456789abcdef0")
	case "fsx.csi.aws.com":
		attributes = attrs{"dnsname": "fs.fsx.aws", "mountname": name}
		id = "fs-0123456789abcdef0"
	case "s3.csi.aws.com":
		set("bucketName", name)
		network = some("region eu-west-1", "prefix a/", "allow-delete", "allow-overwrite", "--allow-delete", "read-only", "uid=1")
	case "gcsfuse.csi.storage.gke.io":
		set("mountOptions", inAttribute)
		id = name + pick("", ":x")
		network = some("rw", "o=rw", "implicit-dirs", "only-dir=a", "ro")
	case "filestore.csi.storage.gke.io":
		set("ip", "10.0.0.1")
		set("volume", name)
		set("mountOptions", inAttribute)
		set("supportLockRelease", pick("", "true"))
		id = "modeInstance/z/i/" + name
	case "csi.juicefs.com":
		set("subPath", pick("", name))
		set("mountOptions", inAttribute)
		set("capacity", pick("", "1"))
	}
	return volume(driver, id, attributes, network)
}

func TestGeneratedOrigins(t *testing.T) {
	drivers := slices.Sorted(maps.Keys(nodeDrivers))
	counted := map[string]int{}
	for seed := range uint64(30_000) {
		random := rand.New(rand.NewPCG(seed, 7))
		driver := drivers[random.IntN(len(drivers))]
		origin := generated(driver, random)
		readOnly := random.IntN(2) == 0
		ask := func(claim types.UID) recipe.Mirror {
			return recipe.Make(recipe.Request{Origin: origin.DeepCopy(), ClaimUID: claim, ReadOnly: readOnly})
		}
		got := ask(uid)
		if got.Outcome != recipe.Made {
			counted["refused"]++
			continue
		}
		counted[driver]++
		fail := func(format string, args ...any) {
			t.Fatalf("seed %d, read-only %v: %s\norigin %+v %v\nmirror %+v %v", seed, readOnly, fmt.Sprintf(format, args...),
				origin.Spec.CSI, origin.Spec.MountOptions, got.Source.CSI, got.MountOptions)
		}
		if !reflect.DeepEqual(got, ask(uid)) {
			fail("the same claim has two mirrors")
		}
		checkHandle(fail, origin.Spec.CSI, got, ask("1b0f4a52-6a3e-4f4e-9c5e-3d1f6b7a8c90"))
		checkMount(fail, driver, origin, got, readOnly)
		checkLeftBehind(fail, got.Source.CSI)
	}
	for _, driver := range append(drivers, "refused") {
		if counted[driver] < 100 {
			t.Errorf("only %d origins of %s: the test has lost its sense", counted[driver], driver)
		}
	}
}

type failer func(format string, args ...any)

func checkHandle(fail failer, origin *corev1.CSIPersistentVolumeSource, got, other recipe.Mirror) {
	handle := got.Source.CSI.VolumeHandle
	if got.SharedHandle {
		if handle != origin.VolumeHandle {
			fail("a shared handle is not the origin's")
		}
		return
	}
	switch {
	case handle == origin.VolumeHandle || handle == other.Source.CSI.VolumeHandle:
		fail("handle %s is not unique", handle)
	case handle == "" || len(handle) > 128 || strings.ContainsAny(handle, "^# \n"):
		fail("handle %s is out of limits", handle)
	}
}

func checkMount(fail failer, driver string, origin *corev1.PersistentVolume, got recipe.Mirror, readOnly bool) {
	node := nodeDrivers[driver]
	of := node(origin.Spec.CSI, origin.Spec.MountOptions, rwx)
	mirror := node(got.Source.CSI, got.MountOptions, got.AccessModes[0])
	// The origin's own mode is its owner's business, and a mirror's is not to
	// change it.
	if of.source = strings.TrimSuffix(of.source, " with its mode changed"); driver == "nfs.csi.ceph.com" {
		of.source = origin.Spec.CSI.VolumeAttributes["server"] + ":" + origin.Spec.CSI.VolumeAttributes["share"]
	}
	switch {
	case mirror.source != of.source:
		fail("the mirror reaches %q, the origin %q", mirror.source, of.source)
	case readOnly && mirror.writable:
		fail("a read-only mirror can be written")
	case readOnly && !mirror.own:
		fail("a read-only mirror may share its superblock with one that is written")
	case !got.SharedHandle && staging[driver] && !mirror.own:
		fail("mirror and origin would never be unstaged on one node")
	}
}

// staging are the drivers whose node service has STAGE_UNSTAGE_VOLUME.
var staging = map[string]bool{"smb.csi.k8s.io": true, "file.csi.azure.com": true, "cephfs.csi.ceph.com": true, "filestore.csi.storage.gke.io": true}

// checkLeftBehind holds what no mirror may have of its origin.
func checkLeftBehind(fail failer, csi *corev1.CSIPersistentVolumeSource) {
	if csi.ControllerPublishSecretRef != nil || csi.ControllerExpandSecretRef != nil || csi.NodeExpandSecretRef != nil {
		fail("a secret of the controller is on the mirror")
	}
	for key := range csi.VolumeAttributes {
		for _, never := range []string{"storage.kubernetes.io/csiProvisionerIdentity", "capacity", "supportLockRelease"} {
			if key == never {
				fail("attribute %s is on the mirror", key)
			}
		}
	}
}
