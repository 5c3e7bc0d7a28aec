package people_test

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mooring-k8s/mooring/internal/cli"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

// answering runs a command with a person who answers.
func (w *world) answering(who person, answer string, args ...string) result {
	var out, errs bytes.Buffer
	env := cli.Env{In: strings.NewReader(answer), Out: &out, Err: &errs, Version: "test"}
	code := cli.Run(w.Context(), append(args, "--kubeconfig="+who.kubeconfig), env)
	return result{code, out.String(), errs.String()}
}

// says fails unless a result has this exit code and says all of this.
func (w *world) says(got result, code int, texts ...string) {
	w.Helper()
	if got.code != code {
		w.Fatalf("exit code %d, want %d\n%s", got.code, code, got)
	}
	for _, text := range texts {
		if !strings.Contains(got.out+got.err, text) {
			w.Errorf("expected %q in\n%s", text, got)
		}
	}
}

// grants returns the annotations of an origin as they are.
func (w *world) grants(o origin) map[string]string {
	w.Helper()
	w.must(w.Get(w.Context(), client.ObjectKeyFromObject(o), o.PersistentVolumeClaim), "get the origin")
	own := map[string]string{}
	for _, key := range []string{names.ReadWriteGrant(), names.ReadOnlyGrant(), names.GrantExpires()} {
		if value, ok := o.Annotations[key]; ok {
			own[key] = value
		}
	}
	return own
}

// An owner shares a claim, a tenant mirrors it, and the owner ends it again,
// each with one command and the rights of an editor of their own namespace.
func TestShareMirrorUnshare(t *testing.T) {
	t.Parallel()
	for gate, shared := range map[string]*shared{"gate on": gateOn, "gate off": gateOff} {
		t.Run(gate, func(t *testing.T) {
			t.Parallel()
			w := shared.world(t)
			o := w.origin(w.ownerNS, "data")
			at := w.ownerNS + "/data"
			w.says(w.mooring(w.owner, "share", at, "--with", tenantsOnly, "--yes"), 0, "persistentvolumeclaim/data changed", "you may not list namespaces")
			w.says(w.mooring(w.tenant, "mirror", at, "--into", w.tenantNS, "--name", "m", "--class", class), 0, "persistentvolumeclaim/m created", "bound to pvc-")
			claim := &corev1.PersistentVolumeClaim{}
			w.must(w.Get(t.Context(), client.ObjectKey{Namespace: w.tenantNS, Name: "m"}, claim), "get the mirror claim")
			if byReference := claim.Spec.DataSourceRef != nil; byReference != w.gateOn {
				t.Errorf("the claim has the reference: %t; the cluster keeps it: %t\n%s", byReference, w.gateOn, w.show(claim))
			}
			w.says(w.mooring(w.owner, "unshare", at, "--yes"), 0, "changed")
			w.isSaid(claim, mirror.NotShared)
			if got := w.grants(o); len(got) > 0 {
				t.Errorf("left after unshare: %v", got)
			}
			w.says(w.mooring(w.tenant, "mirror", at, "--into", w.tenantNS, "--name", "again", "--class", class), exitRefused, "NotShared", "mooring explain "+w.tenantNS+"/again")
		})
	}
}

