package retain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What a create returns is compared more strictly than what has lived.
func TestCompareExactly(t *testing.T) {
	m := parsed(t, nfsManifest())
	for path, value := range map[string]any{
		"metadata/labels/added": "x", "metadata/annotations/added": "x", "spec/mountOptions": []any{"ro"}, "metadata/labels/owner": "x",
		"metadata/finalizers": []any{"x"}, "spec/claimRef/uid": "u", "spec/claimRef/resourceVersion": "1",
	} {
		live := set(stored(t, nfsManifest()), path, value)
		if differences, _ := compare(m, live, exactly); len(differences) != 1 {
			t.Errorf("%s: got %v", path, differences)
		}
	}
	if differences, others := compare(m, stored(t, nfsManifest()), exactly); len(differences)+len(others) > 0 {
		t.Errorf("got %v", differences)
	}
	o := csiManifest("d", nil)
	live := set(stored(t, o), "metadata/finalizers", []any{protection, "external-attacher/d"})
	if differences, _ := compare(parsed(t, o), live, exactly); len(differences) != 1 {
		t.Errorf("nobody attaches a volume that was not made yet: got %v", differences)
	}
}

// Admission that binds a dry run to a claim is seen, and changes the digest; the
// binder's own writes change nothing in the record of a live volume.
func TestDigestsOfABinding(t *testing.T) {
	plain, bound := stored(t, nfsManifest()), set(stored(t, nfsManifest()), "spec/claimRef/uid", "u")
	if dryRunDigest(plain) == dryRunDigest(bound) {
		t.Error("a dry run that binds the volume has the digest of one that does not")
	}
	if liveDigest(plain) != liveDigest(bound) {
		t.Error("a binding changed the digest of a live volume")
	}
}

func TestAttachersFinalizerIsExpected(t *testing.T) {
	o := csiManifest("disk.example.com", nil)
	m := parsed(t, o)
	for finalizer, want := range map[string]int{"external-attacher/disk-example-com": 0, "external-attacher/other-example-com": 1} {
		live := set(stored(t, o), "metadata/finalizers", []any{protection, finalizer})
		if differences, _ := compare(m, live, evolved); len(differences) != want {
			t.Errorf("%s: got %v", finalizer, differences)
		}
	}
}

// A live volume can hold secrets that its owner put where none belong.
func TestDifferencesShowNoSecrets(t *testing.T) {
	const secret = "hunter2"
	o := csiManifest("d", object{"mode": "a"})
	m := parsed(t, o)
	for path, value := range map[string]any{
		"spec/csi/volumeAttributes/mode":   secret,
		"spec/csi/volumeAttributes/secret": secret,
		"metadata/annotations/note":        secret,
		"metadata/annotations/other":       secret,
		"spec/mountOptions":                []any{"password=" + secret},
		"spec/csi/volumeAttributes":        object{"token": secret},
	} {
		differences, _ := compare(m, set(stored(t, o), path, value), exactly)
		if text := describe(differences); len(differences) == 0 || strings.Contains(text, secret) {
			t.Errorf("%s: %s", path, text)
		}
	}
	// A source that the manifest has not at all is one difference.
	differences, _ := compare(parsed(t, nfsManifest()), set(stored(t, o), "spec/csi/volumeAttributes/password", secret), exactly)
	if text := describe(differences); strings.Contains(text, secret) || !strings.Contains(text, "spec.csi: is an object with the fields driver,") {
		t.Errorf("got %s", text)
	}
	shown, _ := compare(m, set(stored(t, o), "spec/storageClassName", "other"), exactly)
	if !strings.Contains(describe(shown), `is "other"; the manifest says "retained"`) {
		t.Errorf("got %s", describe(shown))
	}
}

