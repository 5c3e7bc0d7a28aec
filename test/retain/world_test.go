package retain_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/mooring-k8s/mooring/internal/cli"
	"github.com/mooring-k8s/mooring/internal/receipt"
	"github.com/mooring-k8s/mooring/internal/retain"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// world is one test's view of the control plane: an administrator who makes
// situations, and mooring with the documented rights.
type world struct {
	*testing.T
	plane      *controlplane.ControlPlane
	admin      kubernetes.Interface
	kubeconfig string // of the service account of examples/retain-rbac.yaml
	namespace  string
	id         string // unique in the cluster
	dir        string
	root       string // of the checkout, wherever the test goes
}

var counter atomic.Int64

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, plane.ForTest(t))
}

func newWorldOn(t *testing.T, plane *controlplane.ControlPlane) *world {
	t.Helper()
	w := &world{T: t, plane: plane, dir: t.TempDir()}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	w.root = root
	w.admin = kubernetes.NewForConfigOrDie(w.plane.Admin())
	w.id = fmt.Sprintf("t%d", counter.Add(1))
	w.namespace = w.id
	w.applyRBAC()
	w.must(w.admin.CoreV1().Namespaces().Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}, metav1.CreateOptions{}))
	identity, err := w.plane.ServiceAccount(w.Context(), "mooring-retain", "retain")
	if err != nil {
		t.Fatal(err)
	}
	w.kubeconfig = filepath.Join(w.dir, "retain.kubeconfig")
	if err := identity.WriteKubeconfig(w.kubeconfig); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.removeVolumes)
	return w
}

// must fails the test on an error of a call whose result does not matter.
func (w *world) must(_ any, err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// applyRBAC applies examples/retain-rbac.yaml verbatim.
func (w *world) applyRBAC() {
	w.Helper()
	data, err := os.ReadFile(filepath.Join(w.root, "examples/retain-rbac.yaml"))
	if err != nil {
		w.Fatal(err)
	}
	documents := bytes.Split(data, []byte("\n---\n"))
	var ns corev1.Namespace
	var account corev1.ServiceAccount
	var role rbacv1.ClusterRole
	var binding rbacv1.ClusterRoleBinding
	for i, into := range []any{&ns, &account, &role, &binding} {
		if err := yaml.UnmarshalStrict(documents[i], into); err != nil {
			w.Fatal(err)
		}
	}
	ctx, options := w.Context(), metav1.CreateOptions{}
	_, err1 := w.admin.CoreV1().Namespaces().Create(ctx, &ns, options)
	_, err2 := w.admin.CoreV1().ServiceAccounts(account.Namespace).Create(ctx, &account, options)
	_, err3 := w.admin.RbacV1().ClusterRoles().Create(ctx, &role, options)
	_, err4 := w.admin.RbacV1().ClusterRoleBindings().Create(ctx, &binding, options)
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil && !apierrors.IsAlreadyExists(err) {
			w.Fatal(err)
		}
	}
}

// removeVolumes deletes what the test's volumes are, so that no other test meets
// them: all have the test's id in their name.
func (w *world) removeVolumes() {
	ctx := context.Background()
	list, err := w.admin.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		w.Error(err)
		return
	}
	for _, pv := range list.Items {
		if strings.HasPrefix(pv.Name, w.id+"-") {
			w.removeVolume(ctx, pv.Name)
		}
	}
}

func (w *world) removeVolume(ctx context.Context, name string) {
	volumes := w.admin.CoreV1().PersistentVolumes()
	if err := volumes.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		w.Error(err)
	}
	// Second, since the protection controller adds its finalizer to whatever is
	// not being deleted.
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := volumes.Patch(ctx, name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
		w.Error(err)
	}
}

type object = map[string]any

func (o change) apply(object object) {
	for path, value := range o {
		set(object, strings.Split(path, "/"), value)
	}
}

// change sets fields by their path, with slashes; nil removes one.
type change map[string]any

func set(o object, path []string, value any) {
	for _, name := range path[:len(path)-1] {
		inner, ok := o[name].(object)
		if !ok {
			inner = object{}
			o[name] = inner
		}
		o = inner
	}
	if last := path[len(path)-1]; value == nil {
		delete(o, last)
	} else {
		o[last] = value
	}
}

func (w *world) volumeName(name string) string { return w.id + "-" + name }

// volume returns the manifest of a volume for the claim of that name.
func (w *world) volume(name string, changes ...change) object {
	o := object{
		"apiVersion": "v1", "kind": "PersistentVolume",
		"metadata": object{"name": w.volumeName(name), "labels": object{"owner": "test"}},
		"spec": object{
			"capacity": object{"storage": "10Gi"}, "accessModes": []any{"ReadWriteMany"},
			"persistentVolumeReclaimPolicy": "Retain", "storageClassName": "retained",
			"claimRef": object{"kind": "PersistentVolumeClaim", "namespace": w.namespace, "name": name},
			"nfs":      object{"server": "nas.example.com", "path": "/export/" + w.id + "/" + name},
		},
	}
	for _, c := range changes {
		c.apply(o)
	}
	return o
}

