package retain

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Each row changes the base case in one field; the only problem must name that
// field and say that.
func TestParseManifest(t *testing.T) {
	long := strings.Repeat("a", 254)
	for _, tc := range []struct {
		name, path string
		value      any
		wantField  string // empty: accepted
		wantDetail string
	}{
		{"base case", "kind", "PersistentVolume", "", ""},
		{"kind missing", "kind", nil, "kind", "expected apiVersion v1"},
		{"another kind", "kind", "PersistentVolumeClaim", "kind", "expected apiVersion v1"},
		{"a list of volumes", "kind", "List", "kind", "one volume per file"},
		{"another version", "apiVersion", "v2", "kind", "expected apiVersion v1"},
		{"unknown top field", "specs", object{}, "specs", "no field of this name"},
		{"unknown field", "spec/reclaimPolicy", "Retain", "spec.reclaimPolicy", "no field of this name"},
		{"wrong capitals", "spec/Nfs", object{}, "spec.Nfs", "no field of this name"},

		{"no name", "metadata/name", nil, "metadata.name", "expected the volume's name"},
		{"bad name", "metadata/name", "V_1", "metadata.name", "RFC 1123"},
		{"long name", "metadata/name", long, "metadata.name", "253"},
		{"generateName", "metadata/generateName", "v-", "metadata.generateName", "written by the server"},
		{"namespace", "metadata/namespace", "n", "metadata.namespace", "written by the server"},
		{"uid", "metadata/uid", "u", "metadata.uid", "written by the server"},
		{"resourceVersion", "metadata/resourceVersion", "1", "metadata.resourceVersion", "written by the server"},
		{"generation", "metadata/generation", 1, "metadata.generation", "written by the server"},
		{"creationTimestamp", "metadata/creationTimestamp", "2026-01-01T00:00:00Z", "metadata.creationTimestamp", "written by the server"},
		{"finalizers", "metadata/finalizers", []any{}, "metadata.finalizers", "written by the server"},
		{"ownerReferences", "metadata/ownerReferences", []any{}, "metadata.ownerReferences", "written by the server"},
		{"managedFields", "metadata/managedFields", []any{}, "metadata.managedFields", "written by the server"},
		{"status", "status", object{}, "status", "written by the server"},
		{"bad label", "metadata/labels/a", "b c", "metadata.labels", "alphanumeric"},
		{"bad annotation", "metadata/annotations", object{"a b": "c"}, "metadata.annotations", "name part"},
		{"controllers' annotation", "metadata/annotations", object{"pv.kubernetes.io/provisioned-by": "x"}, "metadata.annotations[pv.kubernetes.io/provisioned-by]", "volume controllers"},
		{"controllers' annotation 2", "metadata/annotations", object{"volume.kubernetes.io/x": "x"}, "metadata.annotations[volume.kubernetes.io/x]", "volume controllers"},
		{"beta class", "metadata/annotations", object{"volume.beta.kubernetes.io/storage-class": "x"}, "metadata.annotations[volume.beta.kubernetes.io/storage-class]", "volume controllers"},
		{"kubectl apply", "metadata/annotations", object{"kubectl.kubernetes.io/last-applied-configuration": "{}"}, "metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]", "patches"},
		{"a mirror's record", "metadata/annotations", object{"mirror.example.com/mirror-claim-uid": "x"}, "metadata.annotations[mirror.example.com/mirror-claim-uid]", "mirror volume"},
		{"own annotation", "metadata/annotations", object{"example.com/pv.kubernetes.io": "x"}, "", ""},

		{"no policy", "spec/persistentVolumeReclaimPolicy", nil, "spec.persistentVolumeReclaimPolicy", "written out"},
		{"policy Delete", "spec/persistentVolumeReclaimPolicy", "Delete", "spec.persistentVolumeReclaimPolicy", `"Retain"`},
		{"policy Recycle", "spec/persistentVolumeReclaimPolicy", "Recycle", "spec.persistentVolumeReclaimPolicy", `"Retain"`},
		{"no claimRef", "spec/claimRef", nil, "spec.claimRef", "kind, namespace and name"},
		{"claimRef without kind", "spec/claimRef/kind", nil, "spec.claimRef.kind", "PersistentVolumeClaim"},
		{"claimRef of a Pod", "spec/claimRef/kind", "Pod", "spec.claimRef.kind", "PersistentVolumeClaim"},
		{"claimRef without namespace", "spec/claimRef/namespace", nil, "spec.claimRef.namespace", "can never bind"},
		{"claimRef with a bad namespace", "spec/claimRef/namespace", "a.b", "spec.claimRef.namespace", "must not contain dots"},
		{"claimRef without name", "spec/claimRef/name", nil, "spec.claimRef.name", "claim's name"},
		{"claimRef with a bad name", "spec/claimRef/name", "a b", "spec.claimRef.name", "RFC 1123"},
		{"claimRef of v1", "spec/claimRef/apiVersion", "v1", "", ""},
		{"claimRef of v2", "spec/claimRef/apiVersion", "v2", "spec.claimRef.apiVersion", `"v1"`},
		{"claimRef with uid", "spec/claimRef/uid", "u", "spec.claimRef.uid", "binder"},
		{"claimRef with resourceVersion", "spec/claimRef/resourceVersion", "1", "spec.claimRef.resourceVersion", "binder"},
		{"claimRef with fieldPath", "spec/claimRef/fieldPath", "x", "spec.claimRef.fieldPath", "binder"},
		{"no class", "spec/storageClassName", nil, "spec.storageClassName", `or "" for`},
		{"empty class", "spec/storageClassName", "", "", ""},
		{"bad class", "spec/storageClassName", "A B", "spec.storageClassName", "RFC 1123"},

		{"no capacity", "spec/capacity", nil, "spec.capacity.storage", "this entry"},
		{"capacity zero", "spec/capacity/storage", "0", "spec.capacity.storage", "above 0"},
		{"capacity negative", "spec/capacity/storage", "-1Gi", "spec.capacity.storage", "above 0"},
		{"capacity in parts of bytes", "spec/capacity/storage", "100m", "spec.capacity.storage", "whole number"},
		{"capacity of petabytes", "spec/capacity/storage", "10Pi", "", ""},
		{"capacity in parts, large", "spec/capacity/storage", "10000000000000000500m", "spec.capacity.storage", "whole number"},
		{"capacity of another thing", "spec/capacity/cpu", "1", "spec.capacity.storage", "no other"},
		{"capacity no quantity", "spec/capacity/storage", "ten", "", "a quantity looks like"},
		{"no modes", "spec/accessModes", nil, "spec.accessModes", "at least one"},
		{"unknown mode", "spec/accessModes", []any{"RWX"}, "spec.accessModes[0]", "ReadWriteMany"},
		{"mode twice", "spec/accessModes", []any{"ReadWriteMany", "ReadWriteMany"}, "spec.accessModes[1]", "Duplicate"},
		{"RWOP with another", "spec/accessModes", []any{"ReadWriteOncePod", "ReadWriteMany"}, "spec.accessModes", "no other mode"},
		{"Filesystem", "spec/volumeMode", "Filesystem", "", ""},
		{"Block over NFS", "spec/volumeMode", "Block", "spec.volumeMode", "no blocks"},
		{"unknown volume mode", "spec/volumeMode", "File", "spec.volumeMode", "Filesystem"},
		{"mount options", "spec/mountOptions", []any{"hard", "nfsvers=4.1", "sec=krb5"}, "", ""},
		{"empty mount option", "spec/mountOptions", []any{""}, "spec.mountOptions[0]", "one mount option"},
		{"mount option with a space", "spec/mountOptions", []any{"a b"}, "spec.mountOptions[0]", "one mount option"},
		{"password in a mount option", "spec/mountOptions", []any{"vers=3,password=x"}, "spec.mountOptions[0]", "looks like a password"},
		{"attributes class over NFS", "spec/volumeAttributesClassName", "gold", "spec.volumeAttributesClassName", "only CSI"},

		{"no source", "spec/nfs", nil, "spec", "exactly one source"},
		{"two sources", "spec/csi", object{"driver": "d", "volumeHandle": "h"}, "spec", "exactly one source"},
		{"another source", "spec/hostPath", object{"path": "/x"}, "spec.hostPath", "not a source"},
		{"no server", "spec/nfs/server", nil, "spec.nfs.server", "host name or IP"},
		{"server IPv4", "spec/nfs/server", "10.0.0.1", "", ""},
		{"server IPv6", "spec/nfs/server", "fd00::1", "", ""},
		{"server with a dot at its end", "spec/nfs/server", "NAS.example.com.", "", ""},
		{"server in brackets", "spec/nfs/server", "[fd00::1]", "spec.nfs.server", "without brackets"},
		{"server with a port", "spec/nfs/server", "nas:2049", "spec.nfs.server", "without brackets and port"},
		{"server with a zone", "spec/nfs/server", "fe80::1%eth0", "spec.nfs.server", "host name, or"},
		{"server a bad address", "spec/nfs/server", "10.0.0.256", "spec.nfs.server", "host name, or"},
		{"server unspecified", "spec/nfs/server", "0.0.0.0", "spec.nfs.server", "host name, or"},
		{"server with a space", "spec/nfs/server", "nas ", "spec.nfs.server", "host name, or"},
		{"no path", "spec/nfs/path", nil, "spec.nfs.path", "absolute path"},
		{"relative path", "spec/nfs/path", "export", "spec.nfs.path", "absolute path"},
		{"path with ..", "spec/nfs/path", "/export/../v", "spec.nfs.path", "without .."},
		{"path with //", "spec/nfs/path", "/export//v", "spec.nfs.path", "without .."},
		{"path with a slash at its end", "spec/nfs/path", "/export/", "spec.nfs.path", "without .."},
		{"path with a line break", "spec/nfs/path", "/a\nb", "spec.nfs.path", "control characters"},
		{"long path", "spec/nfs/path", "/" + strings.Repeat("a", 1024), "spec.nfs.path", "1024 bytes"},
		{"root path", "spec/nfs/path", "/", "", ""},
		{"read-only", "spec/nfs/readOnly", true, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			requireProblem(t, set(nfsManifest(), tc.path, tc.value), tc.wantField, tc.wantDetail)
		})
	}
}

