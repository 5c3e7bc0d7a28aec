package doctor_test

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mooring-k8s/mooring/internal/doctor"
)

const guarded = ".mooring.mooring-system"

// guardPolicies returns policies as the chart installs them.
func guardPolicies(purposes ...string) []admissionv1.ValidatingAdmissionPolicy {
	var policies []admissionv1.ValidatingAdmissionPolicy
	for _, purpose := range purposes {
		policy := admissionv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: purpose + guarded},
			Spec:       admissionv1.ValidatingAdmissionPolicySpec{FailurePolicy: ptr.To(admissionv1.Fail)},
		}
		if strings.HasPrefix(purpose, "fence-") {
			policy.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: "is-mooring",
				Expression: `request.userInfo.username in ["system:serviceaccount:mooring-system:mooring", "system:serviceaccount:mooring-system:mooring-cleanup"]`}}
		}
		policies = append(policies, policy)
	}
	return policies
}

func guardBindings(purposes ...string) []admissionv1.ValidatingAdmissionPolicyBinding {
	var bindings []admissionv1.ValidatingAdmissionPolicyBinding
	for _, purpose := range purposes {
		bindings = append(bindings, admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: purpose + guarded},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: purpose + guarded, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			},
		})
	}
	return bindings
}

// policyOf and bindingOf return the one of a purpose, to be changed.
func policyOf(p *doctor.Patient, purpose string) *admissionv1.ValidatingAdmissionPolicy {
	return &p.Policies[slices.IndexFunc(p.Policies, func(one admissionv1.ValidatingAdmissionPolicy) bool { return one.Name == purpose+guarded })]
}

func bindingOf(p *doctor.Patient, purpose string) *admissionv1.ValidatingAdmissionPolicyBinding {
	return &p.Bindings[slices.IndexFunc(p.Bindings, func(one admissionv1.ValidatingAdmissionPolicyBinding) bool { return one.Name == purpose+guarded })]
}

func unguarded(p *doctor.Patient, purpose string, policy, binding bool) {
	if policy {
		p.Policies = slices.DeleteFunc(p.Policies, func(one admissionv1.ValidatingAdmissionPolicy) bool { return one.Name == purpose+guarded })
	}
	if binding {
		p.Bindings = slices.DeleteFunc(p.Bindings, func(one admissionv1.ValidatingAdmissionPolicyBinding) bool { return one.Name == purpose+guarded })
	}
}

