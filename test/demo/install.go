package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

const controllerName = "mooring-controller"

// install puts the chart's objects into the cluster, all but the Deployment,
// since nothing here could run Pods, and runs the controller as a process with
// the arguments, the environment and the service account of that Deployment.
func (s *stage) install(ctx context.Context, root string) error {
	objects, err := chart.Render(chart.Options{
		Dir:         filepath.Join(root, "charts", "mooring"),
		KubeVersion: s.plane.Version(),
		Values:      map[string]any{"image": map[string]any{"repository": "registry.example.com/mooring"}},
	})
	if err != nil {
		return fmt.Errorf("render the chart: %w", err)
	}
	if err := chart.Apply(ctx, s.plane.Admin(), objects); err != nil {
		return fmt.Errorf("install the chart: %w", err)
	}
	account, err := s.plane.ServiceAccount(ctx, chart.Namespace(objects), chart.ServiceAccountName(objects))
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(s.plane.Dir(), controllerName+".kubeconfig")
	if err := account.WriteKubeconfig(kubeconfig); err != nil {
		return err
	}
	metrics, err := freeAddress()
	if err != nil {
		return err
	}
	probes, err := freeAddress()
	if err != nil {
		return err
	}
	// A flag that stands twice has its last value: what differs from a Pod is
	// where the cluster is and that the ports are free ones of this machine.
	args := slices.Concat(chart.ControllerArgs(objects), []string{
		"--kubeconfig=" + kubeconfig, "--metrics-bind-address=" + metrics, "--health-probe-bind-address=" + probes,
	})
	s.controller, err = s.plane.Command(controlplane.Command{
		Name: controllerName, Path: filepath.Join(root, "bin", controllerName),
		Args: args, Env: chart.ControllerEnv(objects, controllerName+"-0"),
		Ready: func(ctx context.Context) error { return isReady(ctx, "http://"+probes+"/readyz") },
	})
	if err != nil {
		return err
	}
	if err := s.controller.Start(ctx); err != nil {
		return fmt.Errorf("%w (`make demo` builds the controller first)", err)
	}
	s.tell.seen("Mooring runs as %s, with the chart's permissions and nothing more", account.Name)
	return nil
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

func isReady(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", url, response.Status)
	}
	_ = response.Body.Close()
	return err
}
