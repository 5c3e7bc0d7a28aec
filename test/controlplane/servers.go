package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mooring-k8s/mooring/test/controlplane/internal/layout"
)

// The names of the plane's own processes.
const (
	EtcdName              = layout.Etcd
	APIServerName         = layout.APIServer
	ControllerManagerName = layout.ControllerManager
)

const loopback = "127.0.0.1"

// binaries is the directory of the release's binaries.
func binaries(version string) (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	root, err := layout.Root(wd)
	if err != nil {
		return "", fmt.Errorf("look for the control plane's binaries: %w", err)
	}
	dir := layout.Dir(root, version)
	stamp, err := layout.ReadStamp(dir)
	if err != nil {
		return "", err
	}
	for _, name := range []string{layout.Etcd, layout.APIServer, layout.ControllerManager} {
		if stamp.Has(dir, name) {
			continue
		}
		command := "make controlplane"
		if version != layout.DefaultVersion {
			command += " " + layout.VersionEnv + "=" + version
		}
		return "", fmt.Errorf("%s of Kubernetes %s is not built: run %q first", name, version, command)
	}
	return dir, nil
}

func address(port int) string { return fmt.Sprintf("https://%s:%d", loopback, port) }

func (cp *ControlPlane) newEtcd(bin string) *Process {
	p := cp.newProcess(EtcdName)
	p.command = func() (Command, error) {
		client, peer := address(p.ports[0]), address(p.ports[1])
		args := []string{
			"--name=etcd",
			"--data-dir=" + cp.etcdDir(),
			"--unsafe-no-fsync", // a test's data need not survive the machine
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=etcd=" + peer,
			"--client-cert-auth", "--trusted-ca-file=" + cp.pki.etcdCA.certFile,
			"--cert-file=" + cp.pki.etcdServing.certFile, "--key-file=" + cp.pki.etcdServing.keyFile,
			"--peer-client-cert-auth", "--peer-trusted-ca-file=" + cp.pki.etcdCA.certFile,
			"--peer-cert-file=" + cp.pki.etcdServing.certFile, "--peer-key-file=" + cp.pki.etcdServing.keyFile,
		}
		return Command{Path: filepath.Join(bin, EtcdName), Args: append(args, cp.options.EtcdArgs...)}, nil
	}
	p.ready = func(ctx context.Context) error {
		return probe(ctx, cp.pki.etcdClientTLS(), address(p.ports[0])+"/health")
	}
	return p
}

func (cp *ControlPlane) newAPIServer(bin string) *Process {
	p := cp.newProcess(APIServerName)
	p.command = func() (Command, error) {
		// The admin's kubeconfig names the port, which is known only now.
		if err := cp.makeAdmin(); err != nil {
			return Command{}, err
		}
		args := []string{
			"--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(p.ports[0]),
			"--advertise-address=" + loopback,
			"--endpoint-reconciler-type=none", // loopback must not be an endpoint
			"--service-cluster-ip-range=10.0.0.0/24",
			"--etcd-servers=" + address(cp.etcd.ports[0]),
			"--etcd-cafile=" + cp.pki.etcdCA.certFile,
			"--etcd-certfile=" + cp.pki.etcdClient.certFile, "--etcd-keyfile=" + cp.pki.etcdClient.keyFile,
			"--tls-cert-file=" + cp.pki.serving.certFile, "--tls-private-key-file=" + cp.pki.serving.keyFile,
			"--client-ca-file=" + cp.pki.ca.certFile,
			"--authorization-mode=Node,RBAC",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + cp.pki.serviceAccounts.certFile,
			"--service-account-signing-key-file=" + cp.pki.serviceAccounts.keyFile,
			"--allow-privileged=true",
			// Otherwise open watches hold a graceful stop for a minute.
			"--shutdown-watch-termination-grace-period=1s",
			cp.options.featureGates(),
		}
		if log := cp.AuditLog(); log != "" {
			args = append(args, "--audit-log-path="+log, "--audit-policy-file="+cp.auditPolicyFile(),
				"--audit-log-maxsize=0") // never rotated: one file has it all
		}
		return Command{Path: filepath.Join(bin, APIServerName), Args: append(args, cp.options.APIServerArgs...)}, nil
	}
	p.ready = func(ctx context.Context) error {
		return probe(ctx, cp.pki.adminTLS(), address(p.ports[0])+"/readyz")
	}
	return p
}

func (cp *ControlPlane) newControllerManager(bin string) *Process {
	p := cp.newProcess(ControllerManagerName)
	p.command = func() (Command, error) {
		kubeconfig, err := cp.controllerManagerKubeconfig()
		if err != nil {
			return Command{}, err
		}
		args := []string{
			"--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(p.ports[0]),
			"--tls-cert-file=" + cp.pki.serving.certFile, "--tls-private-key-file=" + cp.pki.serving.keyFile,
			"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--client-ca-file=" + cp.pki.ca.certFile,
			"--cluster-signing-cert-file=" + cp.pki.ca.certFile, "--cluster-signing-key-file=" + cp.pki.ca.keyFile,
			"--controllers=" + strings.Join(append(controllers[:len(controllers):len(controllers)], cp.options.Controllers...), ","),
			"--use-service-account-credentials=true", // each controller with its own role, as in a real cluster
			"--leader-elect=false",                   // after a kill nobody waits for a lease
			"--kube-api-qps=" + strconv.Itoa(cp.options.ControllerQPS),
			"--kube-api-burst=" + strconv.Itoa(2*cp.options.ControllerQPS),
			cp.options.featureGates(),
		}
		if period := cp.options.BinderSyncPeriod; period != 0 {
			args = append(args, "--pvclaimbinder-sync-period="+period.String())
		}
		return Command{Path: filepath.Join(bin, ControllerManagerName), Args: append(args, cp.options.ControllerManagerArgs...)}, nil
	}
	p.ready = func(ctx context.Context) error {
		// It answers well before its controllers are made, and until they are
		// it dies of an API server that is away. So wait to see the binder.
		return probe(ctx, cp.pki.adminTLS(), address(p.ports[0])+"/healthz?verbose", "[+]"+controllers[0])
	}
	return p
}

func (cp *ControlPlane) auditPolicyFile() string { return filepath.Join(cp.dir, "audit-policy.yaml") }

// writeAuditPolicy asks for one event per request, when it is answered.
func (cp *ControlPlane) writeAuditPolicy() error {
	if cp.options.Audit == AuditNone {
		return nil
	}
	policy := fmt.Sprintf(`apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: %s
`, cp.options.Audit)
	return os.WriteFile(cp.auditPolicyFile(), []byte(policy), 0o600)
}
