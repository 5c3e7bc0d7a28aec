package retain_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/internal/receipt"
	"github.com/mooring-k8s/mooring/internal/retain"
)

func rule(verbs, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: strings.Split(verbs, ","), ResourceNames: names}
}

// documented are the rules of examples/retain-rbac.yaml, to take one from.
func documented() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("get,list,create", "persistentvolumes"),
		rule("get", "persistentvolumeclaims"),
		rule("get", "namespaces", "kube-system"),
	}
}

// identity makes a user with a client certificate and these rules.
func (w *world) identity(rules []rbacv1.PolicyRule) string {
	w.Helper()
	user := "user-" + w.id
	options := metav1.CreateOptions{}
	w.must(w.admin.RbacV1().ClusterRoles().Create(w.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}, options))
	w.must(w.admin.RbacV1().ClusterRoleBindings().Create(w.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}, options))
	identity, err := w.plane.User(w.Context(), user)
	if err != nil {
		w.Fatal(err)
	}
	file := w.file("user.kubeconfig")
	if err := identity.WriteKubeconfig(file); err != nil {
		w.Fatal(err)
	}
	// RBAC reaches the authorizer through a watch.
	w.eventually("the rights of "+user, func() (any, bool) {
		r := w.run(file, "preview", w.write(w.volume("probe")))
		return r, !strings.Contains(r.err, "/namespaces/kube-system")
	})
	return file
}

// One right more than the documented ones is refused, and named exactly.
func TestOneRightMore(t *testing.T) {
	for _, tc := range []struct {
		name  string
		extra func(w *world) rbacv1.PolicyRule
		want  string // in the receipt's list of excess rights
	}{
		{"update", func(*world) rbacv1.PolicyRule { return rule("update", "persistentvolumes") }, "update persistentvolumes"},
		{"patch", func(*world) rbacv1.PolicyRule { return rule("patch", "persistentvolumes") }, "patch persistentvolumes"},
		{"delete", func(*world) rbacv1.PolicyRule { return rule("delete", "persistentvolumes") }, "delete persistentvolumes"},
		{"deletecollection", func(*world) rbacv1.PolicyRule { return rule("deletecollection", "persistentvolumes") }, "deletecollection persistentvolumes"},
		{"everything", func(*world) rbacv1.PolicyRule { return rule("*", "persistentvolumes") }, "* persistentvolumes"},
		{"every resource", func(*world) rbacv1.PolicyRule { return rule("delete", "*") }, "delete *"},
		{"status", func(*world) rbacv1.PolicyRule { return rule("patch", "persistentvolumes/status") }, "patch persistentvolumes/status"},
		{"every status", func(*world) rbacv1.PolicyRule { return rule("update", "*/status") }, "update */status"},
		{"this volume by name", func(w *world) rbacv1.PolicyRule { return rule("delete", "persistentvolumes", w.volumeName("v")) }, "delete persistentvolumes {v}"},
		{"its status by name", func(w *world) rbacv1.PolicyRule { return rule("update", "persistentvolumes/status", w.volumeName("v")) }, "update persistentvolumes/status {v}"},
		{"another volume by name", func(*world) rbacv1.PolicyRule { return rule("patch", "persistentvolumes", "another") }, "patch persistentvolumes another"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			kubeconfig := w.identity(append(documented(), tc.extra(w)))
			want := strings.ReplaceAll(tc.want, "{v}", w.volumeName("v"))
			manifest := w.write(w.volume("v"))

			file := w.file("refused.json")
			r := w.run(kubeconfig, "preview", manifest, "-o", file)
			w.want(r, retain.PermissionExcess)
			if record := w.receipt(file); !slices.Contains(record.Permissions.Excess, want) || !strings.Contains(r.err, want) || record.PlanDigest != "" {
				t.Fatalf("want %q in %q and in %s", want, record.Permissions.Excess, r.err)
			}

			file = w.file("allowed.json")
			w.want(w.run(kubeconfig, "preview", manifest, "-o", file, "--allow-excess-permissions"), "")
			if record := w.receipt(file); !record.Permissions.ExcessAllowed || record.Outcome != receipt.WouldCreate {
				t.Fatalf("got %+v", record)
			}
		})
	}
}

// One right less is refused, and named exactly.
func TestOneRightLess(t *testing.T) {
	without := func(i int, rules ...rbacv1.PolicyRule) []rbacv1.PolicyRule {
		return append(slices.Delete(documented(), i, i+1), rules...)
	}
	for _, tc := range []struct {
		name  string
		rules []rbacv1.PolicyRule
		want  string
	}{
		{"get volumes", without(0, rule("list,create", "persistentvolumes")), "may not get persistentvolumes"},
		{"list volumes", without(0, rule("get,create", "persistentvolumes")), "may not list persistentvolumes"},
		{"create volumes", without(0, rule("get,list", "persistentvolumes")), "may not create persistentvolumes"},
		{"get claims", without(1), "may not get persistentvolumeclaims"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			r := w.run(w.identity(tc.rules), "preview", w.write(w.volume("v")))
			w.want(r, retain.PermissionMissing)
			if !strings.Contains(r.err, tc.want) {
				t.Fatalf("want %q in %s", tc.want, r.err)
			}
		})
	}
	t.Run("get kube-system", func(t *testing.T) {
		w := newWorld(t)
		identity, err := w.plane.User(t.Context(), "nobody-"+w.id)
		if err != nil {
			t.Fatal(err)
		}
		file := w.file("kubeconfig")
		if err := identity.WriteKubeconfig(file); err != nil {
			t.Fatal(err)
		}
		r := w.run(file, "preview", w.write(w.volume("v")))
		w.want(r, retain.PermissionMissing)
		if !strings.Contains(r.err, "may not get namespaces kube-system") {
			t.Fatal(r.err)
		}
	})
	// A volume that is unchanged needs no create; the right is asked for all the same.
	t.Run("create volumes, unchanged", func(t *testing.T) {
		w := newWorld(t)
		w.make(w.volume("v"))
		r := w.run(w.identity(without(0, rule("get,list", "persistentvolumes"))), "preview", w.write(w.volume("v")))
		w.want(r, retain.PermissionMissing)
	})
	t.Run("credentials that are not accepted", func(t *testing.T) {
		w := newWorld(t)
		p := w.proxy(nil)
		r := w.run(p.kubeconfig("not-a-token"), "preview", w.write(w.volume("v")))
		w.want(r, retain.PermissionMissing)
		if !strings.Contains(r.err, "does not accept the credentials") {
			t.Fatal(r.err)
		}
	})
}
