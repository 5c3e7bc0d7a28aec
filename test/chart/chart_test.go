package chart_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/mooring-k8s/mooring/test/chart"
)

// values returns the least that the chart needs, and what the test adds to it.
func values(more map[string]any) map[string]any {
	all := map[string]any{"image": map[string]any{"repository": "registry.example.com/mooring"}}
	maps.Copy(all, more)
	return all
}

func render(t *testing.T, o chart.Options) []*unstructured.Unstructured {
	t.Helper()
	objects, err := chart.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// all returns the objects of T's kind.
func all[T any](t *testing.T, objects []*unstructured.Unstructured) []T {
	t.Helper()
	kind := reflect.TypeFor[T]().Name()
	var found []T
	for _, object := range objects {
		if object.GetKind() != kind {
			continue
		}
		var typed T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
			t.Fatal(err)
		}
		found = append(found, typed)
	}
	return found
}

func one[T any](t *testing.T, objects []*unstructured.Unstructured) T {
	t.Helper()
	found := all[T](t, objects)
	if len(found) != 1 {
		t.Fatalf("got %d objects of kind %s, want 1", len(found), reflect.TypeFor[T]().Name())
	}
	return found[0]
}

func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		name   string
		values map[string]any
		want   string
	}{
		{"no image", nil, "image.repository is not set, and there is no default: build the controller's image with `make image"},
		{"an empty image", map[string]any{"image": map[string]any{"repository": ""}}, "image.repository is not set"},
		{"a digest that is none", map[string]any{"image": map[string]any{"repository": "r", "digest": "sha256:short"}}, "/image/digest"},
		{"an unknown value", values(map[string]any{"provisoner": "x"}), "additional properties 'provisoner' not allowed"},
		{"an unknown value further in", values(map[string]any{"class": map[string]any{"colour": "x"}}), "additional properties 'colour' not allowed"},
		{"a provisioner name that is none", values(map[string]any{"provisionerName": "Mirror.example.com"}), "/provisionerName"},
		{"a provisioner name of Kubernetes", values(map[string]any{"provisionerName": "mirror.k8s.io"}), "/provisionerName"},
		{"a provisioner name that no class accepts", values(map[string]any{"provisionerName": strings.Repeat("a", 64)}), "/provisionerName"},
		{"an unknown access", values(map[string]any{"class": map[string]any{"access": "ReadOnce"}}), "/class/access"},
		{"an unknown answer to a revocation", values(map[string]any{"class": map[string]any{"onRevoke": "Evict"}}), "/class/onRevoke"},
		{"a delay that is none", values(map[string]any{"class": map[string]any{"revokeAfter": "soon"}}), "/class/revokeAfter"},
		{"a delay without unit", values(map[string]any{"class": map[string]any{"revokeAfter": "5"}}), "/class/revokeAfter"},
		{"a limit of revocations that is none", values(map[string]any{"maxRevocations": "5 %"}), "/maxRevocations"},
		{"a limit of revocations above all", values(map[string]any{"maxRevocations": "101%"}), "/maxRevocations"},
		{"a limit of revocations below nothing", values(map[string]any{"maxRevocations": -1}), "/maxRevocations"},
		{"an unknown way to adopt", values(map[string]any{"adopt": "maybe"}), "/adopt"},
		{"an unknown answer about unknown drivers", values(map[string]any{"unknownDrivers": "maybe"}), "/unknownDrivers"},
		{"root", values(map[string]any{"podSecurity": map[string]any{"runAsUser": 0}}), "/podSecurity/runAsUser"},
		{"labels that are the chart's", values(map[string]any{"podLabels": map[string]any{"app.kubernetes.io/name": "x"}}), "invalid propertyName 'app.kubernetes.io/name'"},
		{"two Pods without a leader", values(map[string]any{"leaderElect": false}), "leaderElect is false, but replicas is more than 1"},
		{"a Service for no metrics", values(map[string]any{"metrics": map[string]any{"enabled": false, "service": map[string]any{"create": true}}}), "nothing to scrape"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := chart.Render(chart.Options{Values: tc.values})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got error %v; want one with %q", err, tc.want)
			}
		})
	}
}

func TestOldClusterIsRefused(t *testing.T) {
	_, err := chart.Render(chart.Options{Values: values(nil), KubeVersion: "v1.25.16"})
	if err == nil || !strings.Contains(err.Error(), "needs Kubernetes >=1.26") {
		t.Fatalf("got error %v; want one that names the oldest version", err)
	}
}

