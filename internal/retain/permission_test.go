package retain

import (
	"context"
	"errors"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/mooring-k8s/mooring/internal/receipt"
)

func TestRightsOf(t *testing.T) {
	for _, tc := range []struct {
		name string
		rule authorizationv1.ResourceRule
		want []string
	}{
		{"documented", authorizationv1.ResourceRule{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"get", "list", "watch", "create"}}, nil},
		{"delete", authorizationv1.ResourceRule{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"delete"}}, []string{"delete persistentvolumes"}},
		{"all groups", authorizationv1.ResourceRule{APIGroups: []string{"*"}, Resources: []string{"persistentvolumes"}, Verbs: []string{"patch"}}, []string{"patch persistentvolumes"}},
		{"another group", authorizationv1.ResourceRule{APIGroups: []string{"apps"}, Resources: []string{"*"}, Verbs: []string{"*"}}, nil},
		{"another resource", authorizationv1.ResourceRule{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"*"}}, nil},
		{"everything", authorizationv1.ResourceRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}, []string{"* *"}},
		{"status", authorizationv1.ResourceRule{APIGroups: []string{""}, Resources: []string{"persistentvolumes/status"}, Verbs: []string{"get", "update"}}, []string{"update persistentvolumes/status"}},
		{"every status", authorizationv1.ResourceRule{APIGroups: []string{""}, Resources: []string{"*/status"}, Verbs: []string{"patch"}}, []string{"patch */status"}},
		{"names", authorizationv1.ResourceRule{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"delete"}, ResourceNames: []string{"a", "b"}}, []string{"delete persistentvolumes a", "delete persistentvolumes b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, right := range rightsOf(tc.rule) {
				got = append(got, right.String())
			}
			if !slices.Equal(got, tc.want) {
				t.Fatalf("got %q; want %q", got, tc.want)
			}
		})
	}
}

// reviewer answers as an authorizer would.
type reviewer struct {
	whole   bool
	allowed []string
	err     error
	asked   []string
}

func (*reviewer) WhoAmI(context.Context) (receipt.Caller, error) { return receipt.Caller{}, nil }

func (r *reviewer) Rules(context.Context) ([]Right, bool, error) { return nil, r.whole, r.err }

func (r *reviewer) May(_ context.Context, right Right) (bool, error) {
	r.asked = append(r.asked, right.String())
	return slices.Contains(r.allowed, right.String()), nil
}

// Where an authorizer cannot list its rules, every question is asked.
func TestProofWithoutRules(t *testing.T) {
	for _, tc := range []struct {
		whole        bool
		want, denied int
	}{{true, 7, 8}, {false, 11, 11}} {
		r := &reviewer{whole: tc.whole}
		proof, err := provePermissions(t.Context(), r, []string{"v"})
		if err != nil || len(r.asked) != tc.want || len(proof.denied) != tc.denied || proof.check(false) != nil {
			t.Errorf("whole %v: asked %q, %v", tc.whole, r.asked, err)
		}
	}
	r := &reviewer{}
	if _, err := provePermissions(t.Context(), r, []string{"v"}); err != nil {
		t.Fatal(err)
	}
	for _, right := range r.asked {
		guilty := &reviewer{allowed: []string{right}}
		proof, err := provePermissions(t.Context(), guilty, []string{"v"})
		if err != nil {
			t.Fatal(err)
		}
		if refused := proof.check(false); refused == nil || refused.Reason != PermissionExcess {
			t.Errorf("%s: got %v", right, refused)
		}
		if proof.check(true) != nil || !proof.record(true).ExcessAllowed || proof.record(false).ExcessAllowed {
			t.Errorf("%s: not allowed although asked for", right)
		}
	}
	if _, err := provePermissions(t.Context(), &reviewer{err: errors.New("x")}, nil); ReasonOf(err) != ReadFailed {
		t.Errorf("got %v", err)
	}
}
