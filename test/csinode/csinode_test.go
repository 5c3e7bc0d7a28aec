package csinode

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/internal/recipe"
)

const mirrorUID = "0b0f4a52-6a3e-4f4e-9c5e-3d1f6b7a8c90"

// The recipes under test, in the form that real drivers' have: how "own" and
// "ro" are used is what the unsharing options and "ro" are for a network file
// system.
var (
	readOnlyOwn = &recipe.ReadOnlyRule{Modes: []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}, Options: []string{"ro", "own"}, Contrary: []string{"rw"}}

	notStaging     = recipe.Row{Name: "plain.test", Handle: recipe.OpaqueHandle, Need: []string{"path"}, ReadOnly: readOnlyOwn}
	stagingUnique  = recipe.Row{Name: "staging.test", Handle: recipe.OpaqueHandle, Need: []string{"path"}, Stages: true, Unshare: []string{"own"}, ReadOnly: readOnlyOwn}
	stagingShared  = recipe.Row{Name: "staging.test", Handle: recipe.OriginHandle, Stages: true}
	stagingUnwise  = recipe.Row{Name: "staging.test", Handle: recipe.OpaqueHandle, Stages: true}
	readOnlyUnwise = recipe.Row{Name: "plain.test", Handle: recipe.OpaqueHandle, ReadOnly: &recipe.ReadOnlyRule{
		Modes: []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}, Options: []string{"ro"}}}
)

// world is a node with one driver, and an origin volume of it.
type world struct {
	t       *testing.T
	kubelet *kubelet
	driver  *driver
	row     recipe.Row
	origin  *corev1.PersistentVolume
}

func newWorld(t *testing.T, row recipe.Row) *world {
	t.Helper()
	root, err := os.MkdirTemp("", "csi") //nolint:usetesting // short: a socket's path has 108 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	must(t, unix.Mount("csinode", root, "tmpfs", 0, ""))
	t.Cleanup(func() {
		must(t, unix.Unmount(root, unix.MNT_DETACH))
		must(t, os.Remove(root))
	})
	d := &driver{name: row.Name, stages: row.Stages, data: filepath.Join(root, "data"), work: filepath.Join(root, "work")}
	must(t, os.MkdirAll(filepath.Join(d.data, "pvc-origin"), 0o750))
	must(t, os.MkdirAll(d.work, 0o750))
	stop, err := d.serve(filepath.Join(root, "csi.sock"))
	must(t, err)
	t.Cleanup(stop)
	k, hangUp, err := newKubelet(t.Context(), filepath.Join(root, "kubelet"), filepath.Join(root, "csi.sock"))
	must(t, err)
	t.Cleanup(func() { must(t, hangUp()) })
	k.secrets["storage/stage"] = map[string]string{"user": "origin"}
	return &world{t: t, kubelet: k, driver: d, row: row, origin: originOf(row.Name)}
}

func originOf(driver string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-origin"},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: driver, VolumeHandle: "origin-1", VolumeAttributes: map[string]string{
					"path": "pvc-origin", "storage.kubernetes.io/csiProvisionerIdentity": "1-8081-" + driver,
				},
				NodeStageSecretRef: &corev1.SecretReference{Namespace: "storage", Name: "stage"},
			}},
		},
	}
}

// mirror returns the mirror volume that the recipe makes.
func (w *world) mirror(readOnly bool) *corev1.PersistentVolume {
	w.t.Helper()
	made := recipe.Table{w.row}.Make(recipe.Request{Origin: w.origin, ClaimUID: mirrorUID, ReadOnly: readOnly})
	if made.Outcome != recipe.Made {
		w.t.Fatalf("not mirrored: %s", made.Detail)
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + mirrorUID},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: made.AccessModes, MountOptions: made.MountOptions, PersistentVolumeSource: made.Source,
		},
	}
}

func (w *world) start(pod string, volume *corev1.PersistentVolume) string {
	w.t.Helper()
	path, err := w.kubelet.start(w.t.Context(), pod, volume, false)
	must(w.t, err)
	return w.container(path)
}