func requireProblem(t *testing.T, o object, field, detail string) {
	t.Helper()
	_, problems := ParseManifest(yamlOf(t, o))
	if detail == "" {
		if len(problems) > 0 {
			t.Fatalf("refused: %v", problems)
		}
		return
	}
	if len(problems) != 1 || problems[0].Field != field || !strings.Contains(problems[0].Detail, detail) {
		t.Fatalf("got %v; want only %q with %q", problems, field, detail)
	}
}

func TestParseManifestCSI(t *testing.T) {
	stage := object{"name": "s", "namespace": "n"}
	nfs := func() object { return csiManifest(driverNFS, object{"server": "nas", "share": "/export"}) }
	smb := func() object {
		return set(csiManifest(driverSMB, object{"source": "//nas/share"}), "spec/csi/nodeStageSecretRef", stage)
	}
	ceph := func() object {
		return set(csiManifest(driverCephFS, object{"clusterID": "c", "fsName": "f", "rootPath": "/v", "staticVolume": "true"}), "spec/csi/nodeStageSecretRef", stage)
	}
	other := func() object { return csiManifest("other.example.com", nil) }
	const attributes = "spec.csi.volumeAttributes"
	for _, tc := range []struct {
		name, path string
		base       func() object
		value      any
		wantField  string
		wantDetail string
	}{
		{"other driver", "spec/csi/readOnly", other, true, "", ""},
		{"no driver", "spec/csi/driver", other, nil, "spec.csi.driver", "driver's name"},
		{"bad driver", "spec/csi/driver", other, "Other", "spec.csi.driver", "lower-case"},
		{"long driver", "spec/csi/driver", other, strings.Repeat("a", 64), "spec.csi.driver", "63"},
		{"no handle", "spec/csi/volumeHandle", other, nil, "spec.csi.volumeHandle", "expected the handle"},
		{"handle with ^", "spec/csi/volumeHandle", other, "a^b", "spec.csi.volumeHandle", "and ^"},
		{"handle with a space", "spec/csi/volumeHandle", other, "a ", "spec.csi.volumeHandle", "without white space"},
		{"block", "spec/volumeMode", other, "Block", "", ""},
		{"attributes class", "spec/volumeAttributesClassName", other, "gold", "", ""},
		{"secret in an attribute", "spec/csi/volumeAttributes", other, object{"accountKey": "x"}, attributes + "[accountKey]", "looks like a secret"},
		{"secret in a value", "spec/csi/volumeAttributes", other, object{"opts": "a,password=x"}, attributes + "[opts]", "looks like a secret"},
		{"password of somebody", "spec/csi/volumeAttributes", other, object{"smbPassword": "x"}, attributes + "[smbPassword]", "looks like a secret"},
		{"password in an address", "spec/csi/volumeAttributes", other, object{"metaurl": "redis://:x@host/1"}, attributes + "[metaurl]", "looks like a secret"},
		{"address without a password", "spec/csi/volumeAttributes", other, object{"url": "https://host:1/a@b"}, "", ""},
		{"name of a Secret", "spec/csi/volumeAttributes", other, object{"secretName": "x", "secretNamespace": "y"}, "", ""},
		{"name twice", "spec/csi/volumeAttributes", other, object{"a": "x", "A": "x"}, attributes + "[a]", "different case"},
		{"half a reference", "spec/csi/nodePublishSecretRef", other, object{"name": "x"}, "spec.csi.nodePublishSecretRef", "name and namespace"},

		{"nfs", "spec/csi/volumeAttributes/mountPermissions", nfs, "0", "", ""},
		{"nfs, block", "spec/volumeMode", nfs, "Block", "spec.volumeMode", "no blocks"},
		{"nfs, no server", "spec/csi/volumeAttributes/server", nfs, nil, attributes + "[server]", "host name"},
		{"nfs, no share", "spec/csi/volumeAttributes/share", nfs, nil, attributes + "[share]", "absolute path"},
		{"nfs, share with ..", "spec/csi/volumeAttributes/share", nfs, "/a/..", attributes + "[share]", "without .."},
		{"nfs, subDir", "spec/csi/volumeAttributes/subDir", nfs, "a/b", "", ""},
		{"nfs, subDir up", "spec/csi/volumeAttributes/subDir", nfs, "../b", attributes + "[subdir]", "relative path"},
		{"nfs, template", "spec/csi/volumeAttributes/subDir", nfs, "${pvc.metadata.name}", attributes + "[subdir]", "template"},
		{"nfs, permissions", "spec/csi/volumeAttributes/mountPermissions", nfs, "rwx", attributes + "[mountPermissions]", "octal"},
		{"nfs, unknown attribute", "spec/csi/volumeAttributes/subdirectory", nfs, "a", attributes, "subdir"},
		{"ceph nfs, no share", "spec/csi/driver", func() object { return csiManifest("x", object{"server": "nas"}) }, driverCephNFS, attributes + "[share]", "absolute path"},
		{"smb", "spec/csi/volumeAttributes/subDir", smb, "a", "", ""},
		{"smb, no share", "spec/csi/volumeAttributes/source", smb, "//nas", attributes + "[source]", "//server/share"},
		{"smb, no slashes", "spec/csi/volumeAttributes/source", smb, "nas/share", attributes + "[source]", "//server/share"},
		{"smb, no secret", "spec/csi/nodeStageSecretRef", smb, nil, "spec.csi.nodeStageSecretRef", "Secret"},
		{"cephfs", "spec/csi/readOnly", ceph, false, "", ""},
		{"cephfs, not static", "spec/csi/volumeAttributes/staticVolume", ceph, nil, attributes + "[staticVolume]", "rootPath"},
		{"cephfs, no cluster", "spec/csi/volumeAttributes/clusterID", ceph, nil, attributes + "[clusterID]", "cluster's ID"},
		{"cephfs, no file system", "spec/csi/volumeAttributes/fsName", ceph, nil, attributes + "[fsName]", "file system"},
		{"cephfs, relative root", "spec/csi/volumeAttributes/rootPath", ceph, "v", attributes + "[rootPath]", "absolute path"},
		{"cephfs, no secret", "spec/csi/nodeStageSecretRef", ceph, nil, "spec.csi.nodeStageSecretRef", "Secret"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			requireProblem(t, set(tc.base(), tc.path, tc.value), tc.wantField, tc.wantDetail)
		})
	}
}

