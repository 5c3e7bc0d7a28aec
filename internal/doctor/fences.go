package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
)

// guard is an admission policy that the chart installs, named by its purpose, the
// release and its namespace.
type guard struct {
	purpose string
	// value is the chart's, and without what is not stopped while it is missing;
	// "" for one that is there only where it was asked for.
	value, without string
	// isFence is whether it holds Mooring's own accounts.
	isFence bool
}

var guards = []guard{
	{"fence-claims", "fences.enabled", "whoever gets hold of the controller's token can change other people's claims as far as its role goes", true},
	{"fence-volumes", "fences.enabled", "whoever gets hold of the controller's token can make, change and delete any volume", true},
	{"fence-retained", "", "", false},
	{"grants", "policies.grants.enabled", "a grant that lets in nobody is stored, and its owner learns of it only by an event", false},
	{"snapshots", "policies.copies.enabled", "a snapshot of a mirror is a copy that outlives the grant", false},
	{"clones", "policies.copies.enabled", "a clone of a mirror is a copy that outlives the grant", false},
	{"mirror-claims", "policies.mirrorClaims.enabled", "the origin that a claim names can be edited, which misleads who reads it", false},
	{"finalizers", "", "", false},
	{"records", "", "", false},
	{"namespace-labels", "", "", false},
}

// fences finds, for each installation, what of the chart's policies and fences is
// missing, holds nobody, or lets pass what it is about.
func fences(p *Patient, _ time.Time) []Finding {
	if len(p.Deployments) == 0 || p.isHidden("validatingadmissionpolicies") {
		return nil
	}
	if p.NoPolicies {
		return []Finding{note("", "docs/security.md says what each would have stopped; after an upgrade to Kubernetes 1.30 or later, helm upgrade installs them",
			"the API server has no ValidatingAdmissionPolicies: neither the chart's policies nor the fences of its accounts are there")}
	}
	var found []Finding
	for i := range p.Deployments {
		for _, guard := range guards {
			found = append(found, p.guarded(&p.Deployments[i], guard)...)
		}
	}
	return found
}

// guarded looks at one policy of an installation, and at its bindings.
func (p *Patient) guarded(of *appsv1.Deployment, guard guard) []Finding {
	name := guard.purpose + "." + of.Labels["app.kubernetes.io/instance"] + "." + of.Namespace
	object := "validatingadmissionpolicy/" + name
	upgrade := "helm upgrade " + of.Labels["app.kubernetes.io/instance"] + " --namespace " + of.Namespace + " makes it as the chart has it"
	policy := slices.IndexFunc(p.Policies, func(policy admissionv1.ValidatingAdmissionPolicy) bool { return policy.Name == name })
	var bindings []admissionv1.ValidatingAdmissionPolicyBinding
	for _, binding := range p.Bindings {
		if binding.Spec.PolicyName == name {
			bindings = append(bindings, binding)
		}
	}
	switch {
	case policy < 0 && len(bindings) == 0 && guard.value == "":
		return nil
	case policy < 0 && len(bindings) == 0:
		return []Finding{note(object, "set "+guard.value+" in the chart, unless it was turned off on purpose: docs/policies.md", "it is not installed: %s", guard.without)}
	case policy < 0:
		return []Finding{problem(object, upgrade, "it is bound and not there, so that it stops nothing")}
	case len(bindings) == 0:
		return []Finding{problem(object, upgrade, "it is there and not bound, so that it stops nothing")}
	}
	return append(edited(&p.Policies[policy], guard, of, upgrade), weak(bindings, guard, object, upgrade)...)
}

// edited finds what somebody changed in a policy, or what does not fit it.
func edited(policy *admissionv1.ValidatingAdmissionPolicy, guard guard, of *appsv1.Deployment, upgrade string) []Finding {
	object := "validatingadmissionpolicy/" + policy.Name
	var found []Finding
	if failure := policy.Spec.FailurePolicy; failure != nil && *failure != admissionv1.Fail {
		found = append(found, problem(object, upgrade, "its failurePolicy is %s: it lets pass what it cannot evaluate", *failure))
	}
	if checked := policy.Status.TypeChecking; checked != nil && len(checked.ExpressionWarnings) > 0 {
		found = append(found, note(object, "see whether the chart of another version fits this cluster; report it if there is none",
			"its expressions do not fit what the API server knows: %s: %s", checked.ExpressionWarnings[0].FieldRef, checked.ExpressionWarnings[0].Warning))
	}
	user := fmt.Sprintf("system:serviceaccount:%s:%s", of.Namespace, of.Spec.Template.Spec.ServiceAccountName)
	names := func(condition admissionv1.MatchCondition) bool {
		return strings.Contains(condition.Expression, `"`+user+`"`)
	}
	if guard.isFence && !slices.ContainsFunc(policy.Spec.MatchConditions, names) {
		found = append(found, problem(object, upgrade, "it does not hold %s, which is who the Pods run as", user))
	}
	return found
}

// weak finds what a policy lets pass because of how it is bound. The chart binds
// each once, for everything.
func weak(bindings []admissionv1.ValidatingAdmissionPolicyBinding, guard guard, object, upgrade string) []Finding {
	denies, narrowed := false, true
	actions := []string{}
	for _, binding := range bindings {
		narrowed = narrowed && binding.Spec.MatchResources != nil
		for _, action := range binding.Spec.ValidationActions {
			denies = denies || action == admissionv1.Deny
			actions = append(actions, string(action))
		}
	}
	told := strings.Join(actions, " and ")
	switch {
	case narrowed:
		return []Finding{problem(object, upgrade, "its binding is narrowed by matchResources: elsewhere it stops nothing")}
	case denies:
		return nil
	case guard.isFence:
		return []Finding{problem(object, upgrade, "it does not deny, it has the action %s", told)}
	}
	return []Finding{note(object, "once nobody is warned any more who should not be, set its action to Deny in the chart",
		"it stops nothing, its action is %s", told)}
}
