// Package people_test runs the commands for people against a real control plane
// with the controller of the chart, as three persons: an administrator, the
// owner of an origin, who has rights in its namespace only, and a tenant, who
// has rights in the mirror's namespace only.
package people_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// The planes that tests share, each with one controller; one that no test asks
// for is not started. Tests keep apart by namespaces of their own.
var (
	gateOn  = sharedPlane(true)
	gateOff = sharedPlane(false)
)

// sharedPlane aggregates cluster roles: the owner and the tenant have the role
// edit, which is empty without.
func sharedPlane(crossNamespace bool) *shared {
	return &shared{plane: &controlplane.Shared{Options: controlplane.Options{
		CrossNamespace: crossNamespace,
		Controllers:    []string{"clusterrole-aggregation-controller"},
		Audit:          controlplane.AuditMetadata,
	}}}
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // clients of tests have nothing to say
	for _, variable := range []string{"KUBECONFIG", "MOORING_PROVISIONER_NAME", "NO_COLOR"} {
		_ = os.Unsetenv(variable) // what the machine's user has is no part of the tests
	}
	code := controlplane.Run(m, gateOn.plane, gateOff.plane, crowded.plane)
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// shared is a plane with a controller for all tests of the package.
type shared struct {
	plane *controlplane.Shared

	once       sync.Once
	controller *controlplane.Process
	err        error
}

// world returns a world for one test, with namespaces of its own.
func (s *shared) world(t *testing.T) *world {
	t.Helper()
	plane := s.plane.ForTest(t)
	// The controller outlives the test that asked first, so not with its context.
	s.once.Do(func() { s.controller, s.err = startController(context.Background(), plane) })
	noError(t, s.err, "start the controller")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the controller's log ends:\n%s", s.controller.LogTail(30))
		}
	})
	return newWorld(t, plane, s.plane.Options.CrossNamespace)
}

// startController installs the chart and runs its controller as a process, with
// the rights, arguments and environment of its Pod.
func startController(ctx context.Context, plane *controlplane.ControlPlane) (*controlplane.Process, error) {
	objects, err := chart.Render(chart.Options{Values: map[string]any{"image": map[string]any{"repository": "registry.invalid/mooring-controller"}}})
	if err != nil {
		return nil, err
	}
	if err := chart.Apply(ctx, plane.Admin(), objects); err != nil {
		return nil, err
	}
	account, err := plane.ServiceAccount(ctx, chart.Namespace(objects), chart.ServiceAccountName(objects))
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(plane.Dir(), "mooring-controller.kubeconfig")
	if err := account.WriteKubeconfig(kubeconfig); err != nil {
		return nil, err
	}
	binary, err := built.controller()
	if err != nil {
		return nil, err
	}
	args := append(chart.ControllerArgs(objects), "--kubeconfig="+kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0")
	process, err := plane.Command(controlplane.Command{
		Name: "mooring-0", Path: binary, Args: args,
		Env:   append(os.Environ(), chart.ControllerEnv(objects, "mooring-0")...),
		Ready: func(ctx context.Context) error { return aggregated(ctx, plane) },
	})
	if err != nil {
		return nil, err
	}
	return process, process.Start(ctx)
}

// aggregated says whether the role edit has its rules by now.
func aggregated(ctx context.Context, plane *controlplane.ControlPlane) error {
	c, err := client.New(plane.Admin(), client.Options{})
	if err != nil {
		return err
	}
	role := &rbacv1.ClusterRole{}
	if err := c.Get(ctx, client.ObjectKey{Name: "edit"}, role); err != nil {
		return err
	}
	if len(role.Rules) == 0 {
		return fmt.Errorf("the role %s has no rules yet", role.Name)
	}
	return nil
}

// built is what this run of the tests has built, of its own: several runs may
// share a checkout.
var built binaries

type binaries struct {
	once      sync.Once
	dir, path string
	err       error
}

// controller builds the controller, once.
func (b *binaries) controller() (string, error) {
	b.once.Do(func() {
		if b.dir, b.err = os.MkdirTemp("", "mooring-people-"); b.err != nil {
			return
		}
		b.path = filepath.Join(b.dir, "mooring-controller")
		build := exec.CommandContext(context.Background(), "go", "build", "-o", b.path, "./cmd/mooring-controller")
		build.Dir = filepath.Join("..", "..")
		if output, err := build.CombinedOutput(); err != nil {
			b.err = fmt.Errorf("build the controller: %w\n%s", err, output)
		}
	})
	return b.path, b.err
}