func TestLocations(t *testing.T) {
	nfs := func(server, path string) corev1.PersistentVolumeSource {
		return corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: server, Path: path}}
	}
	csi := func(driver, handle string, attributes ...string) corev1.PersistentVolumeSource {
		all := map[string]string{}
		for i := 0; i < len(attributes); i += 2 {
			all[attributes[i]] = attributes[i+1]
		}
		return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle, VolumeAttributes: all}}
	}
	for _, tc := range []struct {
		name string
		a, b corev1.PersistentVolumeSource
		want overlap
	}{
		{"equal", nfs("nas", "/a"), nfs("nas", "/a"), same},
		{"case", nfs("NAS.Example.com", "/a"), nfs("nas.example.com", "/a"), same},
		{"trailing dot", nfs("nas.", "/a"), nfs("nas", "/a"), same},
		{"IPv6 spellings", nfs("fd00::1", "/a"), nfs("FD00:0:0:0:0:0:0:1", "/a"), same},
		{"IPv6 in brackets", nfs("[fd00::1]", "/a"), nfs("fd00::1", "/a"), same},
		{"IPv4 in IPv6", nfs("::ffff:10.0.0.1", "/a"), nfs("10.0.0.1", "/a"), same},
		{"unclean path", nfs("nas", "/a/"), nfs("nas", "//b/../a/."), same},
		{"path's case", nfs("nas", "/A"), nfs("nas", "/a"), apart},
		{"another server", nfs("nas1", "/a"), nfs("nas2", "/a"), apart},
		{"below", nfs("nas", "/a"), nfs("nas", "/a/b"), nested},
		{"above", nfs("nas", "/a/b"), nfs("nas", "/a"), nested},
		{"root", nfs("nas", "/"), nfs("nas", "/a"), nested},
		{"root twice", nfs("nas", "/"), nfs("nas", ""), same},
		{"a longer name", nfs("nas", "/a"), nfs("nas", "/ab"), apart},
		{"CSI NFS", nfs("nas", "/a/b"), csi(driverNFS, "h", "server", "nas", "share", "/a", "subDir", "b"), same},
		{"CSI NFS, other case of names", nfs("nas", "/a/b"), csi(driverNFS, "h", "SERVER", "nas", "Share", "/a/", "subdir", "b/"), same},
		{"CSI NFS, only the share", nfs("nas", "/a"), csi(driverNFS, "h", "server", "nas", "share", "/a"), same},
		{"CSI NFS, names filled in", nfs("nas", "/a/ns/c/v"), csi(driverNFS, "h", "server", "nas", "share", "/a", "subdir", "${pvc.metadata.namespace}/${pvc.metadata.name}/${pv.metadata.name}",
			"csi.storage.k8s.io/pvc/name", "c", "csi.storage.k8s.io/pvc/namespace", "ns", "csi.storage.k8s.io/pv/name", "v"), same},
		{"CSI NFS, a name that nobody gave", nfs("nas", "/a/${pvc.metadata.name}"), csi(driverNFS, "h", "server", "nas", "share", "/a", "subdir", "${pvc.metadata.name}"), same},
		{"CSI NFS, driver in capitals", nfs("nas", "/a"), csi("NFS.csi.k8s.io", "h", "server", "nas", "share", "/a"), same},
		{"SMB, names filled in", csi(driverSMB, "h1", "source", "//nas/s", "subDir", "c"), csi(driverSMB, "h2", "source", "//nas/s", "subDir", "${pvc.metadata.name}", "csi.storage.k8s.io/pvc/name", "c"), same},
		{"CSI NFS below", nfs("nas", "/a"), csi(driverNFS, "h", "server", "nas", "share", "/a", "subDir", "b"), nested},
		{"CSI NFS up and over", nfs("nas", "/b"), csi(driverNFS, "h", "server", "nas", "share", "/a", "subDir", "../b"), same},
		{"Ceph's NFS", nfs("nas", "/0001-x"), csi(driverCephNFS, "h", "server", "nas", "share", "/0001-x"), same},
		{"CSI NFS, one handle", csi(driverNFS, "h", "server", "nas", "share", "/a"), csi(driverNFS, "h", "server", "nas", "share", "/b"), same},
		{"one driver and handle", csi("d", "h"), csi("d", "h"), same},
		{"another handle", csi("d", "h"), csi("d", "h/x"), apart},
		{"another driver", csi("d", "h"), csi("e", "h"), apart},
		{"SMB", csi(driverSMB, "h1", "source", "//NAS/Share/a"), csi(driverSMB, "h2", "source", "//nas/share", "subDir", "A"), same},
		{"SMB and NFS", csi(driverSMB, "h1", "source", "//nas/a"), nfs("nas", "/a"), apart},
		{"CephFS", csi(driverCephFS, "h1", "clusterID", "c", "fsName", "f", "rootPath", "/a"), csi(driverCephFS, "h2", "clusterID", "c", "fsName", "f", "rootPath", "/a/b"), nested},
		{"CephFS of another cluster", csi(driverCephFS, "h1", "clusterID", "c", "fsName", "f", "rootPath", "/a"), csi(driverCephFS, "h2", "clusterID", "d", "fsName", "f", "rootPath", "/a"), apart},
		{"neither NFS nor CSI", corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/a"}}, corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/a"}}, apart},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := locations(&corev1.PersistentVolumeSpec{PersistentVolumeSource: tc.a}), locations(&corev1.PersistentVolumeSpec{PersistentVolumeSource: tc.b})
			if got, _, _ := closest(a, b); got != tc.want {
				t.Errorf("%v and %v: got %d, want %d", a, b, got, tc.want)
			}
			if got, _, _ := closest(b, a); got != tc.want {
				t.Errorf("%v and %v: got %d the other way round", b, a, got)
			}
		})
	}
}

func TestExport(t *testing.T) {
	live := stored(t, nfsManifest())
	claim := fittingClaim()
	boundTo(live, claim)
	exported, err := exportLive(live)
	if err != nil || len(exported.Problems) > 0 {
		t.Fatal(err, exported.Problems)
	}
	m, problems := ParseManifest(exported.YAML)
	if len(problems) > 0 || m.Digest != parsed(t, nfsManifest()).Digest {
		t.Fatalf("%v\n%s", problems, exported.YAML)
	}
	if len(exported.Notes) != 1 || !strings.Contains(exported.Notes[0], "uid-c") {
		t.Errorf("got notes %v", exported.Notes)
	}
	// A provisioned volume: its policy and its provisioner's marks are told.
	set(live, "spec/persistentVolumeReclaimPolicy", "Delete")
	set(live, "spec/storageClassName", nil)
	set(live, "metadata/annotations", object{"pv.kubernetes.io/provisioned-by": "x"})
	exported, err = exportLive(live)
	if err != nil || len(exported.Problems) > 0 || len(exported.Notes) != 3 || !strings.Contains(string(exported.YAML), "persistentVolumeReclaimPolicy: Retain") {
		t.Fatalf("%v %v %v\n%s", err, exported.Problems, exported.Notes, exported.YAML)
	}
	// A source that cannot be compared is exported, and its problem told.
	set(live, "spec/nfs", nil)
	set(live, "spec/hostPath/path", "/x")
	if exported, err = exportLive(live); err != nil || len(exported.Problems) != 1 {
		t.Fatalf("%v %v", err, exported.Problems)
	}
}
