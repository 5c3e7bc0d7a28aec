// Package integration_test runs the controller, with the chart's own
// permissions and arguments, against a real control plane with a real binder.
package integration_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mooring-k8s/mooring/test/controlplane"
)

// The planes that most tests share: one for each setting of the gate, with one
// controller each. Tests keep apart by namespaces of their own.
var (
	gateOn  = &sharedWorld{gate: "gate on", plane: &controlplane.Shared{Options: controlplane.Options{CrossNamespace: true}}}
	gateOff = &sharedWorld{gate: "gate off", plane: &controlplane.Shared{Options: controlplane.Options{CrossNamespace: false}}}
)

func TestMain(m *testing.M) {
	becomeFormerProvisioner()
	ctrl.SetLogger(logr.Discard()) // clients of tests have nothing to say
	flag.Parse()
	gateOn.plane.Options, gateOff.plane.Options = audited(gateOn.plane.Options), audited(gateOff.plane.Options)
	os.Exit(controlplane.Run(m, gateOn.plane, gateOff.plane))
}

// onEachGate runs a test on both planes.
func onEachGate(t *testing.T, test func(w *world)) {
	t.Parallel()
	for _, shared := range []*sharedWorld{gateOn, gateOff} {
		t.Run(shared.gate, func(t *testing.T) {
			t.Parallel()
			test(shared.world(t))
		})
	}
}

// controllerBinary builds the controller, once.
var controllerBinary = sync.OnceValues(func() (string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, ".cache", "test", "mooring-controller")
	args := append([]string{"build", "-o", path}, raceFlags...)
	build := exec.CommandContext(context.Background(), "go", append(args, "./cmd/mooring-controller")...)
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the controller: %w\n%s", err, output)
	}
	return path, nil
})

func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	return filepath.Abs(filepath.Join(dir, "..", ".."))
}
