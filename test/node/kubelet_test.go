//go:build linux

package node

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/test/controlplane"
	"github.com/mooring-k8s/mooring/test/node/sandbox"
)

// node is a mount namespace with containerd, a kubelet and the test drivers.
type node struct {
	name    string
	address netip.Addr
	dir     string
	group   string
	holder  *controlplane.Process // keeps the mount namespace
	kubelet *controlplane.Process
}

// private are the directories that each node has its own of.
var private = []string{"run", "var/lib", "var/log"}

// join starts a node and waits until it is Ready and knows the drivers.
func (c *cluster) join(ctx context.Context, name string, number int) error {
	n := &node{name: name, address: netip.AddrFrom4([4]byte{10, 99, 0, byte(number)}), dir: filepath.Join(c.box.Dir, name)}
	c.nodes = append(c.nodes, n)
	if err := sandbox.AddAddress(number, n.address); err != nil {
		return err
	}
	for _, step := range []func(context.Context, *node) error{c.startHolder, c.startContainerd, c.startKubelet, c.startDrivers} {
		if err := step(ctx, n); err != nil {
			return err
		}
	}
	return poll(ctx, "Ready, with the drivers", func(ctx context.Context) string { return c.unready(ctx, n) })
}

func (c *cluster) unready(ctx context.Context, n *node) string {
	object, csi := &corev1.Node{}, &storagev1.CSINode{}
	if err := c.Get(ctx, client.ObjectKey{Name: n.name}, object); err != nil {
		return err.Error()
	}
	if err := c.Get(ctx, client.ObjectKey{Name: n.name}, csi); err != nil {
		return err.Error()
	}
	switch {
	case !isReady(object):
		return fmt.Sprintf("not Ready: %v", object.Status.Conditions)
	case len(object.Spec.Taints) > 0:
		return fmt.Sprintf("tainted: %v", object.Spec.Taints)
	case len(csi.Spec.Drivers) != len(drivers):
		return fmt.Sprintf("its drivers: %v", csi.Spec.Drivers)
	}
	return ""
}

// startHolder makes the mount namespace. The node's own directories are mounted
// before everything is made shared: later they would be peers of the ones that
// they cover, and every volume would be mounted twice.
func (c *cluster) startHolder(ctx context.Context, n *node) error {
	var err error
	if n.group, err = c.box.MakeGroup(n.name); err != nil {
		return err
	}
	script := "set -e\n"
	for _, name := range private {
		own := filepath.Join(n.dir, name)
		if err := os.MkdirAll(own, 0o755); err != nil {
			return err
		}
		script += fmt.Sprintf("mount --bind %q /%s\n", own, name)
	}
	ready := filepath.Join(n.dir, "ready")
	script += fmt.Sprintf("mount --make-rshared /\n: >%q\nexec sleep infinity\n", ready)
	n.holder, err = c.start(ctx, controlplane.Command{
		Name: "node-" + n.name, Path: "unshare", Args: []string{"--mount", "--propagation", "private", "sh", "-c", script},
		Ready: func(context.Context) error { _, err := os.Stat(ready); return err },
	})
	return err
}

// inside is a command as it is to be run in the node's mount namespace.
func (n *node) inside(name string, args ...string) []string {
	return append([]string{fmt.Sprintf("--mount=/proc/%d/ns/mnt", n.holder.PID()), "--", name}, args...)
}

