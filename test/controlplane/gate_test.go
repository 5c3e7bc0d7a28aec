package controlplane

import (
	"testing"

	"github.com/mooring-k8s/mooring/test/controlplane/internal/layout"
)

func TestVersion(t *testing.T) {
	cp := shared.ForTest(t)
	if cp.Existing() {
		t.Skip("an existing cluster has the version it has")
	}
	version, err := clientFor(t, cp.Admin()).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.GitVersion != layout.Version() || version.Major != "1" {
		t.Errorf("the server calls itself %#v, want %s", version, layout.Version())
	}
}

func TestGateOnKeepsTheNamespaceOfAReference(t *testing.T) {
	keeps, err := shared.ForTest(t).KeepsDataSourceNamespace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !keeps {
		t.Error("the reference was dropped")
	}
}

func TestGateOffDropsTheReference(t *testing.T) {
	keeps, err := ForTest(t, Options{}).KeepsDataSourceNamespace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if keeps {
		t.Error("the reference was kept")
	}
}

func TestAdmissionPoliciesAreServed(t *testing.T) {
	cp := shared.ForTest(t)
	if cp.Existing() || cp.Version() != layout.DefaultVersion {
		t.Skip("older releases do not serve both in v1")
	}
	served, err := clientFor(t, cp.Admin()).Discovery().ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, r := range served.APIResources {
		names[r.Name] = true
	}
	for _, name := range []string{"validatingadmissionpolicies", "mutatingadmissionpolicies"} {
		if !names[name] {
			t.Errorf("%s is not served", name)
		}
	}
}