// container returns the volume as a container has it: runc 1.2 and later makes
// a bind mount of its own and sets the flags that the container asks for, which
// are read-write, whatever the node's mount has.
func (w *world) container(path string) string {
	w.t.Helper()
	inside := w.t.TempDir()
	must(w.t, unix.Mount(path, inside, "", unix.MS_BIND|unix.MS_REC, ""))
	must(w.t, unix.Mount("", inside, "", unix.MS_PRIVATE|unix.MS_REC, ""))
	w.t.Cleanup(func() { _ = unix.Unmount(inside, unix.MNT_DETACH) })
	must(w.t, unix.Mount("", inside, "", unix.MS_BIND|unix.MS_REMOUNT, ""))
	return inside
}

func (w *world) stop(pod string, volume *corev1.PersistentVolume, container string) {
	w.t.Helper()
	must(w.t, unix.Unmount(container, 0))
	must(w.t, w.kubelet.stop(w.t.Context(), pod, volume))
}

// left returns what is still mounted below the node's directories.
func (w *world) left() []string {
	w.t.Helper()
	all, err := mounts()
	must(w.t, err)
	var left []string
	for _, m := range all {
		if strings.HasPrefix(m.path, w.kubelet.root+"/") {
			left = append(left, m.path)
		}
	}
	return left
}

func (w *world) nothingIsLeft() {
	w.t.Helper()
	if left := w.left(); len(left) > 0 {
		w.t.Errorf("still mounted: %v", left)
	}
}

// Whatever the recipe, both ways, and in whichever order the Pods leave.
func TestDataAndTeardown(t *testing.T) {
	for name, row := range map[string]recipe.Row{
		"not staging": notStaging, "staging, unique handle, unshared": stagingUnique, "staging, shared handle": stagingShared,
	} {
		for _, originFirst := range []bool{true, false} {
			order := map[bool]string{true: "the origin leaves first", false: "the mirror leaves first"}[originFirst]
			t.Run(name+", "+order, func(t *testing.T) {
				w := newWorld(t, row)
				mirror := w.mirror(false)
				a, b := w.start("a", w.origin), w.start("b", mirror)
				write(t, a, "from-a")
				write(t, b, "from-b")
				read(t, b, "from-a")
				read(t, a, "from-b")
				if originFirst {
					w.stop("a", w.origin, a)
					write(t, b, "after-a")
					w.stop("b", mirror, b)
				} else {
					w.stop("b", mirror, b)
					write(t, a, "after-b")
					w.stop("a", w.origin, a)
				}
				w.nothingIsLeft()
			})
		}
	}
}

func TestReadOnlyIsRefusedByTheKernel(t *testing.T) {
	for name, row := range map[string]recipe.Row{"not staging": notStaging, "staging": stagingUnique} {
		for _, mirrorFirst := range []bool{false, true} {
			order := map[bool]string{true: "the mirror first", false: "the origin first"}[mirrorFirst]
			t.Run(name+", "+order, func(t *testing.T) {
				w := newWorld(t, row)
				w.origin.Spec.MountOptions = []string{"rw"} // which the recipe must take out
				mirror := w.mirror(true)
				var a, b string
				if mirrorFirst {
					b = w.start("b", mirror)
					a = w.start("a", w.origin)
				} else {
					a = w.start("a", w.origin)
					b = w.start("b", mirror)
				}
				write(t, a, "data")
				read(t, b, "data")
				for what, err := range map[string]error{
					"create": os.WriteFile(filepath.Join(b, "new"), nil, 0o600),
					"remove": os.Remove(filepath.Join(b, "data")),
					"chmod":  os.Chmod(b, 0o777),
				} {
					if !errors.Is(err, unix.EROFS) {
						t.Errorf("%s through a read-only mirror: got %v, want EROFS", what, err)
					}
				}
				w.stop("b", mirror, b)
				write(t, a, "still")
				w.stop("a", w.origin, a)
				w.nothingIsLeft()
			})
		}
	}
}

