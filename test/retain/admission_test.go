package retain_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/internal/receipt"
	"github.com/mooring-k8s/mooring/internal/retain"
)

// match makes a policy look at this test's volumes only.
func (w *world) match() (*admissionv1.MatchResources, []admissionv1.MatchCondition) {
	return &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"persistentvolumes"}},
		}}}},
		[]admissionv1.MatchCondition{{Name: "mine", Expression: `object.metadata.name.startsWith("` + w.id + `-")`}}
}

// mutate makes a MutatingAdmissionPolicy that adds a label under a condition.
func (w *world) mutate(condition string) {
	w.Helper()
	_, err := w.admin.AdmissionregistrationV1().MutatingAdmissionPolicies().List(w.Context(), metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		w.Skip("MutatingAdmissionPolicy is served as v1 from Kubernetes 1.36 on")
	}
	resources, conditions := w.match()
	conditions = append(conditions, admissionv1.MatchCondition{Name: "when", Expression: condition})
	w.must(w.admin.AdmissionregistrationV1().MutatingAdmissionPolicies().Create(w.Context(), &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.id},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: resources, MatchConditions: conditions, ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			Mutations: []admissionv1.Mutation{{
				PatchType:          admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: `Object{metadata: Object.metadata{labels: {"added": "by-admission"}}}`},
			}},
		},
	}, metav1.CreateOptions{}))
	w.must(w.admin.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().Create(w.Context(), &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.id},
		Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: w.id},
	}, metav1.CreateOptions{}))
}

// forbid makes a ValidatingAdmissionPolicy that refuses under a condition.
func (w *world) forbid(condition string) {
	w.Helper()
	resources, conditions := w.match()
	fail := admissionv1.Fail
	w.must(w.admin.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(w.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.id},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: resources, MatchConditions: conditions, FailurePolicy: &fail,
			Validations: []admissionv1.Validation{{Expression: "!(" + condition + ")", Message: "no such volumes here"}},
		},
	}, metav1.CreateOptions{}))
	w.must(w.admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(w.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.id},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: w.id, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{}))
}

const isDryRun = "has(request.dryRun) && request.dryRun"

// effective waits until a policy acts, judged by the administrator's own create.
func (w *world) effective(dryRun bool, acts func(*corev1.PersistentVolume, error) bool) {
	w.Helper()
	w.eventually("the policy", func() (any, bool) {
		probe := w.volumeName("probe")
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: probe}, Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{"storage": *quantity("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "probe", Path: "/" + w.id}},
		}}
		var options metav1.CreateOptions
		if dryRun {
			options.DryRun = []string{metav1.DryRunAll}
		}
		made, err := w.admin.CoreV1().PersistentVolumes().Create(w.Context(), pv, options)
		if err == nil && !dryRun {
			w.removeVolume(w.Context(), probe)
		}
		return err, acts(made, err)
	})
}

func added(pv *corev1.PersistentVolume, err error) bool {
	return err == nil && pv.Labels["added"] != ""
}
func refused(_ *corev1.PersistentVolume, err error) bool {
	return err != nil && strings.Contains(err.Error(), "no such volumes here")
}

func TestAdmissionAddsAField(t *testing.T) {
	w := newWorld(t)
	w.mutate("true")
	w.effective(true, added)
	_, r := w.preview(w.volume("v"))
	w.want(r, retain.DryRunChanged)
	if !strings.Contains(r.err, "metadata.labels.added") {
		t.Fatal(r.err)
	}
	// Written into the manifest, it is reviewed.
	_, r = w.preview(w.volume("v", change{"metadata/labels/added": "by-admission"}))
	w.want(r, "")
}

func TestAdmissionRefusesDryRuns(t *testing.T) {
	w := newWorld(t)
	w.forbid(isDryRun)
	w.effective(true, refused)
	_, r := w.preview(w.volume("v"))
	w.want(r, retain.DryRunRefused)
	file := w.file("receipt.json")
	w.want(w.mooring("create", w.write(w.volume("v")), "-o", file, "--without-approval"), retain.DryRunRefused)
	if w.live("v") != nil {
		t.Fatal("created although the dry run was refused")
	}
}

// Admission that lets the dry run pass and treats the real create otherwise.
func TestAdmissionDiffersFromItsDryRun(t *testing.T) {
	t.Run("adds", func(t *testing.T) {
		w := newWorld(t)
		w.mutate("!(" + isDryRun + ")")
		w.effective(false, added)
		preview, r := w.preview(w.volume("v"))
		w.want(r, "")
		record, r := w.create(w.volume("v"), preview.PlanDigest)
		w.want(r, retain.CreatedNeedsReview)
		if record.Outcome != receipt.NeedsReview || !strings.Contains(r.err, "metadata.labels.added") {
			t.Fatalf("got %+v", record)
		}
	})
	t.Run("refuses", func(t *testing.T) {
		w := newWorld(t)
		w.forbid("!(" + isDryRun + ")")
		w.effective(false, refused)
		preview, r := w.preview(w.volume("v"))
		w.want(r, "")
		_, r = w.create(w.volume("v"), preview.PlanDigest)
		w.want(r, retain.CreateRefused)
		if w.live("v") != nil {
			t.Fatal("created")
		}
	})
}