func (c *cluster) startContainerd(ctx context.Context, n *node) error {
	config := filepath.Join(n.dir, "containerd.toml")
	if err := os.WriteFile(config, []byte(c.containerdConfig(n)), 0o644); err != nil {
		return err
	}
	// The kubelet wants some network to be configured; the Pods here use the
	// node's, so that the plugin is never called.
	cni := filepath.Join(n.dir, "cni", "10-none.conflist")
	if err := os.MkdirAll(filepath.Dir(cni), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(cni, []byte(`{"cniVersion":"1.0.0","name":"none","plugins":[{"type":"loopback"}]}`), 0o644); err != nil {
		return err
	}
	socket := filepath.Join(n.dir, "run/containerd/containerd.sock")
	ctr := filepath.Join(c.programs, "ctr")
	_, err := c.start(ctx, controlplane.Command{
		Name: "containerd-" + n.name, Path: "nsenter", Args: n.inside(filepath.Join(c.programs, "containerd"), "-c", config),
		Env: append(os.Environ(), "PATH="+c.programs+":"+os.Getenv("PATH")),
		Ready: func(ctx context.Context) error {
			return exec.CommandContext(ctx, ctr, "-a", socket, "version").Run()
		},
	})
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, ctr, "-a", socket, "-n", "k8s.io", "images", "import", filepath.Join(c.box.Dir, "image.tar")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("import the image: %w: %s", err, out)
	}
	return nil
}

// containerdConfig: a container may not lower its score for the kernel's
// out-of-memory killer where this machine is a container itself.
func (c *cluster) containerdConfig(n *node) string {
	return fmt.Sprintf(`version = 3
root = '/var/lib/containerd'
state = '/run/containerd'
disabled_plugins = ['io.containerd.nri.v1.nri', 'io.containerd.tracing.processor.v1.otlp', 'io.containerd.internal.v1.tracing']

[grpc]
  address = '/run/containerd/containerd.sock'

[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '%s'

[plugins.'io.containerd.cri.v1.runtime']
  disable_apparmor = true
  restrict_oom_score_adj = true

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
    BinaryName = '%s/runc'
    SystemdCgroup = false

[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['%s']
  conf_dir = '%s/cni'
`, imageName, c.programs, c.programs, n.dir)
}

const healthPort = 10248

func (c *cluster) startKubelet(ctx context.Context, n *node) error {
	kubeconfig, err := c.kubeconfig(ctx, "system:node:"+n.name, "system:nodes")
	if err != nil {
		return err
	}
	config := filepath.Join(n.dir, "kubelet.yaml")
	if err := os.WriteFile(config, []byte(n.kubeletConfig()), 0o644); err != nil {
		return err
	}
	n.kubelet, err = c.start(ctx, controlplane.Command{
		Name: "kubelet-" + n.name, Path: "nsenter",
		Args: n.inside(filepath.Join(c.kubeBin, "kubelet"), "--config="+config, "--kubeconfig="+kubeconfig,
			"--cert-dir=/var/lib/kubelet/pki", "--hostname-override="+n.name, "--node-ip="+n.address.String(), "--v=2"),
		Ready: n.healthy,
	})
	return err
}

func (n *node) healthy(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s:%d/healthz", n.address, healthPort), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the kubelet's health: %s", response.Status)
	}
	_ = response.Body.Close()
	return err
}

func (n *node) kubeletConfig() string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: %s
enforceNodeAllocatable: []
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
address: %s
healthzBindAddress: %s
healthzPort: %d
resolvConf: ""
failSwapOn: false
makeIPTablesUtilChains: false
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%", imagefs.inodesFree: "0%%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
volumePluginDir: /var/lib/kubelet/volumeplugins
nodeStatusUpdateFrequency: 5s
syncFrequency: 10s
`, n.group, n.address, n.address, healthPort)
}

// startDrivers runs the drivers' node parts beside the kubelet.
func (c *cluster) startDrivers(ctx context.Context, n *node) error {
	for _, d := range drivers {
		_, err := c.start(ctx, controlplane.Command{
			Name: d.process(n.name), Path: "nsenter",
			Args: n.inside(filepath.Join(c.programs, "driver"), "-name="+d.name, "-kind="+d.kind, "-node="+n.name, "-data="+c.data()),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// mounts are the paths at which something is mounted on the node.
func (n *node) mounts() []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", n.holder.PID()))
	if err != nil {
		return []string{"unknown: " + err.Error()}
	}
	var paths []string
	for line := range strings.Lines(string(text)) {
		paths = append(paths, strings.Fields(line)[4])
	}
	return paths
}
