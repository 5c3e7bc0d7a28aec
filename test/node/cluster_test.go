//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
	"github.com/mooring-k8s/mooring/test/demo/installation"
	"github.com/mooring-k8s/mooring/test/node/image"
	"github.com/mooring-k8s/mooring/test/node/sandbox"
)

// patience is how long a test waits for what takes seconds. It only matters when
// something is wrong.
const patience = 2 * time.Minute

// imageName is the name of the one image, for Pods' sandboxes too.
const imageName = "mooring.test/workload:1"

// cluster is a control plane with the chart's controller, a scheduler and nodes.
type cluster struct {
	client.Client
	box      sandbox.Sandbox
	root     string // of the checkout
	programs string // containerd, runc, and this module's own
	kubeBin  string
	plane    *controlplane.ControlPlane
	install  *installation.Installation
	nodes    []*node
}

func startCluster(ctx context.Context, box sandbox.Sandbox) (*cluster, error) {
	began := time.Now()
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	c := &cluster{box: box, root: root, programs: filepath.Join(root, ".cache", "node")}
	// The lifecycle controller takes the taint off a node that is ready; the
	// other decides what needs attaching: nothing, here.
	c.plane, err = controlplane.Start(ctx, controlplane.Options{
		CrossNamespace: true,
		Controllers:    []string{"node-lifecycle-controller", "persistentvolume-attach-detach-controller"},
	})
	if err != nil {
		return nil, err
	}
	c.kubeBin = filepath.Join(root, ".cache", "controlplane", c.plane.Version())
	say("Kubernetes %s is up after %s", c.plane.Version(), since(began))
	for _, step := range []func(context.Context) error{c.prepare, c.startScheduler, c.installChart} {
		if err := step(ctx); err != nil {
			c.showLogs(25)
			return nil, errors.Join(err, c.plane.Stop())
		}
	}
	say("scheduler and the chart's controller run after %s", since(began))
	for i, name := range []string{"n1", "n2"} {
		if err := c.join(ctx, name, i+1); err != nil {
			c.showLogs(25)
			return nil, errors.Join(fmt.Errorf("node %s: %w", name, err), c.plane.Stop())
		}
		say("%d of 2 nodes Ready after %s", i+1, since(began))
	}
	return c, nil
}

// prepare makes the client, the image and what the cluster knows of the drivers.
func (c *cluster) prepare(ctx context.Context) error {
	var err error
	if c.Client, err = client.New(c.plane.Admin(), client.Options{}); err != nil {
		return err
	}
	if err := image.Write(filepath.Join(c.box.Dir, "image.tar"), imageName, filepath.Join(c.programs, "workload")); err != nil {
		return err
	}
	for _, d := range drivers {
		attach := false
		object := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: d.name}, Spec: storagev1.CSIDriverSpec{AttachRequired: &attach}}
		if err := c.Create(ctx, object); err != nil {
			return err
		}
	}
	return os.MkdirAll(c.data(), 0o755)
}

// data is what the volumes hold: all nodes see it, as they would a file server.
func (c *cluster) data() string { return filepath.Join(c.box.Dir, "data") }

func (c *cluster) startScheduler(ctx context.Context) error {
	kubeconfig, err := c.kubeconfig(ctx, "system:kube-scheduler")
	if err != nil {
		return err
	}
	_, err = c.start(ctx, controlplane.Command{
		Name: "kube-scheduler", Path: filepath.Join(c.kubeBin, "kube-scheduler"),
		Args: []string{
			"--kubeconfig=" + kubeconfig,
			"--leader-elect=false", "--bind-address=127.0.0.1", "--cert-dir=" + c.box.Dir,
		},
	})
	return err
}

// endingClass is a class whose claims are deleted soon after their grant has
// ended; those of the chart's own are not.
const endingClass = "pvc-mirror-ending"

func (c *cluster) installChart(ctx context.Context) error {
	var err error
	c.install, err = installation.Start(ctx, c.plane, c.root, chart.Options{Values: map[string]any{
		"image":              map[string]any{"repository": "registry.test/mooring-controller"},
		"allowClaimDeletion": true,
		"extraClassNames":    []any{endingClass},
	}})
	if err != nil {
		return err
	}
	return c.Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: endingClass, Annotations: map[string]string{
			names.OnRevoke(): mooringapi.OnRevokeDelete, names.RevokeAfter(): "1s",
		}},
		Provisioner: names.Provisioner(),
	})
}

// start starts a program as a process of the plane, which ends with it.
func (c *cluster) start(ctx context.Context, command controlplane.Command) (*controlplane.Process, error) {
	process, err := c.plane.Command(command)
	if err != nil {
		return nil, err
	}
	return process, process.Start(ctx)
}

// kubeconfig writes the kubeconfig of a user with a client certificate.
func (c *cluster) kubeconfig(ctx context.Context, user string, groups ...string) (string, error) {
	identity, err := c.plane.User(ctx, user, groups...)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.box.Dir, strings.ReplaceAll(user, ":", "-")+".kubeconfig")
	return path, identity.WriteKubeconfig(path)
}

// mounts are the volumes' mounts on all nodes that are of interest, as
// node:path.
func (c *cluster) mounts(interesting func(path string) bool) []string {
	var found []string
	for _, n := range c.nodes {
		for _, path := range n.mounts() {
			isVolume := strings.Contains(path, "kubernetes.io~csi") || strings.HasSuffix(path, "/globalmount")
			if isVolume && interesting(path) {
				found = append(found, n.name+":"+path)
			}
		}
	}
	return found
}

func (c *cluster) showLogs(lines int) {
	names := []string{"kube-scheduler", "mooring-controller"}
	for _, n := range c.nodes {
		names = append(names, "containerd-"+n.name, "kubelet-"+n.name)
		for _, d := range drivers {
			names = append(names, d.process(n.name))
		}
	}
	for _, name := range names {
		fmt.Printf("--- %s\n%s\n", name, c.plane.LogTail(name, lines))
	}
}

// poll asks until the answer is "", which is nothing to complain of.
func poll(ctx context.Context, what string, complaint func(context.Context) string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	last := ""
	for {
		now := complaint(ctx)
		if now == "" {
			return nil
		}
		if last == "" || ctx.Err() == nil {
			last = now // not that the time is up
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s: %s", what, patience, last)
		case <-ticker.C:
		}
	}
}

func since(began time.Time) string { return fmt.Sprintf("%.1f s", time.Since(began).Seconds()) }

func isReady(n *corev1.Node) bool {
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
