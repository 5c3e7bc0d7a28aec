package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/rest"
)

// ErrExistingCluster is the answer to what cannot be done to a cluster that
// this package did not start.
var ErrExistingCluster = errors.New("not possible on an existing cluster")

// ControlPlane is a running control plane. Its methods may be called from
// several goroutines.
type ControlPlane struct {
	options  Options
	dir      string
	guard    *guardian
	pki      *pki // nil on an existing cluster
	admin    *Identity
	existing bool

	etcd, apiServer, controllerManager *Process

	mu       sync.Mutex
	commands []*Process
	over     bool // stopped or detached
}

// Start starts a control plane and waits until it is ready: the API server's
// /readyz, the controller manager's /healthz once the binder is part of it, and
// the namespaces default and kube-system. When it fails, nothing is left running. The plane outlives ctx;
// end it with Stop.
//
// With USE_EXISTING_CLUSTER=true in the environment nothing is started and the
// plane is the cluster of KUBECONFIG. Start then fails if the options ask for
// what only a new plane can give, or if the cluster's CrossNamespaceGate is
// not as asked; both errors are ErrExistingCluster.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	options = options.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, options.StartTimeout)
	defer cancel()

	cp, err := newPlane(options)
	if err != nil {
		return nil, fmt.Errorf("start a control plane: %w", err)
	}
	start := cp.start
	if useExisting() {
		start = cp.attach
	}
	if err := start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a control plane: %w", err), cp.Stop())
	}
	return cp, nil
}

// newPlane makes the directory and the guardian that will remove it.
func newPlane(options Options) (*ControlPlane, error) {
	dir, err := os.MkdirTemp(options.TempDir, "controlplane-")
	if err != nil {
		return nil, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	guard, err := startGuardian(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &ControlPlane{options: options, dir: dir, guard: guard}, nil
}

// start runs the three servers one after the other.
func (cp *ControlPlane) start(ctx context.Context) error {
	bin, err := binaries(cp.options.Version)
	if err != nil {
		return err
	}
	if cp.pki, err = newPKI(filepath.Join(cp.dir, "pki")); err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	cp.etcd = cp.newEtcd(bin)
	cp.apiServer = cp.newAPIServer(bin)
	cp.controllerManager = cp.newControllerManager(bin)

	if err := cp.etcd.startFirst(ctx, 2); err != nil {
		return err
	}
	if err := cp.writeAuditPolicy(); err != nil {
		return err
	}
	if err := cp.apiServer.startFirst(ctx, 1); err != nil {
		return err
	}
	if err := cp.controllerManager.startFirst(ctx, 1); err != nil {
		return err
	}
	return cp.waitForNamespaces(ctx)
}

// Stop kills every process of the plane and removes its directory. Calling it
// again, or after Detach, does nothing.
func (cp *ControlPlane) Stop() error {
	if !cp.end() {
		return nil
	}
	var failed []error
	for _, p := range cp.processes() {
		if err := p.Kill(); err != nil && !errors.Is(err, errNotRunning) && !errors.Is(err, ErrExistingCluster) {
			failed = append(failed, err)
		}
	}
	return errors.Join(append(failed, cp.guard.finish())...)
}

// end marks the plane as over; it is true for the first caller only.
func (cp *ControlPlane) end() bool {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	first := !cp.over
	cp.over = true
	return first
}

// processes are all processes of the plane, clients before servers.
func (cp *ControlPlane) processes() []*Process {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	all := append([]*Process(nil), cp.commands...)
	for _, p := range []*Process{cp.controllerManager, cp.apiServer, cp.etcd} {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// Etcd is the data base's process.
func (cp *ControlPlane) Etcd() *Process { return cp.etcd }

// APIServer is kube-apiserver's process. After Kill or Stop, Start brings it
// back at the same address with the same data.
func (cp *ControlPlane) APIServer() *Process { return cp.apiServer }

// ControllerManager is kube-controller-manager's process.
func (cp *ControlPlane) ControllerManager() *Process { return cp.controllerManager }

// Dir is the plane's own directory, which Stop removes.
func (cp *ControlPlane) Dir() string { return cp.dir }

// Version is the release that was asked for; an existing cluster may have
// another.
func (cp *ControlPlane) Version() string { return cp.options.Version }

// Existing says whether this is a cluster that was there before.
func (cp *ControlPlane) Existing() bool { return cp.existing }

// Admin is a client configuration that may do everything and is not slowed
// down by client-side limits. The caller owns the copy.
func (cp *ControlPlane) Admin() *rest.Config { return rest.CopyConfig(cp.admin.Config) }

// AdminKubeconfig is the same as a kubeconfig file's content.
func (cp *ControlPlane) AdminKubeconfig() []byte {
	return append([]byte(nil), cp.admin.Kubeconfig...)
}

// AdminKubeconfigFile is a file with that content in the plane's directory.
func (cp *ControlPlane) AdminKubeconfigFile() string {
	return filepath.Join(cp.dir, "admin.kubeconfig")
}

// AuditLog is the file to which the API server appends one JSON event per
// request, if Options.Audit asks for it; else "".
func (cp *ControlPlane) AuditLog() string {
	if cp.options.Audit == AuditNone {
		return ""
	}
	return filepath.Join(cp.dir, "audit.log")
}
