package nfs_test

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
	"github.com/mooring-k8s/mooring/test/demo/installation"
)

// storage is an origin volume and the exported directory that it is for.
type storage struct {
	directory string
	source    corev1.PersistentVolumeSource
}

func inTree(directory string) storage {
	return storage{directory, corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: host, Path: path.Join(export, directory)}}}
}

func csi(directory, handle string, attributes map[string]string) storage {
	return storage{directory, corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: csiDriver, VolumeHandle: handle, VolumeAttributes: attributes,
	}}}
}

var storages = map[string]storage{
	"in-tree, a whole export":  inTree("/"),
	"in-tree, a sub-directory": inTree("/in-tree/deep"),

	"CSI, a share": csi("/share", "static-1", map[string]string{"server": host, "share": export + "/share"}),
	"CSI, a sub-directory of a share": csi("/projects/atlas", host+"#srv#projects/atlas##retain", map[string]string{
		"server": host, "share": export, "subdir": "projects/atlas", "mountPermissions": "0777",
		"storage.kubernetes.io/csiProvisionerIdentity": "1-8081-" + csiDriver,
	}),
	"CSI, keys in other letters": csi("/letters/deep", "static-2", map[string]string{"Server": host, "SHARE": export + "/letters/", "subDir": "deep"}),
	// The names are the origin's; a mirror's own would lead elsewhere.
	"CSI, a sub-directory named after claim and volume": csi("/team/origin/pv-1", "static-3", map[string]string{
		"server": host, "share": export, "subdir": "${pvc.metadata.namespace}/${pvc.metadata.name}/${pv.metadata.name}",
		"csi.storage.k8s.io/pvc/namespace": "team", "csi.storage.k8s.io/pvc/name": "origin", "csi.storage.k8s.io/pv/name": "pv-1",
	}),
}

// Whoever follows a mirror volume's coordinates is where the origin's lead:
// both ways, in sub-directories, to read and to write; and the data outlives
// the mirrors.
func TestMirrorsReachTheOriginsData(t *testing.T) {
	if os.Getenv(controlplane.ExistingClusterEnv) == "true" {
		t.Skip("this makes volumes and claims, on a control plane of its own only")
	}
	cp := plane.ForTest(t)
	root, err := filepath.Abs("../..")
	noError(t, err, "find the checkout")
	_, err = installation.Start(t.Context(), cp, root, chart.Options{
		Values: map[string]any{"image": map[string]any{"repository": "registry.invalid/mooring"}},
	})
	noError(t, err, "install Mooring")
	server := startServer(t, cp)
	c, err := client.New(cp.Admin(), client.Options{})
	noError(t, err, "connect to the cluster")
	for name, origin := range storages {
		t.Run(name, func(t *testing.T) {
			w := &world{T: t, Client: c, server: server, user: user{port: server.port}}
			w.sharesData(origin)
		})
	}
}

func (w *world) sharesData(of storage) {
	directory := filepath.Join(w.server.root, of.directory)
	w.must(os.MkdirAll(filepath.Join(directory, "inner"), 0o750), "make the origin's directory")
	writers, readers := w.namespace("writers"), w.namespace("readers")
	claim := w.origin(w.namespace("owner"), of.source, writers, readers)
	_, origin := w.volume(claim)
	w.hasWritten(origin, "before")

	writer, reader := w.mirror(writers, claim, corev1.ReadWriteMany), w.mirror(readers, claim, corev1.ReadOnlyMany)
	writerVolume, writersPlace := w.volume(writer)
	readerVolume, readersPlace := w.volume(reader)
	all := map[string]place{"origin": origin, "mirror": writersPlace, "read-only mirror": readersPlace}
	if options := readerVolume.Spec.MountOptions; !slices.Contains(options, "ro") {
		w.Errorf("the read-only mirror is mounted with %q", options)
	}

	w.reads("before", all)
	w.hasWritten(origin, "after")
	w.reads("after", all)
	w.hasWritten(writersPlace, "back")
	w.reads("back", all)
	w.hasWritten(writersPlace, "inner/deeper")
	w.reads("inner/deeper", all)
	w.listsTheSame(all)
	if got, err := os.ReadFile(filepath.Join(directory, "back")); err != nil || string(got) != w.content("back") {
		w.Errorf("on the server's disk: got %q (%v)", got, err)
	}

	w.ends(writer, writerVolume)
	w.ends(reader, readerVolume)
	for _, name := range []string{"before", "after", "back", "inner/deeper"} {
		w.reads(name, map[string]place{"origin": origin})
	}
}

// listsTheSame expects the same directory behind each place.
func (w *world) listsTheSame(places map[string]place) {
	w.Helper()
	want, err := w.user.list(w.Context(), places["origin"])
	w.must(err, "list what the origin holds")
	for who, p := range places {
		got, err := w.user.list(w.Context(), p)
		w.must(err, "list what the %s holds", who)
		if diff := cmp.Diff(want, got); diff != "" {
			w.Errorf("the %s, at %v, holds something else (-origin +%s):\n%s", who, p, who, diff)
		}
	}
}
