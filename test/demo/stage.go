package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
	"github.com/mooring-k8s/mooring/test/demo/installation"
	"github.com/mooring-k8s/mooring/test/demo/kubectl"
)

// stage is the running control plane with Mooring installed, and what scenes
// leave for later ones.
type stage struct {
	tell       *narrator
	plane      *controlplane.ControlPlane
	controller *controlplane.Process
	api        kubernetes.Interface
	kubectl    kubectl.Kubectl
	names      mooringapi.Names

	// dir is where the commands are typed: it holds the checkout's bin and
	// examples, and what the commands write.
	dir string
	// refusals are those of the scenes so far.
	refusals []refusal
	// approved is the plan digest that somebody has approved.
	approved string
	// before is each origin as it was before its first mirror, by claim.
	before map[string]pair
}

// pair is a claim and the volume that it is bound to.
type pair struct {
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
}

// open starts the control plane and installs Mooring. When it fails, nothing
// is left running.
func open(ctx context.Context, tell *narrator) (*stage, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	plane, err := controlplane.Start(ctx, controlplane.Options{CrossNamespace: true})
	if err != nil {
		return nil, err
	}
	tell.seen("Kubernetes %s is up after %.1f s", plane.Version(), time.Since(began).Seconds())
	dir := filepath.Join(plane.Dir(), "demo")
	s := &stage{tell: tell, plane: plane, dir: dir, before: map[string]pair{}, kubectl: kubectl.Kubectl{
		Kubeconfig: plane.AdminKubeconfigFile(), Dir: dir, Cache: filepath.Join(plane.Dir(), "kubectl-cache"),
	}}
	if err := s.prepare(ctx, root); err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	return s, nil
}

// prepare makes the directory that commands are typed in, and installs Mooring.
func (s *stage) prepare(ctx context.Context, root string) (err error) {
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"bin", "examples"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(s.dir, name)); err != nil {
			return err
		}
	}
	if s.api, err = kubernetes.NewForConfig(s.plane.Admin()); err != nil {
		return err
	}
	return s.install(ctx, root)
}

// install installs Mooring from the chart. Set is an image's place, which has no
// default and is not used, and that claims may be deleted: the class that the
// chart makes only reports, until a scene says otherwise.
func (s *stage) install(ctx context.Context, root string) error {
	installed, err := installation.Start(ctx, s.plane, root, chart.Options{
		Values: map[string]any{
			"image":              map[string]any{"repository": "registry.example.com/mooring"},
			"allowClaimDeletion": true,
		},
	})
	if err != nil {
		return err
	}
	s.controller = installed.Controller
	s.tell.seen("Mooring runs as %s, with the chart's permissions and nothing more", installed.Account)
	return nil
}

// repository is the checkout's directory: the working directory, or above it.
func repository() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "examples", "origin-volumes.yaml")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("neither %s nor a directory above it holds Mooring's examples", start)
		}
	}
}

// leaveRunning leaves everything to the user, who is told how to go on.
func (s *stage) leaveRunning() error {
	path, err := kubectl.Install(s.plane.Dir())
	if err != nil {
		return errors.Join(fmt.Errorf("install a kubectl beside the control plane: %w", err), s.plane.Stop())
	}
	log := s.controller.LogFile()
	left, err := s.plane.Detach()
	if err != nil {
		return err
	}
	s.tell.heading("Left running, for you")
	s.tell.shown(left.String())
	s.tell.shown("kubectl:   " + path + " get pvc -A   (if you have none of your own)")
	s.tell.shown("its log:   " + log)
	s.tell.shown("the files: cd " + s.dir + "   (there the commands above can be typed again)")
	return nil
}