// Every template, with every value that adds something, must be what the API
// knows: no unknown field, no doubled key.
func TestObjectsAreWellFormed(t *testing.T) {
	objects := render(t, chart.Options{Values: everything()})
	kinds := slices.Compact(wellFormed(t, objects))
	want := []string{"ClusterRole", "ClusterRoleBinding", "Deployment", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
		"NetworkPolicy", "PodDisruptionBudget", "Role", "RoleBinding", "Service", "ServiceAccount", "StorageClass", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	if !slices.Equal(kinds, want) {
		t.Errorf("got the kinds %v, want %v", kinds, want)
	}
	if want := "--namespace-selector=team in (a, b), !private # not a comment"; !slices.Contains(chart.ControllerArgs(objects), want) {
		t.Errorf("got the arguments %q, want %q among them", chart.ControllerArgs(objects), want)
	}
}

// everything is each value that adds something, with text that YAML and CEL would
// take for their own.
func everything() map[string]any {
	return values(map[string]any{
		"image": map[string]any{
			"repository":  "registry.example.com/mooring",
			"pullSecrets": []any{map[string]any{"name": "pull"}},
		},
		"class":   map[string]any{"access": "ReadOnly", "onRevoke": "Delete"},
		"classes": []any{map[string]any{"name": "readers", "access": "ReadOnly", "onRevoke": "Delete", "revokeAfter": "1h"}, map[string]any{"name": "least"}},
		"networkPolicy": map[string]any{"enabled": true, "metricsFrom": []any{map[string]any{"podSelector": map[string]any{}}},
			"apiServer": map[string]any{"cidrs": []any{"10.96.0.1/32"}}},
		"namespaceSelector":         "team in (a, b), !private # not a comment",
		"metrics":                   map[string]any{"service": map[string]any{"create": true, "annotations": map[string]any{"a": "b"}}},
		"podAnnotations":            map[string]any{"a": "b"},
		"podLabels":                 map[string]any{"a": "b"},
		"serviceAccountAnnotations": map[string]any{"a": "b"},
		"nodeSelector":              map[string]any{"a": "b"},
		"tolerations":               []any{map[string]any{"key": "a", "operator": "Exists"}},
		"affinity":                  map[string]any{"podAntiAffinity": map[string]any{}},
		"priorityClassName":         "high",
		"extraClassNames":           []any{"lab", "course-*"},
		"policies": map[string]any{
			"exemptGroups":    []any{"system:masters", `o'brien's "admins" \x`},
			"records":         map[string]any{"enabled": true, "action": "Audit"},
			"namespaceLabels": map[string]any{"protectedLabelKeys": []any{"team"}, "groups": []any{"g"}, "users": []any{`o'brien "u" \x`}},
		},
		"fences": map[string]any{"retainedUsers": []any{`o'brien "u" \x`}},
		"originGrants": []any{map[string]any{"name": "drives", "namespaceSelector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
			"claimSelector": map[string]any{"matchLabels": map[string]any{"a": "b"}}, "selector": "'team=' + // with a remark\n  \"a\"\n"}, map[string]any{"name": "readers", "access": "ReadOnly", "selector": "'team=b'"}},
	})
}

// wellFormed returns the kinds of objects, sorted.
func wellFormed(t *testing.T, objects []*unstructured.Unstructured) []string {
	t.Helper()
	var kinds []string
	for _, object := range objects {
		kinds = append(kinds, object.GetKind())
		typed, err := scheme.Scheme.New(object.GroupVersionKind())
		if err != nil {
			t.Fatal(err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// The whole of what the controller may do. A right more or less is a change of
// the contract with the cluster's administrator.
func TestPermissions(t *testing.T) {
	objects := render(t, chart.Options{Values: values(nil)})
	account := rbacv1.Subject{Kind: "ServiceAccount", Name: "mooring", Namespace: "mooring-system"}

	clusterRole := one[rbacv1.ClusterRole](t, objects)
	expectRules(t, clusterRole.Rules, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims", "persistentvolumes", "namespaces"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"storageclasses", "csidrivers"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"create", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"patch"}},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	})
	clusterBinding := one[rbacv1.ClusterRoleBinding](t, objects)
	if clusterBinding.RoleRef.Kind != "ClusterRole" || clusterBinding.RoleRef.Name != clusterRole.Name || !slices.Equal(clusterBinding.Subjects, []rbacv1.Subject{account}) {
		t.Errorf("the ClusterRoleBinding gives %v to %v", clusterBinding.RoleRef, clusterBinding.Subjects)
	}

	role := one[rbacv1.Role](t, objects)
	expectRules(t, role.Rules, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"mooring-brake"}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"mooring.pmp.crownlabs.polito.it"}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}},
	})
	binding := one[rbacv1.RoleBinding](t, objects)
	if binding.RoleRef.Kind != "Role" || binding.RoleRef.Name != role.Name || !slices.Equal(binding.Subjects, []rbacv1.Subject{account}) {
		t.Errorf("the RoleBinding gives %v to %v", binding.RoleRef, binding.Subjects)
	}
	if got := chart.ServiceAccountName(objects); got != account.Name || role.Namespace != account.Namespace || binding.Namespace != account.Namespace {
		t.Errorf("the Pods run as %q, the rights in %q are bound in %q", got, role.Namespace, binding.Namespace)
	}
}

func expectRules(t *testing.T, got, want []rbacv1.PolicyRule) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got the rules\n%v\nwant\n%v", got, want)
	}
}

