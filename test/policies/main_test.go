// Package policies_test does, with the identities that they are about, what the
// chart's admission policies and fences forbid and what they allow, on a real API
// server.
package policies_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// patience is how long a policy may take until it is in force.
const patience = 60 * time.Second

var (
	names mooringapi.Names // the default provisioner name
	plane = &controlplane.Shared{Options: controlplane.Options{
		CrossNamespace: true,
		Controllers:    []string{"validatingadmissionpolicy-status-controller"}, // which checks the types of expressions
	}}
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // clients of tests have nothing to say
	os.Exit(controlplane.Run(m, plane))
}

// labels of namespaces that are protected, and whoever may write them.
const (
	protectedKey = "example.com/type"
	labeler      = "portal"
	restorer     = "restorer"
	exempt       = "system:restore-tools"
	retainer     = "retainer"
)

// values are what the chart is installed with: every policy and fence.
func values() map[string]any {
	return map[string]any{
		"image":              map[string]any{"repository": "registry.invalid/mooring-controller"},
		"allowClaimDeletion": true,
		"extraClassNames":    []any{"lab", "course-*"},
		"policies": map[string]any{
			"exemptGroups":    []any{"system:masters", exempt},
			"records":         map[string]any{"enabled": true},
			"namespaceLabels": map[string]any{"protectedLabelKeys": []any{protectedKey}, "users": []any{labeler}},
		},
		"fences":       map[string]any{"retainedUsers": []any{retainer}},
		"originGrants": documented(),
	}
}

// documented are the grants by policy that docs/policies.md shows.
func documented() []any {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "policies.md"))
	if err != nil {
		panic(err)
	}
	_, after, _ := strings.Cut(string(page), "```yaml\n")
	block, _, _ := strings.Cut(after, "```")
	var values struct {
		OriginGrants []any `json:"originGrants"`
	}
	if err := yaml.UnmarshalStrict([]byte(block), &values); err != nil || len(values.OriginGrants) != 2 {
		panic(fmt.Sprintf("docs/policies.md does not show two originGrants: %v", err))
	}
	return values.OriginGrants
}

var installed struct {
	sync.Once

	err error
}

// world is what a test acts in: a namespace of its own.
type world struct {
	*testing.T
	client.Client

	plane     *controlplane.ControlPlane
	namespace string
}

var worlds atomic.Int64

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	cp := plane.ForTest(t)
	installed.Do(func() { installed.err = install(cp) })
	if installed.err != nil {
		t.Fatal(installed.err)
	}
	c, err := client.New(cp.Admin(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, Client: c, plane: cp, namespace: fmt.Sprintf("t%d", worlds.Add(1))}
	w.must(w.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}), "create the namespace")
	return w
}

// install installs the chart, and kinds that are no part of Kubernetes.
func install(cp *controlplane.ControlPlane) error {
	ctx := context.Background() // it outlives the test that asked first
	if err := createEarly(ctx, cp); err != nil {
		return err
	}
	objects, err := chart.Render(chart.Options{Values: values()})
	if err != nil {
		return err
	}
	if err := chart.Apply(ctx, cp.Admin(), objects); err != nil {
		return err
	}
	hook, err := chart.Cleanup(chart.Options{Values: values()})
	if err != nil {
		return err
	}
	if err := hook.Apply(ctx, cp.Admin()); err != nil {
		return err
	}
	if err := apiextensionsv1.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	c, err := client.New(cp.Admin(), client.Options{})
	if err != nil {
		return err
	}
	return c.Create(ctx, snapshotKind())
}

// early is a claim that was there before the chart.
const early = "early"

func createEarly(ctx context.Context, cp *controlplane.ControlPlane) error {
	c, err := client.New(cp.Admin(), client.Options{})
	if err != nil {
		return err
	}
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: early}}); err != nil {
		return err
	}
	claim := claimIn(early, early)
	claim.Labels["crownlabs.polito.it/volume-type"] = "sharedvolume"
	return c.Create(ctx, claim)
}

// snapshotKind is the kind VolumeSnapshot, as far as it matters here.
func snapshotKind() *apiextensionsv1.CustomResourceDefinition {
	keep := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "volumesnapshots.snapshot.storage.k8s.io",
			Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, a stand-in of the tests"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "snapshot.storage.k8s.io", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "volumesnapshots", Singular: "volumesnapshot", Kind: "VolumeSnapshot", ListKind: "VolumeSnapshotList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}},
			}},
		},
	}
}