// write writes a manifest and returns its file.
func (w *world) write(o object) string {
	w.Helper()
	data, err := sigsyaml.Marshal(o)
	if err != nil {
		w.Fatal(err)
	}
	file := w.file("manifest.yaml")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		w.Fatal(err)
	}
	return file
}

// file returns a new path in the test's directory.
func (w *world) file(name string) string {
	return filepath.Join(w.dir, fmt.Sprintf("%d-%s", counter.Add(1), name))
}

// make lets the administrator create a volume as kubectl create would.
func (w *world) make(o object) *corev1.PersistentVolume {
	w.Helper()
	var pv corev1.PersistentVolume
	data, err := sigsyaml.Marshal(o)
	if err == nil {
		err = sigsyaml.Unmarshal(data, &pv)
	}
	if err != nil {
		w.Fatal(err)
	}
	made, err := w.admin.CoreV1().PersistentVolumes().Create(w.Context(), &pv, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return made
}

// claim makes a claim that fits volume(name), with changes.
func (w *world) claim(name string, changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	w.Helper()
	class := "retained"
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, VolumeName: w.volumeName(name), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}},
		},
	}
	for _, c := range changes {
		c(claim)
	}
	made, err := w.admin.CoreV1().PersistentVolumeClaims(w.namespace).Create(w.Context(), claim, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return made
}

// live returns the volume of that name, or nil.
func (w *world) live(name string) *corev1.PersistentVolume {
	w.Helper()
	pv, err := w.admin.CoreV1().PersistentVolumes().Get(w.Context(), w.volumeName(name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return pv
}

// eventually polls until done, and prints what it saw last if it never is.
func (w *world) eventually(what string, done func() (any, bool)) {
	w.Helper()
	deadline := time.After(60 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		last, ok := done()
		if ok {
			return
		}
		select {
		case <-deadline:
			w.Fatalf("%s never came; last seen: %+v", what, last)
		case <-tick.C:
		}
	}
}

// awaitPhase waits for a phase of a volume.
func (w *world) awaitPhase(name string, phase corev1.PersistentVolumePhase) {
	w.Helper()
	w.eventually(fmt.Sprintf("phase %s of %s", phase, name), func() (any, bool) {
		pv := w.live(name)
		return pv, pv != nil && pv.Status.Phase == phase
	})
}

// result is what one command did.
type result struct {
	code     int
	out, err string
}

// mooring runs one command line with the documented identity.
func (w *world) mooring(args ...string) result {
	w.Helper()
	return w.run(w.kubeconfig, args...)
}

func (w *world) run(kubeconfig string, args ...string) result {
	w.Helper()
	if kubeconfig != "" {
		args = append(args, "--kubeconfig", kubeconfig)
	}
	var out, errs bytes.Buffer
	code := cli.Run(w.Context(), append([]string{"retain"}, args...), cli.Env{Out: &out, Err: &errs, Version: "test"})
	r := result{code, out.String(), errs.String()}
	w.noSecrets(r.out + r.err)
	return r
}

// noSecrets fails if a token of this cluster stands in text: all begin with the
// same header.
func (w *world) noSecrets(text string) {
	w.Helper()
	for _, mark := range []string{"eyJhbGciOi", "PRIVATE KEY", "CERTIFICATE-----", "LS0tLS1CRUdJTi"} {
		if strings.Contains(text, mark) {
			w.Errorf("a secret (%s...) is in: %s", mark, text)
		}
	}
}

// seen are the reasons that a test of this package asked for.
var seen sync.Map

// want fails unless a command ended for a reason; "" is success.
func (w *world) want(r result, reason retain.Reason) {
	w.Helper()
	code := 0
	if reason != "" {
		seen.Store(reason, true)
		code = retain.InfoOf(reason).ExitCode
	}
	if r.code != code || !strings.HasPrefix(r.err+string(reason), string(reason)) && !strings.Contains(r.err, "\n"+string(reason)+": ") {
		w.Fatalf("got exit code %d; want %d (%s)\n%s%s", r.code, code, reason, r.out, r.err)
	}
}

// preview previews a manifest and returns the receipt.
func (w *world) preview(o object, flags ...string) (receipt.Receipt, result) {
	w.Helper()
	file := w.file("preview.json")
	r := w.mooring(append([]string{"preview", w.write(o), "-o", file}, flags...)...)
	return w.receipt(file), r
}

// create creates by the digest of a preview and returns the receipt.
func (w *world) create(o object, digest string, flags ...string) (receipt.Receipt, result) {
	w.Helper()
	file := w.file("receipt.json")
	r := w.mooring(append([]string{"create", w.write(o), "-o", file, "--approved-plan", digest}, flags...)...)
	return w.receipt(file), r
}

func (w *world) receipt(file string) receipt.Receipt {
	w.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		w.Fatal(err)
	}
	w.noSecrets(string(data))
	r, err := receipt.Decode(data)
	if err != nil {
		w.Fatalf("%v\n%s", err, data)
	}
	return r
}
