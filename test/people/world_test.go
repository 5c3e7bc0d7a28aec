package people_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mooring-k8s/mooring/internal/cli"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// patience is how long a test waits for what should take a moment. It only
// matters when something is wrong.
const patience = 60 * time.Second

var names mooringapi.Names // the default provisioner name

// world is what a test acts in: a cluster seen as its administrator, a
// namespace of an owner and one of a tenant, which has the label type=tenant.
type world struct {
	*testing.T
	client.Client
	plane  *controlplane.ControlPlane
	gateOn bool
	prefix string

	ownerNS, tenantNS string
	// The persons who type commands.
	admin, owner, tenant person
}

// person is somebody with a kubeconfig.
type person struct {
	name       string
	kubeconfig string
}

var worlds atomic.Int64

func newWorld(t *testing.T, plane *controlplane.ControlPlane, gateOn bool) *world {
	t.Helper()
	c, err := client.New(plane.Admin(), client.Options{})
	noError(t, err, "connect to the cluster")
	w := &world{T: t, Client: c, plane: plane, gateOn: gateOn, prefix: fmt.Sprintf("t%d-%d", worlds.Add(1), time.Now().UnixMilli()%100000)}
	w.admin = person{name: "administrator", kubeconfig: plane.AdminKubeconfigFile()}
	w.ownerNS = w.namespace("owner", nil)
	w.tenantNS = w.namespace("tenant", map[string]string{"type": "tenant"})
	w.owner = w.editorOf(w.ownerNS)
	w.tenant = w.editorOf(w.tenantNS)
	return w
}

// namespace creates a namespace of the test's own with these labels.
func (w *world) namespace(name string, labels map[string]string) string {
	w.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.prefix + "-" + name, Labels: labels}}
	w.must(w.Create(w.Context(), namespace), "create a namespace")
	return namespace.Name
}

// editorOf returns somebody with the role edit in one namespace, and no other
// right: a service account with a token.
func (w *world) editorOf(namespace string) person {
	w.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "person"}}
	w.must(w.Create(w.Context(), account), "create an account")
	w.must(w.Create(w.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "person-edits"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
	}), "let the account edit")
	identity, err := w.plane.ServiceAccount(w.Context(), namespace, account.Name)
	w.must(err, "get a token of the account")
	who := person{name: namespace, kubeconfig: filepath.Join(w.TempDir(), namespace+".kubeconfig")}
	w.must(identity.WriteKubeconfig(who.kubeconfig), "write the account's kubeconfig")
	w.until("the rights are in force", func(ctx context.Context) string {
		c, err := client.New(identity.Config, client.Options{})
		if err == nil {
			err = c.List(ctx, &corev1.PersistentVolumeClaimList{}, client.InNamespace(namespace))
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
	return who
}

// result is what a command answered.
type result struct {
	code     int
	out, err string
}

// String shows it as a terminal would.
func (r result) String() string { return fmt.Sprintf("%s%s(exit code %d)", r.out, r.err, r.code) }

// mooring runs a command as a person. What it prints as JSON is held against its
// published schema.
func (w *world) mooring(who person, args ...string) result {
	var out, errs bytes.Buffer
	code := cli.Run(w.Context(), append(args, "--kubeconfig="+who.kubeconfig), cli.Env{Out: &out, Err: &errs, Version: "test"})
	got := result{code, out.String(), errs.String()}
	if at := slices.Index(args, "-o"); at > 0 && at+1 < len(args) && args[at+1] == "json" && got.out != "" {
		w.satisfies(args[0], got)
	}
	return got
}

// schemas are the published ones, by command.
var schemas = map[string]string{
	"share": "claim", "unshare": "claim", "mirror": "claim.schema.json#/$defs/mirrorClaim",
	"explain": "explain", "access": "access", "list": "list", "map": "map", "doctor": "doctor", "version": "version", "drivers": "drivers",
}

func (w *world) satisfies(command string, got result) {
	w.Helper()
	file := schemas[command]
	if file == "" {
		w.Fatalf("mooring %s prints JSON, and no schema is named here", command)
	}
	if !strings.Contains(file, ".") {
		file += ".schema.json"
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(got.out))
	w.must(err, "read what mooring %s printed: %s", command, got)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile("../../docs/" + file)
	w.must(err, "read docs/%s", file)
	w.must(schema.Validate(value), "hold what mooring %s printed against docs/%s\n%s", command, file, got)
}

func (w *world) must(err error, what string, args ...any) {
	w.Helper()
	noError(w.T, err, what, args...)
}

func noError(tb testing.TB, err error, what string, args ...any) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%s: %v", fmt.Sprintf(what, args...), err)
	}
}

// until waits until a condition says "", and fails with what it said last and
// with the objects as they are.
func (w *world) until(what string, condition func(ctx context.Context) string, objects ...client.Object) {
	w.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(w.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == "", nil
	})
	if err != nil {
		w.Fatalf("%s: not within %v: %s\n%s", what, patience, last, w.show(objects...))
	}
}

// show returns objects as they are in the cluster.
func (w *world) show(objects ...client.Object) string {
	text := ""
	for _, object := range objects {
		if err := w.Get(context.Background(), client.ObjectKeyFromObject(object), object); err != nil {
			text += fmt.Sprintf("---\n%T %s: %v\n", object, client.ObjectKeyFromObject(object), err)
			continue
		}
		object.SetManagedFields(nil)
		manifest, err := yaml.Marshal(object)
		w.must(err, "show an object")
		text += fmt.Sprintf("---\n# %T\n%s", object, manifest)
	}
	return text
}
