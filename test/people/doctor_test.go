package people_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/doctor"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

// endedWithProblems is doctor's exit code where something is wrong.
const endedWithProblems = 19

// The policies of an installation are looked at with the rights of who asks: the
// administrator learns what stops nothing, the owner and the tenant that they do not
// see it, and nothing else.
func TestDoctorOfFences(t *testing.T) {
	t.Parallel()
	w := gateOff.world(t)
	labels := map[string]string{"app.kubernetes.io/name": "mooring", "app.kubernetes.io/instance": w.prefix}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace("system", nil), Name: w.prefix, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{ServiceAccountName: "mooring", Containers: []corev1.Container{{Name: "controller", Image: "registry.invalid/mooring"}}},
			},
		},
	}
	release := w.prefix + "." + deployment.Namespace
	unbound := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "fence-claims." + release},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"persistentvolumeclaims"}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: "true"}},
		},
	}
	for _, object := range []client.Object{deployment, unbound} {
		w.must(w.Create(t.Context(), object), "create %s", object.GetName())
		t.Cleanup(func() { _ = w.Delete(context.Background(), object) })
	}
	asAdmin := w.mooring(w.admin, "doctor", "-o", "json")
	w.says(asAdmin, endedWithProblems)
	var found struct{ Findings []doctor.Finding }
	w.must(json.Unmarshal([]byte(asAdmin.out), &found), "read the findings: %s", asAdmin)
	got := map[string]doctor.Finding{}
	for _, finding := range found.Findings {
		if purpose, ours := strings.CutSuffix(finding.Object, "."+release); ours {
			got[strings.TrimPrefix(purpose, "validatingadmissionpolicy/")] = finding
		}
	}
	if finding := got["fence-claims"]; finding.Level != doctor.Problem || finding.Message != "it is there and not bound, so that it stops nothing" {
		t.Errorf("a fence that is not bound: %+v", finding)
	}
	if finding := got["fence-volumes"]; finding.Level != doctor.Note || finding.Remedy != "set fences.enabled in the chart, unless it was turned off on purpose: docs/policies.md" {
		t.Errorf("a fence that is missing: %+v", finding)
	}
	for who, namespace := range map[person]string{w.owner: w.ownerNS, w.tenant: w.tenantNS} {
		answer := w.mooring(who, "doctor", "-n", namespace)
		w.says(answer, answer.code, "unseen  fences: not all that it looks at is visible to you")
		if strings.Contains(answer.out, release) {
			t.Errorf("%s learns of %s:\n%s", who.name, release, answer)
		}
	}
}

// What doctor finds is there, with its remedy, and what it may not see is said.
// The plane is shared, so that only what this test made is looked for.
func TestDoctor(t *testing.T) {
	t.Parallel()
	w := gateOff.world(t)
	o := w.origin(w.ownerNS, "data", granting(tenantsOnly))
	bound := w.mirror(w.tenantNS, "bound", o)
	w.isBound(bound)
	revoked := w.mirror(w.tenantNS, "revoked", w.origin(w.ownerNS, "lost", granting(tenantsOnly)))
	w.isBound(revoked)
	w.must(w.Get(t.Context(), client.ObjectKey{Namespace: w.ownerNS, Name: "lost"}, o.PersistentVolumeClaim), "get an origin")
	w.grantTo(o.PersistentVolumeClaim, "-")
	w.isSaid(revoked, mirror.NotShared)

	got := w.mooring(w.admin, "doctor", "-o", "json")
	var found struct {
		Provisioner string           `json:"provisioner"`
		Findings    []doctor.Finding `json:"findings"`
	}
	w.says(got, endedWithProblems)
	w.must(json.Unmarshal([]byte(got.out), &found), "read the findings: %s", got)
	by := map[string]doctor.Finding{}
	for _, finding := range found.Findings {
		by[finding.Check+" "+finding.Object] = finding
	}
	if finding := by["mirrors pvc/"+w.tenantNS+"/revoked"]; finding.Level != doctor.Problem || finding.Remedy != "mooring explain "+w.tenantNS+"/revoked" {
		t.Errorf("the revoked mirror: %+v", finding)
	}
	if _, sick := by["mirrors pvc/"+w.tenantNS+"/bound"]; sick {
		t.Errorf("a healthy mirror is a finding: %s", got)
	}
	if finding := by["references "]; finding.Level != doctor.Note {
		t.Errorf("that references are dropped: %+v", finding)
	}
	w.says(w.mooring(w.admin, "doctor"), endedWithProblems, "problem mirrors: pvc/"+w.tenantNS+"/revoked", "→ mooring explain", "ok      handles")

	// A tenant sees little, is told so, and gets no error for it.
	asTenant := w.mooring(w.tenant, "doctor", "-n", w.tenantNS)
	if asTenant.code != 0 && asTenant.code != endedWithProblems {
		t.Errorf("as tenant: %s", asTenant)
	}
	w.says(asTenant, asTenant.code, "note: not visible to you: persistentvolumeclaims of all namespaces, persistentvolumes")

	dir := t.TempDir()
	w.says(w.mooring(w.admin, "doctor", "--receipts", dir), 2, "holds no file *.json")
	w.must(os.WriteFile(filepath.Join(dir, "r.json"), []byte("{}"), 0o600), "write a receipt")
	w.says(w.mooring(w.admin, "doctor", "--receipts", dir), endedWithProblems, "receipts: "+filepath.Join(dir, "r.json"))
}
