// Package observe_test sees, on a real control plane, that the chart's alerts and
// dashboard ask for what the controller really says: every metric and label that
// they name is found in a scrape of a controller that has work to do. PromQL is read
// by Prometheus' own parser.
package observe_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

const (
	root     = "../.."
	patience = 60 * time.Second
)

var names mooringapi.Names // the default provisioner name

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // clients of tests have nothing to say
	os.Exit(m.Run())
}

// world is a control plane with an installation of the chart.
type world struct {
	*testing.T
	client.Client

	plane    *controlplane.ControlPlane
	replicas []replica
}

// replica is a Pod's controller, as a process.
type replica struct {
	process *controlplane.Process
	url     string
}

// newWorld installs the chart, and starts so many replicas of its controller.
func newWorld(t *testing.T, replicas int) *world {
	t.Helper()
	plane := controlplane.ForTest(t, controlplane.Options{CrossNamespace: true})
	objects, err := chart.Render(chart.Options{Values: map[string]any{
		"image": map[string]any{"repository": "registry.invalid/mooring-controller"},
	}})
	noError(t, err, "render the chart")
	noError(t, chart.Apply(t.Context(), plane.Admin(), objects), "install the chart")
	account, err := plane.ServiceAccount(t.Context(), chart.Namespace(objects), chart.ServiceAccountName(objects))
	noError(t, err, "get the controller's token")
	kubeconfig := filepath.Join(plane.Dir(), "mooring-controller.kubeconfig")
	noError(t, account.WriteKubeconfig(kubeconfig), "write the controller's kubeconfig")
	c, err := client.New(plane.Admin(), client.Options{})
	noError(t, err, "connect")
	w, binary := &world{T: t, Client: c, plane: plane}, build(t)
	for i := range replicas {
		name, metrics := fmt.Sprintf("mooring-%d", i), freeAddress(t)
		process, err := plane.Command(controlplane.Command{
			Name: name, Path: binary,
			Args: append(chart.ControllerArgs(objects), "--kubeconfig="+kubeconfig, "--metrics-bind-address="+metrics, "--health-probe-bind-address=0"),
			Env:  append(os.Environ(), chart.ControllerEnv(objects, name)...),
			Ready: func(ctx context.Context) error {
				_, err := fetch(ctx, "http://"+metrics+"/metrics")
				return err
			},
		})
		noError(t, err, "prepare a replica")
		noError(t, process.Start(t.Context()), "start a replica")
		w.replicas = append(w.replicas, replica{process, "http://" + metrics + "/metrics"})
	}
	return w
}

func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mooring-controller")
	command := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, "./cmd/mooring-controller")
	command.Dir, command.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if text, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build the controller: %v\n%s", err, text)
	}
	return path
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	noError(t, err, "find a free port")
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func fetch(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", url, response.Status)
	}
	return string(body), err
}

func noError(t *testing.T, err error, what string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (w *world) must(err error, what string) {
	w.Helper()
	noError(w.T, err, what)
}

// until waits for a condition, which says what is missing, or "".
func (w *world) until(what string, condition func(ctx context.Context) string) {
	w.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(w.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == "", nil
	})
	if err != nil {
		w.Fatalf("%s: not within %v: %s", what, patience, last)
	}
}
