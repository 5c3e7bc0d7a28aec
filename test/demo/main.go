// Command demo shows Mooring at work on a real control plane: it starts one,
// runs the controller with the chart's own permissions, applies the files of
// examples/, and tells each step. It fails if any step is not as told.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mooring-k8s/mooring/test/controlplane"
	"github.com/mooring-k8s/mooring/test/demo/kubectl"
)

const (
	exitFailure     = 1
	exitInterrupted = 130 // as a shell says it of a Ctrl-C
)

func main() {
	kubectl.Become()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	tell := newNarrator(os.Stdout)
	err := run(ctx, tell)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted:
		tell.done("Interrupted; what was started is stopped.")
		os.Exit(exitInterrupted)
	case err != nil:
		tell.failure(err)
		os.Exit(exitFailure)
	}
}

// run plays all scenes, and takes down what it started unless KEEP is set.
func run(ctx context.Context, tell *narrator) error {
	began := time.Now()
	if os.Getenv(controlplane.ExistingClusterEnv) == "true" {
		return fmt.Errorf("the demo writes namespaces and volumes of its own, so it brings its own cluster: unset %s", controlplane.ExistingClusterEnv)
	}
	tell.title("Mooring, on a real control plane")
	tell.say("etcd, kube-apiserver and kube-controller-manager with its volume binder are the real ones; no kubelet " +
		"runs, so nothing is mounted. Every command below is run as it stands, kubectl's by kubectl's own code, in " +
		"a directory of its own, so that nothing is left in yours.")
	s, err := open(ctx, tell)
	if err != nil {
		return err
	}
	err = s.play(ctx, scenes)
	if ctx.Err() == nil && isSet("KEEP") {
		err = errors.Join(err, s.leaveRunning())
	} else {
		err = errors.Join(err, s.plane.Stop())
	}
	if err == nil {
		tell.done("all as told, in %.1f s", time.Since(began).Seconds())
	}
	return err
}

func isSet(variable string) bool {
	value := os.Getenv(variable)
	return value != "" && value != "0" && value != "false"
}
