//go:build linux

// Package node sees mirrors through to the end: Pods in two namespaces, on real
// kubelets with a real scheduler, containerd and runc, read and write the same
// data through an origin and a mirror that the real controller and the real
// binder made.
package node

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/mooring-k8s/mooring/test/node/sandbox"
)

// shared is the cluster of all tests.
var shared *cluster

func TestMain(m *testing.M) {
	os.Exit(sandbox.Run(func(box sandbox.Sandbox) int { return run(m, box) }))
}

func run(m *testing.M, box sandbox.Sandbox) (code int) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var err error
	if shared, err = startCluster(ctx, box); err != nil {
		fmt.Fprintln(os.Stderr, "start a cluster:", err)
		return 1
	}
	code = m.Run()
	if left := shared.mounts(func(string) bool { return true }); len(left) > 0 {
		fmt.Fprintln(os.Stderr, "still mounted when all tests are over:", left)
		code = max(code, 1)
	}
	if code != 0 {
		shared.showLogs(25)
	}
	if err := shared.plane.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the control plane:", err)
		code = max(code, 1)
	}
	return code
}

// say tells what is going on.
func say(format string, args ...any) { fmt.Printf("node: "+format+"\n", args...) }
