package integration_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// installation is a release of the chart in a control plane: everything but
// the Pods, in whose place replicas run as processes.
type installation struct {
	plane      *controlplane.ControlPlane
	objects    []*unstructured.Unstructured
	kubeconfig string
}

// install renders the chart and applies it.
func install(tb testing.TB, plane *controlplane.ControlPlane, options chart.Options) *installation {
	tb.Helper()
	if options.Values == nil {
		options.Values = map[string]any{}
	}
	options.Values["image"] = map[string]any{"repository": "registry.invalid/mooring-controller"}
	if options.Values["extraClassNames"] == nil { // those that tests make, and that of another release
		options.Values["extraClassNames"] = []any{"t*", "pvc-mirror"}
	}
	objects, err := chart.Render(options)
	noError(tb, err, "render the chart")
	ctx := context.Background() // an installation of a shared plane outlives the test that asked first
	noError(tb, chart.Apply(ctx, plane.Admin(), objects), "apply the chart")
	keep(tb, plane, chart.ServiceAccountName(objects), objects)
	identity, err := plane.ServiceAccount(ctx, chart.Namespace(objects), chart.ServiceAccountName(objects))
	noError(tb, err, "get the controller's identity")
	kubeconfig := filepath.Join(plane.Dir(), fmt.Sprintf("%s-%s.kubeconfig", chart.Namespace(objects), chart.ServiceAccountName(objects)))
	noError(tb, identity.WriteKubeconfig(kubeconfig), "write the controller's kubeconfig")
	return &installation{plane: plane, objects: objects, kubeconfig: kubeconfig}
}

// replica is one controller process, with what a Pod of the Deployment has.
type replica struct {
	*controlplane.Process
	metricsURL string
}

// replica prepares a controller process of the given Pod name; Start starts it.
func (i *installation) replica(tb testing.TB, pod string, extraArgs ...string) *replica {
	tb.Helper()
	binary, err := controllerBinary()
	noError(tb, err, "the controller's binary")
	metrics, probes := freeAddress(tb), freeAddress(tb)
	args := append(chart.ControllerArgs(i.objects),
		"--kubeconfig="+i.kubeconfig, "--metrics-bind-address="+metrics, "--health-probe-bind-address="+probes)
	process, err := i.plane.Command(controlplane.Command{
		Name:  pod,
		Path:  binary,
		Args:  append(args, extraArgs...),
		Env:   append(os.Environ(), chart.ControllerEnv(i.objects, pod)...),
		Ready: func(ctx context.Context) error { return isReady(ctx, "http://"+probes+"/readyz") },
	})
	noError(tb, err, "prepare a replica")
	return &replica{Process: process, metricsURL: "http://" + metrics + "/metrics"}
}

// start starts a replica, and at the end of the test looks for races in its log.
func (r *replica) start(tb testing.TB) *replica {
	tb.Helper()
	noError(tb, r.Start(context.Background()), "start the controller")
	tb.Cleanup(func() { noRaces(tb, r.LogFile()) })
	return r
}

func noRaces(tb testing.TB, logFile string) {
	tb.Helper()
	log, err := os.ReadFile(logFile)
	noError(tb, err, "read the controller's log")
	if at := strings.Index(string(log), "WARNING: DATA RACE"); at >= 0 {
		tb.Errorf("the controller has a data race:\n%.4000s", log[at:])
	}
}

// metrics returns what the replica's /metrics says now.
func (r *replica) metrics(tb testing.TB) string {
	tb.Helper()
	body, err := fetch(tb.Context(), r.metricsURL)
	noError(tb, err, "scrape the controller")
	return body
}

func isReady(ctx context.Context, url string) error {
	_, err := fetch(ctx, url)
	return err
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
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return string(body), nil
}

func freeAddress(tb testing.TB) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	noError(tb, err, "find a free port")
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
