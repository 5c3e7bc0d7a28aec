package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
	"github.com/mooring-k8s/mooring/test/bench/report"
	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
)

// programs are the two provisioners, built as they are shipped.
type programs struct{ mooring, peer string }

func buildPrograms(ctx context.Context, root string) (programs, error) {
	tell("building the controller and the peer")
	p := programs{filepath.Join(root, ".cache", "bench", "mooring-controller"), filepath.Join(root, ".cache", "bench", "peer")}
	for _, build := range []struct{ dir, out, of string }{
		{root, p.mooring, "./cmd/mooring-controller"},
		{filepath.Join(root, "test", "bench"), p.peer, "./peer"},
	} {
		command := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", build.out, build.of)
		command.Dir = build.dir
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := command.CombinedOutput(); err != nil {
			return p, fmt.Errorf("build %s: %w\n%s", build.of, err, text)
		}
	}
	return p, nil
}

// stage is a control plane with the chart in it and both provisioners at hand.
type stage struct {
	client.WithWatch
	plane        *controlplane.ControlPlane
	api          *kubernetes.Clientset
	names        mooringapi.Names
	provisioners map[string]*controlplane.Process
	metricsURL   string // of Mooring
	namespace    string // of the release
	tenants      []string
	origins      []origin
	binding      bool // kube-controller-manager runs
}

// newStage starts a control plane. Stop it.
func newStage(ctx context.Context, programs programs, options controlplane.Options) (*stage, error) {
	options.CrossNamespace = true
	plane, err := controlplane.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	s := &stage{plane: plane, provisioners: map[string]*controlplane.Process{}, binding: true}
	if err := s.prepare(ctx, programs); err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	return s, nil
}

func (s *stage) prepare(ctx context.Context, programs programs) error {
	var err error
	if s.WithWatch, err = client.NewWithWatch(s.plane.Admin(), client.Options{}); err != nil {
		return err
	}
	if s.api, err = kubernetes.NewForConfig(s.plane.Admin()); err != nil {
		return err
	}
	objects, err := chart.Render(chart.Options{Values: map[string]any{"image": map[string]any{"repository": "registry.invalid/mooring-controller"}}})
	if err != nil {
		return err
	}
	if err := chart.Apply(ctx, s.plane.Admin(), objects); err != nil {
		return err
	}
	s.namespace = chart.Namespace(objects)
	identity, err := s.plane.ServiceAccount(ctx, s.namespace, chart.ServiceAccountName(objects))
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(s.plane.Dir(), "mooring.kubeconfig")
	if err := identity.WriteKubeconfig(kubeconfig); err != nil {
		return err
	}
	metrics, err := freeAddress()
	if err != nil {
		return err
	}
	s.metricsURL = "http://" + metrics + "/metrics"
	args := append(chart.ControllerArgs(objects), "--kubeconfig="+kubeconfig, "--metrics-bind-address="+metrics, "--health-probe-bind-address=")
	return errors.Join(
		s.program(report.Mooring, programs.mooring, args, chart.ControllerEnv(objects, "mooring-0")),
		s.program(report.Peer, programs.peer, []string{"--kubeconfig=" + s.plane.AdminKubeconfigFile(), "--probes="}, nil),
		s.program(report.PeerUnlimited, programs.peer, []string{"--kubeconfig=" + s.plane.AdminKubeconfigFile(), "--unlimited", "--probes="}, nil),
	)
}

// program prepares a provisioner; the last of its arguments is to be completed by
// the address of its probes.
func (s *stage) program(name, path string, args, env []string) error {
	probes, err := freeAddress()
	if err != nil {
		return err
	}
	s.provisioners[name], err = s.plane.Command(controlplane.Command{
		Name: name, Path: path, Args: append(args[:len(args)-1:len(args)-1], args[len(args)-1]+probes), Env: append(os.Environ(), env...),
		Ready: func(ctx context.Context) error {
			_, err := fetch(ctx, "http://"+probes+"/readyz")
			return err
		},
	})
	return err
}

// bind starts or stops kube-controller-manager.
func (s *stage) bind(ctx context.Context, yes bool) error {
	if s.binding == yes {
		return nil
	}
	s.binding = yes
	if yes {
		return s.plane.ControllerManager().Start(ctx)
	}
	return s.plane.ControllerManager().Stop(ctx)
}

// stop ends a provisioner, and lets its successor lead at once.
func (s *stage) stop(ctx context.Context, process *controlplane.Process) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return errors.Join(process.Stop(ctx), s.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace(s.namespace)))
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
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
		return "", fmt.Errorf("%s answers %s", url, response.Status)
	}
	return string(body), nil
}