// What of the chart's policies and fences is missing, holds nobody or lets pass is
// found: by one change to a cluster where all are as they should be.
func TestFences(t *testing.T) {
	const upgrade = "helm upgrade mooring --namespace mooring-system makes it as the chart has it"
	for _, tc := range []struct {
		name   string
		change func(*doctor.Patient)
		want   []doctor.Finding
	}{
		{"all as they should be", func(*doctor.Patient) {}, nil},
		{"no installation", func(p *doctor.Patient) { p.Deployments, p.Policies, p.Bindings = nil, nil, nil }, nil},
		{"not to be seen", func(p *doctor.Patient) {
			p.Policies, p.Bindings, p.Hidden = nil, nil, []string{"validatingadmissionpolicies"}
		}, nil},
		{"a cluster without such policies", func(p *doctor.Patient) { p.Policies, p.Bindings, p.NoPolicies = nil, nil, true }, []doctor.Finding{{
			Level: doctor.Note, Message: "the API server has no ValidatingAdmissionPolicies: neither the chart's policies nor the fences of its accounts are there",
			Remedy: "docs/security.md says what each would have stopped; after an upgrade to Kubernetes 1.30 or later, helm upgrade installs them"}}},
		{"a fence is not installed", func(p *doctor.Patient) { unguarded(p, "fence-volumes", true, true) }, []doctor.Finding{{
			Level: doctor.Note, Object: "fence-volumes", Message: "it is not installed: whoever gets hold of the controller's token can make, change and delete any volume",
			Remedy: "set fences.enabled in the chart, unless it was turned off on purpose: docs/policies.md"}}},
		{"the other fence is not installed", func(p *doctor.Patient) { unguarded(p, "fence-claims", true, true) }, []doctor.Finding{{
			Level: doctor.Note, Object: "fence-claims", Message: "it is not installed: whoever gets hold of the controller's token can change other people's claims as far as its role goes",
			Remedy: "set fences.enabled in the chart, unless it was turned off on purpose: docs/policies.md"}}},
		{"a policy is not installed", func(p *doctor.Patient) { unguarded(p, "clones", true, true) }, []doctor.Finding{{
			Level: doctor.Note, Object: "clones", Message: "it is not installed: a clone of a mirror is a copy that outlives the grant",
			Remedy: "set policies.copies.enabled in the chart, unless it was turned off on purpose: docs/policies.md"}}},
		{"a fence is not bound", func(p *doctor.Patient) { unguarded(p, "fence-claims", false, true) }, []doctor.Finding{{
			Level: doctor.Problem, Object: "fence-claims", Message: "it is there and not bound, so that it stops nothing", Remedy: upgrade}}},
		{"a fence is bound and gone", func(p *doctor.Patient) { unguarded(p, "fence-claims", true, false) }, []doctor.Finding{{
			Level: doctor.Problem, Object: "fence-claims", Message: "it is bound and not there, so that it stops nothing", Remedy: upgrade}}},
		{"a policy that was asked for is not bound", func(p *doctor.Patient) { p.Policies = append(p.Policies, guardPolicies("records")...) }, []doctor.Finding{{
			Level: doctor.Problem, Object: "records", Message: "it is there and not bound, so that it stops nothing", Remedy: upgrade}}},
		{"a policy that was asked for", func(p *doctor.Patient) {
			p.Policies, p.Bindings = append(p.Policies, guardPolicies("namespace-labels")...), append(p.Bindings, guardBindings("namespace-labels")...)
		}, nil},
		{"the fence of retained identities, which names others", func(p *doctor.Patient) {
			p.Policies, p.Bindings = append(p.Policies, guardPolicies("fence-retained")...), append(p.Bindings, guardBindings("fence-retained")...)
			policyOf(p, "fence-retained").Spec.MatchConditions[0].Expression = `request.userInfo.username in ["alice"]`
		}, nil},
		{"a fence that only warns", func(p *doctor.Patient) {
			bindingOf(p, "fence-volumes").Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn, admissionv1.Audit}
		}, []doctor.Finding{{
			Level: doctor.Problem, Object: "fence-volumes", Message: "it does not deny, it has the action Warn and Audit", Remedy: upgrade}}},
		{"a policy that only warns", func(p *doctor.Patient) {
			bindingOf(p, "grants").Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn}
		}, []doctor.Finding{{
			Level: doctor.Note, Object: "grants", Message: "it stops nothing, its action is Warn",
			Remedy: "once nobody is warned any more who should not be, set its action to Deny in the chart"}}},
		{"a binding that was narrowed", func(p *doctor.Patient) {
			bindingOf(p, "fence-claims").Spec.MatchResources = &admissionv1.MatchResources{}
		}, []doctor.Finding{{
			Level: doctor.Problem, Object: "fence-claims", Message: "its binding is narrowed by matchResources: elsewhere it stops nothing", Remedy: upgrade}}},
		{"a fence that lets pass what it cannot evaluate", func(p *doctor.Patient) {
			policyOf(p, "fence-claims").Spec.FailurePolicy = ptr.To(admissionv1.Ignore)
		}, []doctor.Finding{{
			Level: doctor.Problem, Object: "fence-claims", Message: "its failurePolicy is Ignore: it lets pass what it cannot evaluate", Remedy: upgrade}}},
		{"an account that the fence does not name", func(p *doctor.Patient) {
			p.Deployments[0].Spec.Template.Spec.ServiceAccountName = "another"
			unguarded(p, "fence-volumes", true, true)
			p.Policies, p.Bindings = append(p.Policies, guardPolicies("fence-volumes")...), append(p.Bindings, guardBindings("fence-volumes")...)
			policyOf(p, "fence-volumes").Spec.MatchConditions[0].Expression = `request.userInfo.username in ["system:serviceaccount:mooring-system:another"]`
		}, []doctor.Finding{{
			Level: doctor.Problem, Object: "fence-claims", Message: "it does not hold system:serviceaccount:mooring-system:another, which is who the Pods run as", Remedy: upgrade}}},
		{"expressions that do not fit the API", func(p *doctor.Patient) {
			policyOf(p, "grants").Status.TypeChecking = &admissionv1.TypeChecking{ExpressionWarnings: []admissionv1.ExpressionWarning{
				{FieldRef: "spec.validations[0].expression", Warning: "undefined field 'x'"}}}
		}, []doctor.Finding{{
			Level: doctor.Note, Object: "grants", Message: "its expressions do not fit what the API server knows: spec.validations[0].expression: undefined field 'x'",
			Remedy: "see whether the chart of another version fits this cluster; report it if there is none"}}},
		{"a second installation without any", func(p *doctor.Patient) {
			second := p.Deployments[0].DeepCopy()
			second.Namespace = "staging"
			p.Deployments, p.Leases = append(p.Deployments, *second), append(p.Leases, *p.Leases[0].DeepCopy())
			p.Leases[1].Namespace = "staging"
			p.Policies, p.Bindings = append(p.Policies, staged(guardPolicies("fence-claims", "fence-volumes", "grants", "snapshots", "clones"))...), append(p.Bindings, stagedBindings(second)...)
		}, []doctor.Finding{{
			Level: doctor.Note, Object: "mirror-claims.mooring.staging", Message: "it is not installed: the origin that a claim names can be edited, which misleads who reads it",
			Remedy: "set policies.mirrorClaims.enabled in the chart, unless it was turned off on purpose: docs/policies.md"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := healthy()
			tc.change(p)
			var got []doctor.Finding
			for _, finding := range p.Findings(now) {
				if finding.Check == "fences" {
					got = append(got, finding)
				}
			}
			for i := range tc.want {
				tc.want[i].Check = "fences"
				if object := tc.want[i].Object; object != "" && !strings.Contains(object, ".") {
					tc.want[i].Object += guarded
				}
				if tc.want[i].Object != "" {
					tc.want[i].Object = "validatingadmissionpolicy/" + tc.want[i].Object
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("found %+v, want %+v", got, tc.want)
			}
		})
	}
}

// staged returns policies as the same release has them in namespace staging.
func staged(policies []admissionv1.ValidatingAdmissionPolicy) []admissionv1.ValidatingAdmissionPolicy {
	for i := range policies {
		policies[i].Name = strings.TrimSuffix(policies[i].Name, guarded) + ".mooring.staging"
		for j := range policies[i].Spec.MatchConditions {
			condition := &policies[i].Spec.MatchConditions[j]
			condition.Expression = strings.ReplaceAll(condition.Expression, "mooring-system", "staging")
		}
	}
	return policies
}

func stagedBindings(of *appsv1.Deployment) []admissionv1.ValidatingAdmissionPolicyBinding {
	bindings := guardBindings("fence-claims", "fence-volumes", "grants", "snapshots", "clones")
	for i := range bindings {
		name := strings.TrimSuffix(bindings[i].Name, guarded) + ".mooring." + of.Namespace
		bindings[i].Name, bindings[i].Spec.PolicyName = name, name
	}
	return bindings
}
