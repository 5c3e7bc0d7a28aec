package chart_test

import (
	"context"
	"os"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

var plane = &controlplane.Shared{}

func TestMain(m *testing.M) { os.Exit(controlplane.Run(m, plane)) }

// A real API server takes every object of two releases side by side, and its
// authorizer gives the controllers' accounts what they need and no more.
func TestInstall(t *testing.T) {
	cp := plane.ForTest(t)
	admin, err := client.New(cp.Admin(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	production := chart.Options{Namespace: "mooring-production", Values: values(nil)}
	staging := chart.Options{ReleaseName: "staging", Namespace: "mooring-staging", Values: values(map[string]any{
		"class": map[string]any{"create": false},
	})}
	for _, release := range []chart.Options{production, staging, production} {
		objects := render(t, release)
		if err := chart.Apply(t.Context(), cp.Admin(), objects); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := chart.Remove(context.Background(), cp.Admin(), objects); err != nil {
				t.Error(err)
			}
		})
		hook := cleanup(t, release)
		if err := hook.Apply(t.Context(), cp.Admin()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := hook.Remove(context.Background(), cp.Admin()); err != nil {
				t.Error(err)
			}
		})
		for _, object := range append(objects, hook.Objects...) {
			if kind := object.GetKind(); kind != "Deployment" && kind != "Job" {
				continue
			}
			err := admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("test"), client.DryRunAll)
			if err != nil {
				t.Errorf("the API server refuses the %s: %v", object.GetKind(), err)
			}
		}
	}
	api, err := kubernetes.NewForConfig(cp.Admin())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range permissions {
		expectAccess(t, api, "system:serviceaccount:mooring-production:mooring", tc)
	}
	for _, tc := range cleanupPermissions {
		expectAccess(t, api, "system:serviceaccount:mooring-production:mooring-cleanup", tc)
	}
}

