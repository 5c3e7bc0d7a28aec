// Package nfs_test follows origin and mirror volumes to their data: a real
// NFS server exports a directory, and a real NFS client goes where the volumes
// of a real control plane point. Both run in user space, so that the kernel
// needs no NFS.
package nfs_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mooring-k8s/mooring/test/controlplane"
)

// The binder looks again soon at an origin claim that was faster than its volume.
var plane = &controlplane.Shared{Options: controlplane.Options{CrossNamespace: true, BinderSyncPeriod: time.Second}}

func TestMain(m *testing.M) {
	if lack, err := exec.Command("./need.sh").Output(); err != nil {
		if len(lack) == 0 {
			lack = fmt.Appendln(nil, err)
		}
		fmt.Fprintf(os.Stderr, "The tests of NFS data cannot run: %s", lack)
		os.Exit(1)
	}
	ctrl.SetLogger(logr.Discard()) // the tests' client has nothing to say
	os.Exit(controlplane.Run(m, plane))
}
