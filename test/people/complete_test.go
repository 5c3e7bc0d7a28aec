package people_test

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/mooring-k8s/mooring/internal/cli"
)

// What a shell asks for completion is answered from the cluster, as far as who
// asks may see it.
func TestCompletion(t *testing.T) {
	t.Parallel()
	w := gateOn.world(t)
	w.pendingOrigin(w.ownerNS, "data")
	w.pendingOrigin(w.ownerNS, "other")
	for _, tc := range []struct {
		who         person
		typed, want string
	}{
		{w.admin, w.ownerNS[:len(w.ownerNS)-2], w.ownerNS + "/"},
		{w.admin, w.ownerNS + "/", w.ownerNS + "/data"},
		{w.admin, w.ownerNS + "/ot", w.ownerNS + "/other"},
		{w.owner, w.ownerNS + "/d", w.ownerNS + "/data"},
	} {
		got := w.complete(tc.who, tc.typed)
		if !strings.Contains(got, tc.want+"\n") {
			t.Errorf("%s types %q and gets %q, want %q", tc.who.name, tc.typed, got, tc.want)
		}
	}
	for _, tc := range []struct {
		who   person
		typed []string
		want  []string // each is offered
	}{
		{w.admin, []string{"list", "-n", w.ownerNS[:len(w.ownerNS)-2]}, []string{w.ownerNS}},
		{w.admin, []string{"list", "-o", ""}, []string{"wide", "json", "yaml", "name"}},
		{w.admin, []string{"list", "--sort-by", "a"}, []string{"access", "age"}},
		{w.admin, []string{"list", "--origin", w.ownerNS + "/d"}, []string{w.ownerNS + "/data"}},
		{w.admin, []string{"map", "-o", "s"}, []string{"svg"}},
		{w.admin, []string{"mirror", w.ownerNS + "/data", "--class", ""}, []string{class}},
		{w.admin, []string{"mirror", w.ownerNS + "/data", "--into", w.tenantNS[:len(w.tenantNS)-2]}, []string{w.tenantNS}},
		{w.admin, []string{"mirror", w.ownerNS + "/data", "--dry-run", ""}, []string{"none", "client", "server"}},
		{w.admin, []string{"share", w.ownerNS + "/data", "-o", ""}, []string{"json", "yaml"}},
		{w.admin, []string{"explain", "--output", "j"}, []string{"json"}},
		{w.admin, []string{"access", "-o", "y"}, []string{"yaml"}},
		{w.admin, []string{"doctor", "-o", ""}, []string{"json", "yaml"}},
		{w.admin, []string{"share", "--with", "ty"}, []string{"type"}},
		{w.admin, []string{"share", "--with", "type=t"}, []string{"type=tenant"}},
		{w.admin, []string{"access", "--as-of-selector", "a=b,type=t"}, []string{"a=b,type=tenant"}},
		{w.admin, []string{"access", "--as-of-read-only-selector", "type="}, []string{"type=tenant"}},
		{w.admin, []string{"doctor", "--context", ""}, []string{w.context(w.admin)}},
	} {
		got := w.completes(tc.who, tc.typed...)
		for _, want := range tc.want {
			if !strings.Contains("\n"+got, "\n"+want+"\n") {
				t.Errorf("%v completes to %q, want %q among it", tc.typed, got, want)
			}
		}
	}
	if got := w.completes(w.tenant, "share", "--with", "type="); strings.Contains(got, "tenant") {
		t.Errorf("a tenant is told of labels: %q", got)
	}
	if got := w.completes(w.tenant, "list", "-n", ""); strings.Contains(got, w.ownerNS) {
		t.Errorf("a tenant is told of namespaces: %q", got)
	}
	if got := w.complete(w.tenant, w.ownerNS+"/"); strings.Contains(got, "data") {
		t.Errorf("a tenant is told of claims: %q", got)
	}
}

func (w *world) complete(who person, typed string) string {
	w.Helper()
	return w.completes(who, "share", typed)
}

// completes asks what a command line goes on with, as shells do.
func (w *world) completes(who person, words ...string) string {
	w.Helper()
	line := append([]string{"__complete", words[0], "--kubeconfig=" + who.kubeconfig}, words[1:]...)
	var out, errs bytes.Buffer
	code := cli.Run(w.Context(), line, cli.Env{Out: &out, Err: &errs, Version: "test"})
	if code != 0 {
		w.Fatalf("complete %q: %s%s", words, out.String(), errs.String())
	}
	return out.String()
}

// context returns the context of a person's kubeconfig.
func (w *world) context(who person) string {
	w.Helper()
	config, err := clientcmd.LoadFromFile(who.kubeconfig)
	w.must(err, "read the kubeconfig")
	return config.CurrentContext
}