// What must never be given, whatever values are set: said here once more, for
// the day on which somebody changes the list above.
func TestNoPermissionToDestroy(t *testing.T) {
	for _, set := range []map[string]any{
		nil, {"unknownDrivers": "share", "namespaceSelector": "a=b"}, {"leaderElect": false, "replicas": 1}, {"adopt": "Enforce", "maxRevocations": "0"},
	} {
		objects := append(render(t, chart.Options{Values: values(set)}), cleanup(t, chart.Options{Values: values(set)}).Objects...)
		var rules []rbacv1.PolicyRule
		for _, role := range all[rbacv1.ClusterRole](t, objects) {
			rules = append(rules, role.Rules...)
		}
		for _, role := range all[rbacv1.Role](t, objects) {
			rules = append(rules, role.Rules...)
		}
		for _, rule := range rules {
			everything := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs)
			if slices.Contains(everything, "*") {
				t.Errorf("a wildcard in %v", rule)
			}
			if slices.Contains(rule.Resources, "persistentvolumeclaims") &&
				(slices.Contains(rule.Verbs, "delete") || slices.Contains(rule.Verbs, "deletecollection") || slices.Contains(rule.Verbs, "update")) {
				t.Errorf("the right to delete or replace claims in %v", rule)
			}
			if slices.Contains(rule.Resources, "persistentvolumes") &&
				(slices.Contains(rule.Verbs, "update") || slices.Contains(rule.Verbs, "deletecollection")) {
				t.Errorf("the right to replace volumes, or to delete many at once, in %v", rule)
			}
			for _, resource := range []string{"secrets", "pods", "clusterroles", "roles"} {
				if slices.Contains(rule.Resources, resource) {
					t.Errorf("a right on %s in %v", resource, rule)
				}
			}
		}
	}
}

func TestNoLeaseWithoutElection(t *testing.T) {
	objects := render(t, chart.Options{Values: values(map[string]any{"leaderElect": false, "replicas": 1})})
	for _, rule := range one[rbacv1.Role](t, objects).Rules {
		if slices.Contains(rule.Resources, "leases") {
			t.Errorf("a right on leases that nobody needs: %v", rule)
		}
	}
	if deployment := one[appsv1.Deployment](t, objects); deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("without an election two Pods may run at once: strategy %q", deployment.Spec.Strategy.Type)
	}
}

func TestClass(t *testing.T) {
	class := one[storagev1.StorageClass](t, render(t, chart.Options{Values: values(map[string]any{"provisionerName": "mirror.example.com"})}))
	if class.Name != "pvc-mirror" || class.Provisioner != "mirror.example.com" {
		t.Errorf("got class %q of provisioner %q", class.Name, class.Provisioner)
	}
	if want := map[string]string{"access": "ReadWrite"}; !maps.Equal(class.Parameters, want) {
		t.Errorf("got the parameters %v, want %v", class.Parameters, want)
	}
	if class.AllowVolumeExpansion == nil || *class.AllowVolumeExpansion {
		t.Error("the class allows expansion, which Mooring refuses")
	}
	if class.Annotations["storageclass.kubernetes.io/is-default-class"] != "false" {
		t.Errorf("the class may be the cluster's default: annotations %v", class.Annotations)
	}
	expectRevocation(t, class, "Report", "5m")

	deleting := render(t, chart.Options{Values: values(map[string]any{
		"provisionerName": "mirror.example.com", "class": map[string]any{"onRevoke": "Delete", "revokeAfter": "1h30m"},
	})})
	expectRevocation(t, one[storagev1.StorageClass](t, deleting), "Delete", "1h30m")

	none := render(t, chart.Options{Values: values(map[string]any{"class": map[string]any{"create": false}})})
	if classes := all[storagev1.StorageClass](t, none); len(classes) > 0 {
		t.Errorf("class.create=false, but there is class %q", classes[0].Name)
	}
}

