package doctor

import (
	"context"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-k8s/mooring/internal/inventory"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

// policies reads the admission policies: the chart's own, and those that can deny
// volumes.
func (p *Patient) policies(ctx context.Context, c *inventory.Cluster) error {
	const what = "validatingadmissionpolicies"
	policies, err := c.API.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, metav1.ListOptions{})
	if err != nil {
		p.NoPolicies = apierrors.IsNotFound(err)
		return p.visible(what, err)
	}
	bindings, err := c.API.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return p.visible(what, err)
	}
	p.Policies, p.Bindings = policies.Items, bindings.Items
	return nil
}

// rejected returns a claim whose mirror volume was denied; "" if there is none.
func (p *Patient) rejected() string {
	for i := range p.Claims {
		condition := inventory.ConditionOf(p.Names, &p.Claims[i])
		if condition != nil && condition.Reason == string(mirror.VolumeRejected) {
			return p.Claims[i].Namespace + "/" + p.Claims[i].Name
		}
	}
	return ""
}

// policies finds the bindings that can deny a volume, where one was denied.
func policies(p *Patient, _ time.Time) []Finding {
	claim := p.rejected()
	if claim == "" {
		return nil
	}
	var found []Finding
	for _, binding := range p.Bindings {
		of := slices.IndexFunc(p.Policies, func(policy admissionv1.ValidatingAdmissionPolicy) bool { return policy.Name == binding.Spec.PolicyName })
		if of >= 0 && slices.Contains(binding.Spec.ValidationActions, admissionv1.Deny) && ofVolumes(p.Policies[of]) {
			found = append(found, note("validatingadmissionpolicybinding/"+binding.Name, "compare what it asks for with what was said of the claim: mooring explain "+claim,
				"its policy %s can deny volumes, and mirror volumes were denied", binding.Spec.PolicyName))
		}
	}
	return found
}

// ofVolumes reports whether a policy looks at the creation of volumes.
func ofVolumes(policy admissionv1.ValidatingAdmissionPolicy) bool {
	if policy.Spec.MatchConstraints == nil {
		return false
	}
	either := func(all []string, names ...string) bool {
		return slices.ContainsFunc(all, func(one string) bool { return slices.Contains(names, one) })
	}
	return slices.ContainsFunc(policy.Spec.MatchConstraints.ResourceRules, func(rule admissionv1.NamedRuleWithOperations) bool {
		return either(rule.Resources, "persistentvolumes", "*", "*/*") && either(rule.APIGroups, "", "*") &&
			(slices.Contains(rule.Operations, admissionv1.Create) || slices.Contains(rule.Operations, admissionv1.OperationAll))
	})
}