// Problems show the value that has them, unless it could be a secret.
func TestProblemsShowNoSecrets(t *testing.T) {
	smb := csiManifest(driverSMB, object{"source": "//me:hunter2@nas/share"})
	for _, o := range []object{
		set(nfsManifest(), "spec/mountOptions", []any{"username=me, password=hunter2"}),
		set(nfsManifest(), "spec/nfs/path", "password=hunter2"),
		set(nfsManifest(), "spec/nfs/server", "//me:hunter2@nas"),
		smb,
	} {
		if _, problems := ParseManifest(yamlOf(t, o)); len(problems) == 0 || strings.Contains(problems.Error(), "hunter2") {
			t.Errorf("got %v", problems)
		}
	}
	if _, problems := ParseManifest(yamlOf(t, set(nfsManifest(), "spec/nfs/path", "export"))); !strings.Contains(problems.Error(), `"export"`) {
		t.Errorf("got %v", problems)
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	o := nfsManifest()
	for path, value := range map[string]any{
		"metadata/name": "V", "spec/persistentVolumeReclaimPolicy": "Delete", "spec/claimRef/namespace": nil,
		"spec/storageClassName": nil, "spec/accessModes": nil, "spec/nfs/path": "x", "status": object{},
	} {
		set(o, path, value)
	}
	if _, problems := ParseManifest(yamlOf(t, o)); len(problems) != 7 {
		t.Fatalf("got %d problems: %v", len(problems), problems)
	}
}

func TestNormalisedManifest(t *testing.T) {
	base := parsed(t, nfsManifest())
	for name, o := range map[string]object{
		"explicit default": set(nfsManifest(), "spec/volumeMode", "Filesystem"),
		"another spelling": set(nfsManifest(), "spec/capacity/storage", "10240Mi"),
		"empty list":       set(nfsManifest(), "spec/mountOptions", []any{}),
	} {
		if m := parsed(t, o); m.Digest != base.Digest {
			t.Errorf("%s has another digest:\n%s\n%s", name, jsonOf(t, m.Object), jsonOf(t, base.Object))
		} else if m.FileDigest == base.FileDigest {
			t.Errorf("%s has the same file digest", name)
		}
	}
	if other := parsed(t, set(nfsManifest(), "spec/nfs/readOnly", true)); other.Digest == base.Digest {
		t.Error("another volume has the same digest")
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add(yamlOf(f, nfsManifest()))
	f.Add(yamlOf(f, csiManifest(driverNFS, object{"server": "nas", "share": "/x", "subDir": "y"})))
	f.Add(yamlOf(f, set(nfsManifest(), "spec/storageClassName", "")))
	f.Add([]byte("apiVersion: v1\nkind: PersistentVolume\nspec: {nfs: {server: on}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, problems := ParseManifest(data)
		if len(problems) > 0 {
			return
		}
		spec := m.Volume.Spec
		if spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || spec.ClaimRef == nil ||
			spec.ClaimRef.Namespace == "" || spec.ClaimRef.Name == "" || spec.ClaimRef.UID != "" || len(m.Locations) == 0 {
			t.Fatalf("accepted: %s", jsonOf(t, m.Object))
		}
		again, err := json.Marshal(m.Object)
		if err != nil {
			t.Fatal(err)
		}
		if second, problems := ParseManifest(again); len(problems) > 0 || second.Digest != m.Digest {
			t.Fatalf("the normalised form is another volume: %v\n%s", problems, again)
		}
		if differences, others := compare(m, m.Object, exactly); len(differences)+len(others) > 0 {
			t.Fatalf("differs from itself: %v", differences)
		}
	})
}

func TestCheckSet(t *testing.T) {
	with := func(name, path, claim string) Manifest {
		o := set(set(nfsManifest(), "metadata/name", name), "spec/nfs/path", path)
		return parsed(t, set(o, "spec/claimRef/name", claim))
	}
	a := with("a", "/a", "a")
	for _, tc := range []struct {
		name    string
		other   Manifest
		allowed []string
		want    Reason
	}{
		{"apart", with("b", "/b", "b"), nil, ""},
		{"one name", with("a", "/b", "b"), nil, ManifestInvalid},
		{"one claim", with("b", "/b", "a"), nil, ClaimContested},
		{"one place", with("b", "/a", "b"), nil, BackendShared},
		{"one below the other", with("b", "/a/b", "b"), nil, BackendNested},
		{"one below the other, one named", with("b", "/a/b", "b"), []string{"a"}, BackendNested},
		{"one below the other, other named", with("b", "/a/b", "b"), []string{"b"}, BackendNested},
		{"one below the other, both named", with("b", "/a/b", "b"), []string{"a", "b"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := CheckSet([]Manifest{a, tc.other}, tc.allowed)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || ReasonOf(err) != tc.want) {
				t.Fatalf("got %v; want %q", err, tc.want)
			}
		})
	}
}

func TestPolicy(t *testing.T) {
	const good = `
apiVersion: mooring-k8s.github.io/v1
kind: RetainPolicy
servers: [{name: NAS.example.com, exports: [/export]}]
drivers: [nfs.csi.k8s.io]
namespaces: [ns]
storageClasses: [retained, ""]
`
	policy, problems := ParsePolicy([]byte(good))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, tc := range []struct {
		name      string
		manifest  object
		wantField string
	}{
		{"base case", nfsManifest(), ""},
		{"the export itself", set(nfsManifest(), "spec/nfs/path", "/export"), ""},
		{"beside the export", set(nfsManifest(), "spec/nfs/path", "/export2"), "spec"},
		{"another server", set(nfsManifest(), "spec/nfs/server", "nas2.example.com"), "spec"},
		{"another namespace", set(nfsManifest(), "spec/claimRef/namespace", "other"), "spec.claimRef.namespace"},
		{"another class", set(nfsManifest(), "spec/storageClassName", "other"), "spec.storageClassName"},
		{"no class", set(nfsManifest(), "spec/storageClassName", ""), ""},
		{"by CSI", csiManifest(driverNFS, object{"server": "nas.example.com", "share": "/export/x"}), ""},
		{"by CSI beside", csiManifest(driverNFS, object{"server": "nas.example.com", "share": "/x"}), "spec"},
		{"another driver", csiManifest("other.example.com", nil), "spec.csi.driver"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			problems := policy.Check(parsed(t, tc.manifest))
			if tc.wantField == "" && len(problems) > 0 || tc.wantField != "" && (len(problems) != 1 || problems[0].Field != tc.wantField) {
				t.Fatalf("got %v; want %q", problems, tc.wantField)
			}
		})
	}
	for _, tc := range []struct{ name, from, to, wantField string }{
		{"another kind", "RetainPolicy", "Policy", "kind"},
		{"another version", "/v1", "/v2", "kind"},
		{"unknown field", "drivers:", "driver:", "driver"},
		{"no servers", "servers: [{name: NAS.example.com, exports: [/export]}]", "", "servers"},
		{"no namespaces", "namespaces: [ns]", "", "namespaces"},
		{"bad server", "NAS.example.com", "nas:2049", "servers[0].name"},
		{"no exports", "[/export]", "[]", "servers[0].exports"},
		{"relative export", "[/export]", "[export]", "servers[0].exports[0]"},
		{"on", "[ns]", "[on]", "namespaces[0]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, problems := ParsePolicy([]byte(strings.Replace(good, tc.from, tc.to, 1)))
			if len(problems) == 0 || problems[0].Field != tc.wantField {
				t.Fatalf("got %v; want %q", problems, tc.wantField)
			}
		})
	}
	if p := (Policy{}); len(p.Check(parsed(t, nfsManifest()))) == 0 {
		t.Error("the zero policy allows something")
	}
	all := Policy{Namespaces: []string{"*"}, StorageClasses: []string{"*"}, Drivers: []string{"*"}, Servers: policy.Servers}
	if problems := all.Check(parsed(t, csiManifest("other.example.com", nil))); len(problems) > 0 {
		t.Error(slices.Clone(problems))
	}
}
