// Package installation runs Mooring on a control plane that has no nodes: the
// chart's objects in the cluster, and the controller as a process with the
// arguments, the environment and the service account of its Deployment.
package installation

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

const controllerName = "mooring-controller"

// Installation is Mooring as the chart installs it.
type Installation struct {
	// Controller is the process, which ends with the control plane.
	Controller *controlplane.Process
	// Account is the user as which the API server knows it.
	Account string

	plane    *controlplane.ControlPlane
	root     string // the checkout
	objects  []*unstructured.Unstructured
	options  chart.Options
	upgrades int
}

// Start installs the chart of the checkout at root and returns when the
// controller is ready. It is to be built already, as bin/mooring-controller.
func Start(ctx context.Context, plane *controlplane.ControlPlane, root string, options chart.Options) (*Installation, error) {
	options.Dir = filepath.Join(root, "charts", "mooring")
	options.KubeVersion = plane.Version()
	i := &Installation{plane: plane, root: root, options: options}
	var err error
	if i.objects, err = chart.Render(options); err != nil {
		return nil, fmt.Errorf("render the chart: %w", err)
	}
	if err := chart.Apply(ctx, plane.Admin(), i.objects); err != nil {
		return nil, fmt.Errorf("install the chart: %w", err)
	}
	if err := i.run(ctx); err != nil {
		return nil, err
	}
	return i, nil
}

// run starts a controller as the chart's objects say, and returns when it is
// ready.
func (i *Installation) run(ctx context.Context) error {
	account, err := i.plane.ServiceAccount(ctx, chart.Namespace(i.objects), chart.ServiceAccountName(i.objects))
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(i.plane.Dir(), controllerName+".kubeconfig")
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
	args := slices.Concat(chart.ControllerArgs(i.objects), []string{
		"--kubeconfig=" + kubeconfig, "--metrics-bind-address=" + metrics, "--health-probe-bind-address=" + probes,
	})
	name := controllerName
	if i.upgrades > 0 {
		name = fmt.Sprintf("%s-%d", controllerName, i.upgrades)
	}
	controller, err := i.plane.Command(controlplane.Command{
		Name: name, Path: i.binary(), Args: args, Env: chart.ControllerEnv(i.objects, name+"-0"),
		Ready: func(ctx context.Context) error { return isReady(ctx, "http://"+probes+"/readyz") },
	})
	if err != nil {
		return err
	}
	if err := controller.Start(ctx); err != nil {
		return fmt.Errorf("%w (`make build` builds the controller)", err)
	}
	i.Controller, i.Account = controller, account.Name
	return nil
}

func (i *Installation) binary() string { return filepath.Join(i.root, "bin", controllerName) }

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