func expectRevocation(t *testing.T, class storagev1.StorageClass, onRevoke, after string) {
	t.Helper()
	if class.Annotations["mirror.example.com/on-revoke"] != onRevoke || class.Annotations["mirror.example.com/revoke-after"] != after {
		t.Errorf("got the annotations %v, want %s after %s", class.Annotations, onRevoke, after)
	}
}

// The right to delete claims is there only for a class that says so, of this
// chart or by the administrator's word.
func TestPermissionToDeleteClaims(t *testing.T) {
	deleting := map[string]any{"onRevoke": "Delete"}
	elsewhere := map[string]any{"onRevoke": "Delete", "create": false}
	for _, tc := range []struct {
		name   string
		values map[string]any
		want   bool
	}{
		{"the defaults", nil, false},
		{"a class that says Delete", map[string]any{"class": deleting}, true},
		{"a class that says Delete, but is not made", map[string]any{"class": elsewhere}, false},
		{"classes made elsewhere", map[string]any{"class": elsewhere, "allowClaimDeletion": true}, true},
		{"by word only", map[string]any{"allowClaimDeletion": true}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			objects := render(t, chart.Options{Values: values(tc.values)})
			for resource, rules := range map[string][]rbacv1.PolicyRule{
				"persistentvolumeclaims delete": one[rbacv1.ClusterRole](t, objects).Rules,
				"configmaps create":             one[rbacv1.Role](t, objects).Rules, // the record of what was deleted
			} {
				resource, verb, _ := strings.Cut(resource, " ")
				rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{verb}}
				got := slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return reflect.DeepEqual(r, rule) })
				if got != tc.want {
					t.Errorf("may %s %s: %v, want %v; the rules are %v", verb, resource, got, tc.want, rules)
				}
			}
		})
	}
}

