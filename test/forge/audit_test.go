package forge_test

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

const account = "system:serviceaccount:mooring-retain:retain"

// request is what the test reads of audit.k8s.io/v1 Event.
type request struct {
	Stage, Verb    string
	User           struct{ Username string }
	ObjectRef      *struct{ Resource, Subresource, Name string }
	ResponseStatus struct{ Code int }
}

// granted are the rights of examples/retain-rbac.yaml, as "verb resource".
func granted(t *testing.T) []string {
	t.Helper()
	var rights []string
	for _, document := range strings.Split(example(t, "retain-rbac.yaml"), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights = append(rights, verb+" "+resource)
				}
			}
		}
	}
	slices.Sort(rights)
	return rights
}

// usedExactly fails unless the API server's own record shows that the account of
// examples/retain-rbac.yaml used each of its rights, and was denied nothing.
func usedExactly(t *testing.T) {
	t.Helper()
	file, err := os.Open(plane.ForTest(t).AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // opened for reading
	used := map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.User.Username != account || r.Stage != "ResponseComplete" || r.ObjectRef == nil {
			continue
		}
		if r.ResponseStatus.Code == 401 || r.ResponseStatus.Code == 403 {
			t.Errorf("the account was denied: %s", lines.Text())
		}
		// What everybody may ask about themselves.
		if !strings.HasPrefix(r.ObjectRef.Resource, "selfsubject") {
			used[r.Verb+" "+r.ObjectRef.Resource] = true
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(used)), granted(t); !slices.Equal(got, want) {
		t.Errorf("the account used %q; its rights are %q", got, want)
	}
}