// Two recipes that would be wrong, to see that these tests would notice.
func TestWrongRecipesAreNoticed(t *testing.T) {
	t.Run("staging, a unique handle, the superblock shared", func(t *testing.T) {
		w := newWorld(t, stagingUnwise)
		mirror := w.mirror(false)
		a, b := w.start("a", w.origin), w.start("b", mirror)
		must(t, unix.Unmount(a, 0))
		must(t, unix.Unmount(b, 0))
		for pod, volume := range map[string]*corev1.PersistentVolume{"a": w.origin, "b": mirror} {
			if err := w.kubelet.stop(t.Context(), pod, volume); !errors.Is(err, errStillMounted) {
				t.Errorf("unstaging the volume of Pod %s: got %v, want kubelet to refuse", pod, err)
			}
		}
		if left := w.left(); len(left) != 2 {
			t.Errorf("still mounted: %v, want both staging mounts", left)
		}
	})
	t.Run("a bind mount remounted read-only", func(t *testing.T) {
		w := newWorld(t, readOnlyUnwise)
		b := w.start("b", w.mirror(true))
		if err := os.WriteFile(filepath.Join(b, "new"), nil, 0o600); err != nil {
			t.Errorf("got %v: this kernel or container holds what others do not", err)
		}
	})
}

// What the driver is asked: kubelet fills it from the mirror volume alone.
func TestWhatTheDriverIsAsked(t *testing.T) {
	w := newWorld(t, stagingUnique)
	mirror := w.mirror(true)
	w.stop("b", mirror, w.start("b", mirror))
	w.driver.mutex.Lock()
	defer w.driver.mutex.Unlock()
	var staged *csi.NodeStageVolumeRequest
	for _, request := range w.driver.requests {
		if r, is := request.(*csi.NodeStageVolumeRequest); is {
			staged = r
		}
	}
	if staged == nil {
		t.Fatal("nothing was staged")
	}
	if staged.GetVolumeId() != "mirror-"+mirrorUID || staged.GetSecrets()["user"] != "origin" {
		t.Errorf("staged with handle %s and secrets %v", staged.GetVolumeId(), staged.GetSecrets())
	}
	if len(staged.GetVolumeContext()) != 1 || staged.GetVolumeContext()["path"] != "pvc-origin" {
		t.Errorf("staged with attributes %v", staged.GetVolumeContext())
	}
	if mode := staged.GetVolumeCapability().GetAccessMode().GetMode(); mode != csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY {
		t.Errorf("staged with mode %v", mode)
	}
	if flags := strings.Join(staged.GetVolumeCapability().GetMount().GetMountFlags(), ","); flags != "own,ro" {
		t.Errorf("staged with options %s", flags)
	}
}

// With one handle the first volume's staging serves both, so the mirror must
// carry the same attributes, options and secrets.
func TestASharedHandleIsStagedOnce(t *testing.T) {
	w := newWorld(t, stagingShared)
	mirror := w.mirror(false)
	a, b := w.start("a", w.origin), w.start("b", mirror)
	w.stop("a", w.origin, a)
	if left := w.left(); len(left) != 2 {
		t.Errorf("mounted while Pod b runs: %v, want its own mount and the staging mount", left)
	}
	w.stop("b", mirror, b)
	w.nothingIsLeft()
	asked := map[string]int{}
	for _, request := range w.driver.requests {
		switch request.(type) {
		case *csi.NodeStageVolumeRequest:
			asked["stage"]++
		case *csi.NodeUnstageVolumeRequest:
			asked["unstage"]++
		case *csi.NodePublishVolumeRequest:
			asked["publish"]++
		case *csi.NodeUnpublishVolumeRequest:
			asked["unpublish"]++
		}
	}
	for call, want := range map[string]int{"stage": 1, "publish": 2, "unpublish": 2, "unstage": 1} {
		if asked[call] != want {
			t.Errorf("%s was called %d times, want %d", call, asked[call], want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, dir, name string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
}

func read(t *testing.T, dir, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil || string(text) != name {
		t.Errorf("read %q, %v; want %q", text, err, name)
	}
}
