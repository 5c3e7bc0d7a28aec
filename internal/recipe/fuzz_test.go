package recipe_test

import (
	"reflect"
	"slices"
	"testing"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/choice"
	"github.com/mooring-k8s/mooring/internal/recipe"
)

// hostile is a text that would forge a line, a colour or an order of reading.
const hostile = "a\nb\r\x1b[31m\u202e\u2066\u009b\x00\xff"

var (
	fuzzedDrivers = []string{
		"nfs.csi.k8s.io", "smb.csi.k8s.io", "cephfs.csi.ceph.com", "nfs.csi.ceph.com", "file.csi.azure.com", "efs.csi.aws.com", "fsx.csi.aws.com",
		"s3.csi.aws.com", "gcsfuse.csi.storage.gke.io", "filestore.csi.storage.gke.io", "csi.juicefs.com", "rook-ceph.cephfs.csi.ceph.com",
		"ebs.csi.aws.com", "rbd.csi.ceph.com", "disk.csi.azure.com", "shared.example.com", "",
	}
	fuzzedKeys = []string{
		"server", "Server", "share", "subdir", "subDir", "mountOptions", "mountPermissions", "source", "clusterID", "rootPath", "fsName", "staticVolume",
		"kernelMountOptions", "fuseMountOptions", "protocol", "shareName", "storageAccount", "resourceGroup", "folderName", "bucketName", "dnsname",
		"mountname", "ip", "volume", "subPath", "encrypted", "csi.storage.k8s.io/pv/name", "csi.storage.k8s.io/ephemeral", hostile,
	}
	fuzzedValues = []string{"nas", "/", "/a/b", "x", "${pv.metadata.name}", "ro", "rw,noatime", "nfs", "smb", "true", "false", "0", "0777", "", "a=b", "../..", hostile}
	fuzzedOption = []string{"ro", "rw", "sharecache", "nosharecache", "share", "noshare", "ro,rw", " ro", "RO", "noatime,rw", "read-only", "allow-delete", "prefix x", "bind", "", hostile}
)

func requestFrom(s *choice.Source) recipe.Request {
	driver := choice.Of(s, fuzzedDrivers...) // the API server lets only names of this form pass
	origin := volume(driver, s.Text("fs-1", "h", "a#b#c#d", "0001-0002", "fs-1:/x:fsap-1", "bucket:x", "", hostile), s.Map(5, fuzzedKeys, fuzzedValues), nil)
	for range s.Int(5) {
		origin.Spec.MountOptions = append(origin.Spec.MountOptions, s.Text(fuzzedOption...))
	}
	origin.Spec.AccessModes = choice.Of(s, modes{rwx}, modes{rox}, modes{corev1.ReadWriteOnce}, nil)
	s.Perhaps(func() { origin.Spec.CSI.ReadOnly = true })
	s.Perhaps(func() { origin.Spec.CSI.NodePublishSecretRef = nil })
	switch s.Int(12) {
	case 1:
		origin.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: s.Text("nas", hostile), Path: s.Text("/", hostile), ReadOnly: s.Yes()}}
	case 2:
		origin.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: s.Text("/")}}
	case 3:
		origin.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{}
	}
	request := recipe.Request{Origin: origin, ClaimUID: types.UID(s.Text(uid, "", hostile)), ReadOnly: s.Yes(), RefuseUnknown: s.Yes()}
	s.Perhaps(func() {
		request.Driver = &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{AttachRequired: choice.Of(s, ptr(false), nil, ptr(true))}}
		request.Driver.Name = choice.Of(s, driver, "other.example.com")
	})
	return request
}

// FuzzMake holds what must be true of every mirror that the table makes: no panic,
// one answer, an origin that is left as it is, no secret of the driver's
// controller, and nothing that needs attaching from a driver that is not known.
func FuzzMake(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		request := requestFrom(choice.From(data))
		got := recipe.Make(request)
		if !reflect.DeepEqual(request, requestFrom(choice.From(data))) {
			t.Fatal("the origin was changed")
		}
		if !reflect.DeepEqual(got, recipe.Make(request)) {
			t.Fatal("the same volume has two mirrors")
		}
		for _, r := range got.Detail + got.Limits {
			if !unicode.IsPrint(r) {
				t.Fatalf("a reader would get %U in %q", r, got.Detail+got.Limits)
			}
		}
		if got.Outcome != recipe.Made {
			if got.Detail == "" || got.Source.CSI != nil || got.Source.NFS != nil {
				t.Fatalf("not made: %+v", got)
			}
			return
		}
		checkMade(t, request, got)
	})
}

func checkMade(t *testing.T, request recipe.Request, got recipe.Mirror) {
	t.Helper()
	switch {
	case got.Source.CSI == nil && got.Source.NFS == nil:
		t.Fatalf("a mirror of no source: %+v", got)
	case len(got.AccessModes) == 0:
		t.Fatal("a mirror without access modes")
	case request.ReadOnly && slices.Equal(got.MountOptions, request.Origin.Spec.MountOptions) && got.Source.CSI != nil &&
		reflect.DeepEqual(got.Source.CSI.VolumeAttributes, request.Origin.Spec.CSI.VolumeAttributes):
		t.Fatalf("a read-only mirror is mounted as its origin: %+v", got)
	}
	if got.Source.CSI == nil {
		return
	}
	if recipe.Knows(request.Origin) {
		checkLeftBehind(t.Fatalf, got.Source.CSI)
	}
	if csi := got.Source.CSI; csi.ControllerPublishSecretRef != nil || csi.ControllerExpandSecretRef != nil || csi.NodeExpandSecretRef != nil {
		t.Fatal("a secret of the controller is on the mirror")
	}
	if got.Source.CSI.Driver != request.Origin.Spec.CSI.Driver {
		t.Fatalf("driver %q of an origin of %q", got.Source.CSI.Driver, request.Origin.Spec.CSI.Driver)
	}
	if got.SharedHandle && got.Source.CSI.VolumeHandle != request.Origin.Spec.CSI.VolumeHandle {
		t.Fatalf("a shared handle is %q, the origin's %q", got.Source.CSI.VolumeHandle, request.Origin.Spec.CSI.VolumeHandle)
	}
	if recipe.Knows(request.Origin) {
		return
	}
	d := request.Driver
	if request.RefuseUnknown || request.ReadOnly || d == nil || d.Name != got.Source.CSI.Driver || d.Spec.AttachRequired == nil || *d.Spec.AttachRequired {
		t.Fatalf("a mirror of a driver that is not known: %+v", got)
	}
}