func (w *world) must(err error, what string) {
	w.Helper()
	if err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

// as returns a client of a user who may do everything that RBAC can allow, so
// that only admission can refuse.
func (w *world) as(user string, groups ...string) client.Client {
	w.Helper()
	identity, err := w.plane.User(w.Context(), user, groups...)
	w.must(err, "make "+user)
	return w.allowed(identity, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user})
}

// mooring returns a client with the token of an account of Mooring's, and every
// right there is: what is left to stop it is the fence.
func (w *world) mooring(account string) client.Client {
	w.Helper()
	identity, err := w.plane.ServiceAccount(w.Context(), chart.DefaultNamespace, account)
	w.must(err, "get the token of "+account)
	return w.allowed(identity, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: chart.DefaultNamespace, Name: account})
}

func (w *world) allowed(identity *controlplane.Identity, subject rbacv1.Subject) client.Client {
	w.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "everything-" + w.namespace + "-" + strings.ReplaceAll(subject.Name, ":", "-")},
		Subjects:   []rbacv1.Subject{subject},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	if err := w.Create(w.Context(), binding); !apierrors.IsAlreadyExists(err) {
		w.must(err, "let "+subject.Name+" do everything")
	}
	c, err := client.New(identity.Config, client.Options{})
	w.must(err, "connect as "+subject.Name)
	w.until(subject.Name+" may do everything", func(ctx context.Context) string {
		if err := c.List(ctx, &corev1.NodeList{}); err != nil {
			return err.Error()
		}
		return ""
	})
	return c
}

func (w *world) until(what string, condition func(ctx context.Context) string) {
	w.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(w.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == "", nil
	})
	if err != nil {
		w.Fatalf("%s: not within %v: %s", what, patience, last)
	}
}

// refused waits until a write is refused with this text: policies come into force
// some moments after they are stored. A write that passes must be one that can be
// tried again, such as a dry run.
func (w *world) refused(what, text string, write func() error) {
	w.Helper()
	w.until(what+" is refused", func(context.Context) string {
		switch err := write(); {
		case err == nil:
			return "it passes"
		case apierrors.IsConflict(err), !strings.Contains(err.Error(), text):
			return err.Error()
		}
		return ""
	})
}

// passes expects a write to pass, by dry run or for good.
func (w *world) passes(what string, write func() error) {
	w.Helper()
	if err := write(); err != nil {
		w.Errorf("%s: %v", what, err)
	}
}

// creates and patches are writes by dry run.
func (w *world) creates(c client.Client, object client.Object) func() error {
	return func() error {
		fresh, _ := object.DeepCopyObject().(client.Object)
		return c.Create(w.Context(), fresh, client.DryRunAll)
	}
}

func (w *world) patches(c client.Client, object client.Object, patch string) func() error {
	return func() error {
		fresh, _ := object.DeepCopyObject().(client.Object)
		return c.Patch(w.Context(), fresh, client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
	}
}

func (w *world) patchesStatus(c client.Client, object client.Object, patch string) func() error {
	return func() error {
		fresh, _ := object.DeepCopyObject().(client.Object)
		return c.Status().Patch(w.Context(), fresh, client.RawPatch(types.MergePatchType, []byte(patch)),
			&client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}})
	}
}

func (w *world) deletes(c client.Client, object client.Object) func() error {
	return func() error { return c.Delete(w.Context(), object, client.DryRunAll) }
}

// claim returns a claim of the test's namespace.
func (w *world) claim(name string, edits ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	claim := claimIn(w.namespace, name)
	for _, edit := range edits {
		edit(claim)
	}
	return claim
}

func claimIn(namespace, name string) *corev1.PersistentVolumeClaim {
	class := "standard"
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{}, Labels: map[string]string{}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *size("1Gi")}},
		},
	}
}

// stored creates an object as administrator.
func stored[T client.Object](w *world, object T) T {
	w.Helper()
	w.must(w.Create(w.Context(), object), fmt.Sprintf("create %T %s", object, object.GetName()))
	w.Cleanup(func() { _ = w.Delete(context.Background(), object) })
	return object
}

func ofClass(class string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &class }
}

func annotated(key, value string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Annotations[key] = value }
}

// without returns a record without one key.
func without(record map[string]string, keys ...string) map[string]string {
	rest := map[string]string{}
	for key, value := range record {
		if !slices.Contains(keys, key) {
			rest[key] = value
		}
	}
	return rest
}
