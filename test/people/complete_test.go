package people_test

import (
	"bytes"
	"strings"
	"testing"

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
	if got := w.complete(w.tenant, w.ownerNS+"/"); strings.Contains(got, "data") {
		t.Errorf("a tenant is told of claims: %q", got)
	}
}

func (w *world) complete(who person, typed string) string {
	w.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(w.Context(), []string{"__complete", "share", "--kubeconfig=" + who.kubeconfig, typed}, cli.Env{Out: &out, Err: &errs, Version: "test"})
	if code != 0 {
		w.Fatalf("complete %q: %s%s", typed, out.String(), errs.String())
	}
	return out.String()
}
