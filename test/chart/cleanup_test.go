package chart_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mooring-k8s/mooring/test/chart"
)

func cleanup(t *testing.T, o chart.Options) *chart.Hook {
	t.Helper()
	hook, err := chart.Cleanup(o)
	if err != nil || hook == nil {
		t.Fatalf("got the hook %v, %v", hook, err)
	}
	return hook
}

// Everything that the cleanup needs is there before it, and gone after it.
func TestCleanupIsAHook(t *testing.T) {
	hook := cleanup(t, chart.Options{Values: values(map[string]any{
		"podLabels": map[string]any{"a": "b"}, "podAnnotations": map[string]any{"a": "b"}, "nodeSelector": map[string]any{"a": "b"},
		"tolerations": []any{map[string]any{"key": "a", "operator": "Exists"}}, "affinity": map[string]any{"podAntiAffinity": map[string]any{}},
		"priorityClassName": "high", "image": map[string]any{"repository": "r", "pullSecrets": []any{map[string]any{"name": "pull"}}},
	})})
	var kinds []string
	for _, object := range hook.Objects {
		kinds = append(kinds, object.GetKind())
		if policy := object.GetAnnotations()["helm.sh/hook-delete-policy"]; policy != "before-hook-creation,hook-succeeded" {
			t.Errorf("%s %s is deleted %q", object.GetKind(), object.GetName(), policy)
		}
	}
	if want := []string{"ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding", "Job"}; !slices.Equal(kinds, want) {
		t.Errorf("Helm creates %v, want %v", kinds, want)
	}
	wellFormed(t, hook.Objects)
	pod := hook.Job.Spec.Template
	if pod.Spec.RestartPolicy != corev1.RestartPolicyNever || pod.Labels["a"] != "b" || pod.Annotations["a"] != "b" || pod.Spec.NodeSelector["a"] != "b" ||
		len(pod.Spec.Tolerations) != 1 || pod.Spec.PriorityClassName != "high" || len(pod.Spec.ImagePullSecrets) != 1 {
		t.Errorf("the Pod is not as the values say: %+v", pod)
	}

	none, err := chart.Cleanup(chart.Options{Values: values(map[string]any{"cleanup": map[string]any{"enabled": false}})})
	if err != nil || none != nil {
		t.Errorf("cleanup.enabled=false, but there is %v, %v", none, err)
	}
}

// Neither the Deployment nor the Service may take the cleanup's Pod for one of
// the controller's.
func TestCleanupIsNotSelected(t *testing.T) {
	o := chart.Options{Values: values(map[string]any{"metrics": map[string]any{"service": map[string]any{"create": true}}})}
	objects, pod := render(t, o), cleanup(t, o).Job.Spec.Template
	selector, err := metav1.LabelSelectorAsSelector(one[appsv1.Deployment](t, objects).Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []labels.Selector{selector, labels.SelectorFromSet(one[corev1.Service](t, objects).Spec.Selector)} {
		if s.Matches(labels.Set(pod.Labels)) {
			t.Errorf("%s selects the cleanup's Pod, which has %v", s, pod.Labels)
		}
	}
}

// The name of a Job stands in a label of its Pods, of at most 63 characters.
func TestCleanupOfALongRelease(t *testing.T) {
	job := cleanup(t, chart.Options{ReleaseName: strings.Repeat("r", 53), Values: values(nil)}).Job
	if len(job.Name) > 63 {
		t.Errorf("the Job's name has %d characters: %s", len(job.Name), job.Name)
	}
}

// The whole of what the cleanup may do.
func TestCleanupPermissions(t *testing.T) {
	hook := cleanup(t, chart.Options{Namespace: "storage", Values: values(nil)})
	account := rbacv1.Subject{Kind: "ServiceAccount", Name: "mooring-cleanup", Namespace: "storage"}

	clusterRole := one[rbacv1.ClusterRole](t, hook.Objects)
	expectRules(t, clusterRole.Rules, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"list", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"list"}},
	})
	clusterBinding := one[rbacv1.ClusterRoleBinding](t, hook.Objects)
	if clusterBinding.RoleRef.Name != clusterRole.Name || !slices.Equal(clusterBinding.Subjects, []rbacv1.Subject{account}) {
		t.Errorf("the ClusterRoleBinding gives %v to %v", clusterBinding.RoleRef, clusterBinding.Subjects)
	}
	role := one[rbacv1.Role](t, hook.Objects)
	lease := []string{"mooring.pmp.crownlabs.polito.it"}
	expectRules(t, role.Rules, []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: lease, Verbs: []string{"get", "update"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
	})
	binding := one[rbacv1.RoleBinding](t, hook.Objects)
	if binding.RoleRef.Name != role.Name || !slices.Equal(binding.Subjects, []rbacv1.Subject{account}) {
		t.Errorf("the RoleBinding gives %v to %v", binding.RoleRef, binding.Subjects)
	}
	if got := hook.Job.Spec.Template.Spec.ServiceAccountName; got != account.Name || hook.Job.Namespace != account.Namespace {
		t.Errorf("the Job runs as %q in %q", got, hook.Job.Namespace)
	}
}

func TestCleanupArguments(t *testing.T) {
	for _, tc := range []struct {
		name   string
		values map[string]any
		want   []string
	}{
		{"the defaults", nil, []string{"--provisioner-name=pmp.crownlabs.polito.it", "--instance=mooring", "--leader-elect=true"}},
		{"everything set", map[string]any{"provisionerName": "mirror.example.com", "cleanup": map[string]any{"allInstances": true}},
			[]string{"--provisioner-name=mirror.example.com", "--instance=mooring", "--leader-elect=true", "--all-instances"}},
		// Refused by the cleanup, since a Pod works that no lease stops.
		{"no leader election", map[string]any{"leaderElect": false, "replicas": 1},
			[]string{"--provisioner-name=pmp.crownlabs.polito.it", "--instance=mooring", "--leader-elect=false"}},
		{"no leader election, scaled to zero", map[string]any{"leaderElect": false, "replicas": 0},
			[]string{"--provisioner-name=pmp.crownlabs.polito.it", "--instance=mooring", "--leader-elect=false", "--stopped"}},
		{"scaled to zero", map[string]any{"replicas": 0},
			[]string{"--provisioner-name=pmp.crownlabs.polito.it", "--instance=mooring", "--leader-elect=true"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hook := cleanup(t, chart.Options{Values: values(tc.values)})
			want := slices.Concat([]string{"cleanup"}, tc.want, []string{"--timeout=4m"})
			if got := hook.Args(); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			if env := hook.Env(); !slices.Equal(env, []string{"POD_NAMESPACE=mooring-system"}) {
				t.Errorf("got the environment %q", env)
			}
			if len(all[batchv1.Job](t, hook.Objects)) != 1 || len(all[rbacv1.Role](t, hook.Objects)) > 0 != slices.Contains(want, "--leader-elect=true") {
				t.Errorf("rights on leases that do not fit %q", want)
			}
		})
	}
}
