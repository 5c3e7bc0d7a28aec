package permissions

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

var account = Account{
	Namespace: "n", Name: "mooring",
	ClusterRules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims", "persistentvolumeclaims/status"}, Verbs: []string{"get", "patch"}}},
	Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"mine"}, Verbs: []string{"update"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
	},
}

// line is an event of an audit log: who, how it was decided, what.
func line(user, decision, verb, object string, code int) string {
	return fmt.Sprintf(`{"kind":"Event","stage":"ResponseComplete","verb":%q,"user":{"username":%q},"objectRef":%s,"responseStatus":{"code":%d,"message":"x \"y\" is forbidden: why"},"annotations":{"authorization.k8s.io/decision":%q}}`,
		verb, user, object, code, decision)
}

func TestJudge(t *testing.T) {
	me := account.User()
	for _, tc := range []struct {
		name string
		line string
		used []string
		no   string
	}{
		{"a right", line(me, "allow", "get", `{"resource":"persistentvolumeclaims","namespace":"a","name":"b"}`, 200), []string{"get persistentvolumeclaims"}, ""},
		{"of a subresource", line(me, "allow", "patch", `{"resource":"persistentvolumeclaims","subresource":"status","namespace":"a","name":"b"}`, 200), []string{"patch persistentvolumeclaims/status"}, ""},
		{"by name", line(me, "allow", "update", `{"resource":"leases","apiGroup":"coordination.k8s.io","namespace":"n","name":"mine"}`, 200), []string{"update leases.coordination.k8s.io, its own, in its namespace"}, ""},
		{"of another name", line(me, "allow", "update", `{"resource":"leases","apiGroup":"coordination.k8s.io","namespace":"n","name":"other"}`, 200), nil, ""},
		{"in another namespace", line(me, "allow", "create", `{"resource":"configmaps","namespace":"m"}`, 200), nil, ""},
		{"of another group", line(me, "allow", "get", `{"resource":"persistentvolumeclaims","apiGroup":"other"}`, 200), nil, ""},
		{"somebody else's", line("other", "allow", "get", `{"resource":"persistentvolumeclaims"}`, 200), nil, ""},
		{"discovery", line(me, "allow", "get", "null", 200), nil, ""},
		{"half a line", `{"kind":"Event","st`, nil, ""},
		{"forbidden", line(me, "forbid", "list", `{"resource":"secrets"}`, 403), nil, "refused list secrets: why"},
		{"denied by admission", line(me, "allow", "patch", `{"resource":"persistentvolumeclaims"}`, 403), []string{"patch persistentvolumeclaims"}, "denied patch persistentvolumeclaims: why"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			report, err := Judge(strings.NewReader(tc.line+"\n"), account)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(report.Used, tc.used) || len(report.Used)+len(report.Unused) != 6 {
				t.Errorf("got used %q and unused %q; want used %q of 6", report.Used, report.Unused, tc.used)
			}
			no := ""
			for _, refused := range report.Refused {
				no += "refused " + refused
			}
			for _, denied := range report.Denied {
				no += "denied " + denied
			}
			if no != tc.no {
				t.Errorf("got %q, want %q", no, tc.no)
			}
		})
	}
}

func TestShape(t *testing.T) {
	other := account
	other.Namespace, other.Name = "other", "staging-mooring"
	other.Rules = slices.Clone(other.Rules)
	other.Rules[0].ResourceNames = []string{"theirs"}
	one, err := account.Shape()
	if err != nil {
		t.Fatal(err)
	}
	if two, err := other.Shape(); err != nil || two != one {
		t.Errorf("another release's shape is\n%s\n(%v), not\n%s", two, err, one)
	}
	other.Rules = other.Rules[:1]
	if less, err := other.Shape(); err != nil || less == one {
		t.Errorf("a role without a rule has the same shape (%v)", err)
	}
	other.ClusterRules = []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"pods"}}}
	if _, err := other.Shape(); err == nil || !strings.Contains(err.Error(), "cannot tell what of") {
		t.Errorf("a wildcard: %v", err)
	}
}
