package chaos_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mooring-k8s/mooring/test/chaos/proxy"
	"github.com/mooring-k8s/mooring/test/chart"
	"github.com/mooring-k8s/mooring/test/controlplane"
	"github.com/mooring-k8s/mooring/test/model"
)

// room is how many planes there may be at once: a machine of two cores does no
// more in time.
var room = make(chan struct{}, 4)

// patience is how long a test waits for what should take a moment.
const patience = 120 * time.Second

// ownPlane starts a plane for one test, once there is room for it.
func ownPlane(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	room <- struct{}{}
	t.Cleanup(func() { <-room }) // after the plane's own end
	return controlplane.ForTest(t, controlplane.Options{CrossNamespace: true, BinderSyncPeriod: 2 * time.Second})
}

// installation is a release of the chart in a control plane: everything but the
// Pods, in whose place replicas run as processes, each behind a proxy of its own.
type installation struct {
	plane   *controlplane.ControlPlane
	objects []*unstructured.Unstructured
	token   string
}

// install installs this checkout's chart.
func install(t *testing.T, plane *controlplane.ControlPlane) *installation {
	t.Helper()
	return installFrom(t, plane, "")
}

// installFrom installs the chart of a directory; "" is this checkout's.
func installFrom(t *testing.T, plane *controlplane.ControlPlane, dir string) *installation {
	t.Helper()
	values := model.Values()
	values["image"] = map[string]any{"repository": "registry.invalid/mooring-controller"}
	values["maxRevocations"] = "100%"
	objects, err := chart.Render(chart.Options{Dir: dir, Values: values})
	noError(t, err, "render the chart")
	noError(t, chart.Apply(t.Context(), plane.Admin(), objects), "apply the chart")
	account, err := plane.ServiceAccount(t.Context(), chart.Namespace(objects), chart.ServiceAccountName(objects))
	noError(t, err, "get the controller's identity")
	return &installation{plane: plane, objects: objects, token: account.Config.BearerToken}
}

// proxy starts a proxy before the plane's API server.
func newProxy(t *testing.T, plane *controlplane.ControlPlane) *proxy.Proxy {
	t.Helper()
	p, err := proxy.Start(plane.Admin(), false)
	noError(t, err, "start a proxy")
	t.Cleanup(p.Close)
	return p
}

// replica is one controller process behind a proxy. As a kubelet does, whoever
// runs it starts it again when it ends.
type replica struct {
	process *controlplane.Process
	proxy   *proxy.Proxy
	follows chan struct{} // closed once nobody starts it again

	mutex    sync.Mutex
	wanted   bool
	restarts int
}

func (i *installation) replica(t *testing.T, pod string, extra ...string) *replica {
	t.Helper()
	return i.replicaOf(t, pod, "", extra...)
}

// replicaOf is a replica of another program than the one under test.
func (i *installation) replicaOf(t *testing.T, pod, binary string, extra ...string) *replica {
	t.Helper()
	if binary == "" {
		var err error
		binary, err = programs.program("mooring-controller")
		noError(t, err, "the controller")
	}
	r := &replica{proxy: newProxy(t, i.plane), follows: closedChannel()}
	kubeconfig := filepath.Join(i.plane.Dir(), pod+".kubeconfig")
	data, err := r.proxy.Kubeconfig(i.token)
	noError(t, err, "make the controller's kubeconfig")
	noError(t, os.WriteFile(kubeconfig, data, 0o600), "write the controller's kubeconfig")
	args := append(chart.ControllerArgs(i.objects), "--kubeconfig="+kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0")
	r.process, err = i.plane.Command(controlplane.Command{
		Name: pod, Path: binary, Args: append(args, extra...),
		Env: append(os.Environ(), chart.ControllerEnv(i.objects, pod)...),
	})
	noError(t, err, "prepare a replica")
	noError(t, r.Start(t.Context()), "start the controller")
	t.Cleanup(func() {
		noError(t, r.Kill(), "end the controller")
		noRaces(t, r.process.LogFile())
	})
	return r
}

// Start starts the process, and sees to it that it runs until Kill.
func (r *replica) Start(ctx context.Context) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.wanted, r.follows = true, make(chan struct{})
	err := r.process.Start(ctx)
	go r.follow(context.WithoutCancel(ctx), r.follows)
	return err
}

// follow starts the process again whenever it ends, until nobody wants it.
func (r *replica) follow(ctx context.Context, follows chan struct{}) {
	defer close(follows)
	for {
		if _, err := r.process.Wait(ctx); err != nil {
			return
		}
		<-time.After(100 * time.Millisecond) // a kubelet waits longer
		r.mutex.Lock()
		if !r.wanted {
			r.mutex.Unlock()
			return
		}
		r.restarts++
		err := r.process.Start(ctx)
		r.mutex.Unlock()
		if err != nil {
			return
		}
	}
}

// Kill ends the process without warning, for good.
func (r *replica) Kill() error {
	r.mutex.Lock()
	r.wanted = false
	err := r.process.Kill()
	if r.process.PID() == 0 {
		err = nil // it had ended already
	}
	r.mutex.Unlock()
	<-r.follows
	return err
}

// crash ends the process without warning; it comes back.
func (r *replica) crash() { _ = r.process.Kill() } // it may have ended already

// LogTail returns the end of the process's log.
func (r *replica) LogTail(lines int) string { return r.process.LogTail(lines) }

func (r *replica) comebacks() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.restarts
}

// fleet are replicas that are a controller together.
type fleet []*replica

// Start starts all of them.
func (f fleet) Start(ctx context.Context) error {
	for _, r := range f {
		if err := r.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Kill ends all of them.
func (f fleet) Kill() error {
	for _, r := range f {
		if err := r.Kill(); err != nil {
			return err
		}
	}
	return nil
}

// LogTail returns the ends of all logs.
func (f fleet) LogTail(lines int) string {
	var tails []string
	for _, r := range f {
		tails = append(tails, r.process.Name()+":\n"+r.LogTail(lines))
	}
	return strings.Join(tails, "\n")
}

func closedChannel() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func noRaces(tb testing.TB, logFile string) {
	tb.Helper()
	log, err := os.ReadFile(logFile)
	noError(tb, err, "read the controller's log")
	if at := strings.Index(string(log), "WARNING: DATA RACE"); at >= 0 {
		tb.Errorf("the controller has a data race:\n%.4000s", log[at:])
	}
}

func noError(tb testing.TB, err error, what string, args ...any) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%s: %v", fmt.Sprintf(what, args...), err)
	}
}

// until waits until a condition says "".
func until(t *testing.T, what string, condition func(ctx context.Context) string) {
	t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == "", nil
	})
	if err != nil {
		t.Fatalf("%s: not within %v: %s", what, patience, last)
	}
}