// A real API server, asked strictly, takes every object that any value renders: no
// unknown field, no expression that does not compile.
func TestEverythingIsTaken(t *testing.T) {
	cp := plane.ForTest(t)
	admin, err := client.New(cp.Admin(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mooring-everything"}}
	if err := admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Delete(context.Background(), namespace) })
	options := chart.Options{ReleaseName: "everything", Namespace: namespace.Name, Values: everything()}
	for _, object := range append(render(t, options), cleanup(t, options).Objects...) {
		if err := admin.Create(t.Context(), object.DeepCopy(), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
			t.Errorf("the API server refuses %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

type permission struct {
	allowed                    bool
	verb, group, resource, sub string
	namespace, name            string
}

var permissions = []permission{
	{true, "list", "", "persistentvolumeclaims", "", "", ""},
	{true, "watch", "", "persistentvolumes", "", "", ""},
	{true, "get", "", "namespaces", "", "", "team-a"},
	{true, "watch", "storage.k8s.io", "storageclasses", "", "", ""},
	{true, "watch", "storage.k8s.io", "csidrivers", "", "", ""},
	{true, "create", "", "persistentvolumes", "", "", ""},
	{true, "delete", "", "persistentvolumes", "", "", "pvc-1"},
	{false, "update", "", "persistentvolumes", "", "", "pvc-1"},
	{true, "patch", "", "persistentvolumes", "", "", "pvc-1"},
	{false, "deletecollection", "", "persistentvolumes", "", "", ""},
	{false, "patch", "", "persistentvolumes", "status", "", "pvc-1"},
	{true, "patch", "", "persistentvolumeclaims", "", "team-a", "data"},
	{true, "patch", "", "persistentvolumeclaims", "status", "team-a", "data"},
	{false, "update", "", "persistentvolumeclaims", "", "team-a", "data"},
	{false, "delete", "", "persistentvolumeclaims", "", "team-a", "data"},
	{false, "create", "", "persistentvolumeclaims", "", "team-a", ""},
	{true, "create", "", "persistentvolumeclaims", "", "mooring-production", ""},
	{false, "create", "", "persistentvolumeclaims", "", "mooring-staging", ""},
	{true, "create", "events.k8s.io", "events", "", "team-a", ""},
	{true, "patch", "events.k8s.io", "events", "", "team-a", "data.1"},
	{false, "create", "", "events", "", "team-a", ""},
	{true, "create", "", "events", "", "mooring-production", ""},
	{false, "list", "events.k8s.io", "events", "", "team-a", ""},
	{true, "create", "coordination.k8s.io", "leases", "", "mooring-production", ""},
	{true, "update", "coordination.k8s.io", "leases", "", "mooring-production", "mooring.pmp.crownlabs.polito.it"},
	{false, "update", "coordination.k8s.io", "leases", "", "mooring-production", "staging.pmp.crownlabs.polito.it"},
	{false, "delete", "coordination.k8s.io", "leases", "", "mooring-production", "mooring.pmp.crownlabs.polito.it"},
	{false, "create", "coordination.k8s.io", "leases", "", "kube-system", ""},
	{false, "create", "", "configmaps", "", "mooring-production", ""},
	{true, "update", "", "configmaps", "", "mooring-production", "mooring-brake"},
	{false, "patch", "", "configmaps", "", "mooring-production", "mooring-brake"},
	{false, "get", "", "configmaps", "", "mooring-production", "kube-root-ca.crt"},
	{false, "delete", "", "configmaps", "", "mooring-production", "mooring-brake"},
	{false, "get", "", "configmaps", "", "mooring-staging", "mooring-brake"},
	{false, "get", "", "secrets", "", "mooring-production", "any"},
	{false, "create", "", "pods", "", "mooring-production", ""},
	{false, "patch", "", "namespaces", "", "", "team-a"},
	{false, "update", "storage.k8s.io", "storageclasses", "", "", "pvc-mirror"},
	{false, "update", "rbac.authorization.k8s.io", "clusterroles", "", "", "mooring:mooring-production:mooring"},
}

var cleanupPermissions = []permission{
	{true, "list", "", "persistentvolumeclaims", "", "", ""},
	{true, "patch", "", "persistentvolumeclaims", "", "team-a", "data"},
	{false, "get", "", "persistentvolumeclaims", "", "team-a", "data"},
	{false, "watch", "", "persistentvolumeclaims", "", "", ""},
	{false, "update", "", "persistentvolumeclaims", "", "team-a", "data"},
	{false, "delete", "", "persistentvolumeclaims", "", "team-a", "data"},
	{false, "create", "", "persistentvolumeclaims", "", "mooring-production", ""},
	{false, "patch", "", "persistentvolumeclaims", "status", "team-a", "data"},
	{true, "list", "", "persistentvolumes", "", "", ""},
	{false, "patch", "", "persistentvolumes", "", "", "pvc-1"},
	{false, "delete", "", "persistentvolumes", "", "", "pvc-1"},
	{true, "create", "coordination.k8s.io", "leases", "", "mooring-production", ""},
	{true, "get", "coordination.k8s.io", "leases", "", "mooring-production", "mooring.pmp.crownlabs.polito.it"},
	{true, "update", "coordination.k8s.io", "leases", "", "mooring-production", "mooring.pmp.crownlabs.polito.it"},
	{false, "update", "coordination.k8s.io", "leases", "", "mooring-production", "staging.pmp.crownlabs.polito.it"},
	{false, "delete", "coordination.k8s.io", "leases", "", "mooring-production", "mooring.pmp.crownlabs.polito.it"},
	{false, "create", "events.k8s.io", "events", "", "team-a", ""},
	{false, "create", "", "configmaps", "", "mooring-production", ""},
	{false, "get", "", "namespaces", "", "", "team-a"},
	{false, "list", "storage.k8s.io", "storageclasses", "", "", ""},
}

func expectAccess(t *testing.T, api kubernetes.Interface, user string, p permission) {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   user,
		Groups: []string{"system:serviceaccounts", "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: p.verb, Group: p.group, Resource: p.resource, Subresource: p.sub, Namespace: p.namespace, Name: p.name,
		},
	}}
	answer, err := api.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if answer.Status.Allowed != p.allowed {
		t.Errorf("%s %s/%s %s of %q in %q: allowed %v, want %v (%s)", p.verb, p.resource, p.sub, p.group, p.name, p.namespace,
			answer.Status.Allowed, p.allowed, answer.Status.Reason)
	}
}