// Who gains and who loses is told by name before anything is written, and
// nothing is written without a yes.
func TestShareShowsWhatItMeans(t *testing.T) {
	t.Parallel()
	w := gateOn.world(t)
	o := w.origin(w.ownerNS, "data")
	at, lab := w.ownerNS+"/data", "lab="+w.prefix
	one, two := w.namespace("one", map[string]string{"lab": w.prefix}), w.namespace("two", map[string]string{"lab": w.prefix, "guest": "yes"})
	for _, tc := range []struct {
		name, answer string
		args         []string
		code         int
		texts        []string
		want         map[string]string
	}{
		{"no answer", "", []string{"share", at, "--with", lab}, 2, []string{"Gain read-write access, 2 namespaces: " + one + ", " + two, "nothing was written"}, nil},
		{"no", "n\n", []string{"share", at, "--with", lab}, 2, []string{"Write this grant? [y/N]", "nothing was written"}, nil},
		{"client dry run", "", []string{"share", at, "--with", lab, "--dry-run=client", "-o", "yaml"}, 0, []string{"Gain read-write", names.ReadWriteGrant() + ": " + lab}, nil},
		{"server dry run", "", []string{"share", at, "--with", lab, "--dry-run=server"}, 0, []string{"changed (server dry run)"}, nil},
		{"a broken selector", "y\n", []string{"share", at, "--with", "(("}, 2, []string{"not a label selector"}, nil},
		{"only negative", "y\n", []string{"share", at, "--with", "!guest"}, 2, []string{"must not have"}, nil},
		{"yes", "y\n", []string{"share", at, "--with", lab}, 0, []string{"persistentvolumeclaim/data changed"}, map[string]string{names.ReadWriteGrant(): lab}},
		{"the same again", "", []string{"share", at, "--with", lab}, 0, []string{"shared like that already"}, map[string]string{names.ReadWriteGrant(): lab}},
		{"narrowed", "yes\n", []string{"share", at, "--with", lab + ",guest"}, 0, []string{"Lose access, 1 namespace: " + one}, map[string]string{names.ReadWriteGrant(): lab + ",guest"}},
		{"read-only besides", "y\n", []string{"share", at, "--with", lab, "--read-only", "--expires", "2099-01-01T00:00:00Z"}, 0,
			[]string{"Gain read-only access, 1 namespace: " + one},
			map[string]string{names.ReadWriteGrant(): lab + ",guest", names.ReadOnlyGrant(): lab, names.GrantExpires(): "2099-01-01T00:00:00Z"}},
		{"no time", "y\n", []string{"share", at, "--with", lab, "--expires", "tomorrow"}, 2, []string{"RFC 3339"}, nil},
		{"the read-write grant alone", "y\n", []string{"unshare", at, "--read-write"}, 0, []string{"Read-only instead of read-write, 1 namespace: " + two},
			map[string]string{names.ReadOnlyGrant(): lab, names.GrantExpires(): "2099-01-01T00:00:00Z"}},
		{"everybody", "y\n", []string{"share", at, "--with", "kubernetes.io/metadata.name"}, 0,
			[]string{"warning: every namespace of the cluster has access", "warning: system namespaces have access: default, kube-node-lease, kube-public, kube-system"}, nil},
		{"all of it", "y\n", []string{"unshare", at}, 0, []string{"Lose access"}, map[string]string{}},
		{"no such claim", "y\n", []string{"share", w.ownerNS + "/absent", "--with", lab}, exitNotFound, []string{"there is no claim " + w.ownerNS + "/absent"}, nil},
		{"no name", "y\n", []string{"share", "/", "--with", lab}, 2, []string{"expected NAMESPACE/CLAIM"}, nil},
		{"dry run of another kind", "y\n", []string{"share", at, "--with", lab, "--dry-run=maybe"}, 2, []string{"expected none, client or server"}, nil},
	} {
		before := w.grants(o)
		got := w.answering(w.admin, tc.answer, tc.args...)
		t.Log(tc.name)
		w.says(got, tc.code, tc.texts...)
		switch after := w.grants(o); {
		case tc.code != 0 || strings.Contains(strings.Join(tc.args, " "), "dry-run"):
			if !maps.Equal(before, after) {
				t.Errorf("%s: written: %v", tc.name, after)
			}
		case tc.want != nil && !maps.Equal(tc.want, after):
			t.Errorf("%s: got %v, want %v", tc.name, after, tc.want)
		}
	}
}

// What mirror prints can be applied, and what cannot be is refused with the next
// step.
func TestMirrorCommand(t *testing.T) {
	t.Parallel()
	w := gateOff.world(t)
	w.origin(w.ownerNS, "data", annotating(names.ReadOnlyGrant(), tenantsOnly))
	at := w.ownerNS + "/data"

	printed := w.mooring(w.tenant, "mirror", at, "--into", w.tenantNS, "--class", class, "--read-only", "--dry-run=client", "-o", "yaml")
	w.says(printed, 0)
	claim := &corev1.PersistentVolumeClaim{}
	w.must(yaml.UnmarshalStrict([]byte(printed.out), claim), "read what was printed: %s", printed)
	if claim.Annotations[names.Origin()] != at || claim.Spec.AccessModes[0] != corev1.ReadOnlyMany {
		t.Errorf("printed:\n%s", printed.out)
	}
	w.must(w.Create(t.Context(), claim), "create what was printed")
	w.isBound(claim)

	w.says(w.mooring(w.tenant, "mirror", at, "--into", w.tenantNS, "--class", class, "--name", "rw"), exitRefused, "GrantReadOnly", "mooring explain")
	w.says(w.mooring(w.tenant, "mirror", at, "--into", w.tenantNS, "--class", class, "--name", "later", "--wait=false"), 0, "created")
	w.says(w.mooring(w.tenant, "mirror", at, "--into", w.tenantNS, "--class", class, "--name", "dry", "--dry-run=server"), 0, "would be created (server dry run)")
	w.says(w.mooring(w.owner, "mirror", at, "--into", w.ownerNS, "--class", class), 2, "already: use it there directly")
	w.says(w.mooring(w.tenant, "mirror", at, "--into", w.tenantNS), 2, "--class") // may not list classes
	w.says(w.mooring(w.admin, "mirror", at, "--into", w.tenantNS, "--name", "by-admin", "--read-only"), 0, "bound to")

	pending := w.pendingOrigin(w.ownerNS, "pending", granting(tenantsOnly))
	w.says(w.mooring(w.tenant, "mirror", w.ownerNS+"/pending", "--into", w.tenantNS, "--class", class, "--timeout", "4s"), exitWaiting,
		"waits: origin "+w.ownerNS+"/pending is not bound yet", "is not bound after 4s")
	w.must(w.Delete(t.Context(), pending.PersistentVolumeClaim), "delete the origin")
	var dry corev1.PersistentVolumeClaim
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.tenantNS, Name: "dry"}, &dry); err == nil {
		t.Errorf("a dry run stored %s", w.show(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.tenantNS, Name: "dry"}}))
	}
}
