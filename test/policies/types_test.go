package policies_test

import (
	"context"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kubernetes itself checks each expression against the types that it is about: a
// field that there is none of would be an error only when it is met.
func TestExpressionsFitTheirTypes(t *testing.T) {
	w := newWorld(t)
	var policies admissionv1.ValidatingAdmissionPolicyList
	ours := client.MatchingLabels{"app.kubernetes.io/name": "mooring"}
	w.until("all policies are checked", func(ctx context.Context) string {
		w.must(w.List(ctx, &policies, ours), "list policies")
		for i := range policies.Items {
			if policies.Items[i].Status.TypeChecking == nil {
				return policies.Items[i].Name + " is not"
			}
		}
		return ""
	})
	const all = 11 // the chart's, with every value set
	if len(policies.Items) != all {
		t.Errorf("%d policies were checked, want %d", len(policies.Items), all)
	}
	for i := range policies.Items {
		for _, warning := range policies.Items[i].Status.TypeChecking.ExpressionWarnings {
			t.Errorf("%s: %s: %s", policies.Items[i].Name, warning.FieldRef, fmt.Sprintf("%.600s", warning.Warning))
		}
	}
}