func TestArguments(t *testing.T) {
	for _, tc := range []struct {
		name   string
		values map[string]any
		want   []string
	}{
		{"the defaults", nil, []string{
			"--provisioner-name=pmp.crownlabs.polito.it", "--instance=mooring", "--namespace-selector=", "--unknown-drivers=share",
			"--adopt=Report", "--max-revocations=20,5%", "--brake-configmap=mooring-brake",
			"--workers=16", "--kube-api-qps=0", "--kube-api-burst=0", "--metrics-bind-address=:8080",
			"--health-probe-bind-address=:8081", "--leader-elect=true", "--log-format=json", "--log-level=info",
		}},
		{"everything set", map[string]any{
			"provisionerName": "mirror.example.com", "namespaceSelector": "a=b,c", "unknownDrivers": "refuse", "workers": 1000000,
			"kubeAPI": map[string]any{"qps": 0.5, "burst": 3}, "metrics": map[string]any{"enabled": false},
			"leaderElect": false, "replicas": 1, "logging": map[string]any{"format": "text", "level": "debug"},
			"adopt": "Off", "maxRevocations": "5%",
		}, []string{
			"--provisioner-name=mirror.example.com", "--instance=mooring", "--namespace-selector=a=b,c", "--unknown-drivers=refuse",
			"--adopt=Off", "--max-revocations=5%", "--brake-configmap=mooring-brake",
			"--workers=1000000", "--kube-api-qps=0.5", "--kube-api-burst=3", "--metrics-bind-address=0",
			"--health-probe-bind-address=:8081", "--leader-elect=false", "--log-format=text", "--log-level=debug",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := chart.ControllerArgs(render(t, chart.Options{Values: values(tc.values)}))
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// `helm --set maxRevocations=…` makes a number of what is one.
func TestMaxRevocations(t *testing.T) {
	for value, want := range map[any]string{"20": "20", "5%,20": "5%,20", 20: "20", 2000000: "2000000", float64(3000000): "3000000", 0: "0"} {
		args := chart.ControllerArgs(render(t, chart.Options{Values: values(map[string]any{"maxRevocations": value})}))
		if !slices.Contains(args, "--max-revocations="+want) {
			t.Errorf("%v: got %q, want %s", value, args, want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	objects := render(t, chart.Options{Namespace: "storage", Values: values(nil)})
	want := []string{"POD_NAMESPACE=storage", "POD_NAME=mooring-0"}
	if got := chart.ControllerEnv(objects, "mooring-0"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestImage(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for _, tc := range []struct {
		name  string
		image map[string]any
		want  string
	}{
		{"the chart's own version", map[string]any{"repository": "r.example.com/m"}, "r.example.com/m:0.1.0"},
		{"a tag", map[string]any{"repository": "r.example.com/m", "tag": "v2"}, "r.example.com/m:v2"},
		{"a digest", map[string]any{"repository": "r.example.com/m", "tag": "v2", "digest": digest}, "r.example.com/m@" + digest},
	} {
		t.Run(tc.name, func(t *testing.T) {
			deployment := one[appsv1.Deployment](t, render(t, chart.Options{Values: map[string]any{"image": tc.image}}))
			if got := deployment.Spec.Template.Spec.Containers[0].Image; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Two releases live in one cluster: nothing that the whole cluster shares has
// the same name, but for the class, whose name its administrator chooses.
func TestReleasesAreDisjoint(t *testing.T) {
	releases := []chart.Options{
		{ReleaseName: "mooring", Namespace: "a"},
		{ReleaseName: "mooring", Namespace: "b"},
		{ReleaseName: "mooring-b", Namespace: "a"},
		{ReleaseName: "b", Namespace: "a-mooring"},
		{ReleaseName: "b", Namespace: "a"},
		{ReleaseName: "b.a", Namespace: "a"},
	}
	owner := map[string]string{}
	for _, release := range releases {
		release.Values = everything()
		release.Values["class"], release.Values["classes"] = map[string]any{"create": false}, []any{}
		for _, object := range append(render(t, release), cleanup(t, release).Objects...) {
			key := strings.Join([]string{object.GetKind(), object.GetNamespace(), object.GetName()}, " ")
			if other, taken := owner[key]; taken {
				t.Errorf("%s belongs to %s and to %s/%s", key, other, release.Namespace, release.ReleaseName)
			}
			owner[key] = release.Namespace + "/" + release.ReleaseName
		}
	}
}

func TestPodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, set := range []map[string]any{nil, {"podSecurity": map[string]any{"runAsUser": nil, "runAsGroup": nil}}} {
		pod := one[appsv1.Deployment](t, render(t, chart.Options{Values: values(set)})).Spec.Template
		job := cleanup(t, chart.Options{Values: values(set)}).Job.Spec.Template
		for _, pod := range []corev1.PodTemplateSpec{pod, job} {
			for _, result := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
				if !result.Allowed {
					t.Errorf("not restricted: %s: %s", result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
			if readOnly := pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem; readOnly == nil || !*readOnly {
				t.Error("the root file system can be written")
			}
		}
	}
}

// The Pods that the Deployment and the Service look for are those that it makes.
func TestSelectorsMatch(t *testing.T) {
	deployment := one[appsv1.Deployment](t, render(t, chart.Options{Values: values(map[string]any{"podLabels": map[string]any{"a": "b"}})}))
	selector, err := metav1.LabelSelectorAsMap(deployment.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	labels := deployment.Spec.Template.Labels
	for key, value := range selector {
		if labels[key] != value {
			t.Errorf("the selector wants %s=%s, the Pods have %v", key, value, labels)
		}
	}
	if labels["a"] != "b" {
		t.Errorf("podLabels are missing from %v", labels)
	}
}

func TestNotes(t *testing.T) {
	notes, err := chart.Notes(chart.Options{Values: values(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if want := "choose a name of your own domain now, before the first claim"; !strings.Contains(notes, want) {
		t.Errorf("the notes do not say %q:\n%s", want, notes)
	}
	deleting, err := chart.Notes(chart.Options{Values: values(map[string]any{"class": map[string]any{"onRevoke": "Delete"}})})
	if err != nil {
		t.Fatal(err)
	}
	if want := "are deleted 5m after their grant has"; strings.Contains(notes, want) || !strings.Contains(deleting, want) {
		t.Errorf("the notes do not follow the class's answer to a revocation:\n%s\n%s", notes, deleting)
	}
	own, err := chart.Notes(chart.Options{Values: values(map[string]any{"provisionerName": "mirror.example.com"})})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(own, "before the first claim") || !strings.Contains(own, "mirror.example.com/origin: ") {
		t.Errorf("the notes do not follow the chosen name:\n%s", own)
	}
}
