package recipe_test

import (
	"testing"

	"github.com/mooring-k8s/mooring/internal/recipe"
)

// hostPath is the recipe of the driver that tests use. It finds a volume in
// its own state by the handle, and nothing makes its mounts read-only. It is
// in tests only: its volumes are directories of one node.
var hostPath = recipe.Row{Name: "hostpath.csi.k8s.io", Handle: recipe.OriginHandle, Stages: true,
	Basis: "csi-driver-host-path 1f2b2e6 (2026-07): pkg/hostpath/nodeserver.go, state.GetVolumeByID"}

func TestHostPathIsForTestsOnly(t *testing.T) {
	origin := static("hostpath.csi.k8s.io", "vol-1", attrs{"kind": "slow"}, nil)
	request := recipe.Request{Origin: origin, ClaimUID: uid, Driver: csiDriver("hostpath.csi.k8s.io", ptr(true))}
	if got := recipe.Make(request); got.Outcome != recipe.DriverUnknown {
		t.Errorf("the shipped table knows it: outcome %d", got.Outcome)
	}
	request.Driver = nil
	tc := kase{origin: origin, write: made{handle: "vol-1", attributes: attrs{"kind": "slow"}, shared: true},
		readSays: writable, readOutcome: recipe.ReadOnlyUnsupported}
	for _, wrong := range check(append(recipe.Drivers(), hostPath), tc) {
		t.Error(wrong)
	}
}
