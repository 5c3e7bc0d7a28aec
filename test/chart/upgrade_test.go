package chart_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const upgradedName, upgradedNamespace = "upgraded", "mooring-upgraded"

// An upgrade by Helm changes what a class does with revocations, adds and removes
// classes and the right that they need, and can be taken back. What a class cannot
// change is refused.
func TestUpgrade(t *testing.T) {
	cp := plane.ForTest(t)
	admin, err := client.New(cp.Admin(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &upgraded{T: t, admin: admin, helm: helm(t, cp.AdminKubeconfigFile(), upgradedNamespace)}
	r.install(map[string]any{"class": map[string]any{"name": "upgraded"}})
	r.classDoes("upgraded", "Report", "5m")
	r.mayDeleteClaims(false)

	if err := r.upgrade(map[string]any{
		"class":   map[string]any{"name": "upgraded", "onRevoke": "Delete", "revokeAfter": "1h"},
		"classes": []any{map[string]any{"name": "upgraded-readers", "access": "ReadOnly"}},
	}); err != nil {
		t.Fatal(err)
	}
	r.classDoes("upgraded", "Delete", "1h")
	r.classDoes("upgraded-readers", "Report", "5m")
	r.mayDeleteClaims(true)

	rollback := action.NewRollback(r.helm)
	rollback.Version, rollback.WaitStrategy, rollback.ServerSideApply = 1, kube.HookOnlyStrategy, "auto"
	if err := rollback.Run(upgradedName); err != nil {
		t.Fatal(err)
	}
	r.classDoes("upgraded", "Report", "5m")
	r.mayDeleteClaims(false)
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "upgraded-readers"}, &storagev1.StorageClass{}); !apierrors.IsNotFound(err) {
		t.Errorf("a class that the chart makes no more: %v", err)
	}

	err = r.upgrade(map[string]any{"class": map[string]any{"name": "upgraded", "access": "ReadOnly"}})
	if err == nil || !strings.Contains(err.Error(), `"upgraded" is invalid: parameters: Invalid value: null: field is immutable`) {
		t.Errorf("the access of a class is changed: %v", err)
	}
}

// upgraded is a release that Helm itself put into the control plane, where no
// Pods run.
type upgraded struct {
	*testing.T
	admin client.Client
	helm  *action.Configuration
}

func (r *upgraded) install(set map[string]any) {
	r.Helper()
	install := action.NewInstall(r.helm)
	install.ReleaseName, install.Namespace, install.CreateNamespace = upgradedName, upgradedNamespace, true
	install.WaitStrategy = kube.HookOnlyStrategy
	if _, err := install.Run(loadChart(r.T), values(set)); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		uninstall := action.NewUninstall(r.helm)
		uninstall.DisableHooks, uninstall.WaitStrategy = true, kube.HookOnlyStrategy
		if _, err := uninstall.Run(upgradedName); err != nil {
			r.Error(err)
		}
		if err := r.admin.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: upgradedNamespace}}); err != nil {
			r.Error(err)
		}
	})
}

func (r *upgraded) upgrade(set map[string]any) error {
	upgrade := action.NewUpgrade(r.helm)
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.ServerSideApply = upgradedNamespace, kube.HookOnlyStrategy, "auto"
	_, err := upgrade.Run(upgradedName, loadChart(r.T), values(set))
	return err
}

func (r *upgraded) classDoes(name, onRevoke, after string) {
	r.Helper()
	var class storagev1.StorageClass
	if err := r.admin.Get(r.Context(), client.ObjectKey{Name: name}, &class); err != nil {
		r.Fatal(err)
	}
	got := [2]string{class.Annotations["pmp.crownlabs.polito.it/on-revoke"], class.Annotations["pmp.crownlabs.polito.it/revoke-after"]}
	if want := [2]string{onRevoke, after}; got != want {
		r.Errorf("class %s: got %v, want %v", name, got, want)
	}
}

func (r *upgraded) mayDeleteClaims(want bool) {
	r.Helper()
	var role rbacv1.ClusterRole
	if err := r.admin.Get(r.Context(), client.ObjectKey{Name: "mooring:" + upgradedNamespace + ":" + upgradedName}, &role); err != nil {
		r.Fatal(err)
	}
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"delete"}}
	if got := slices.ContainsFunc(role.Rules, func(is rbacv1.PolicyRule) bool { return reflect.DeepEqual(is, rule) }); got != want {
		r.Errorf("may delete claims: %v, want %v", got, want)
	}
}
