// Package docs_test runs what the pages and examples show: every manifest is
// applied to a real API server, every kubectl command runs, claims that are said
// to be bound are bound, grants that are said to let somebody in do, and links
// lead somewhere.
package docs_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mooring-k8s/mooring/test/controlplane"
	"github.com/mooring-k8s/mooring/test/demo/kubectl"
)

var plane = &controlplane.Shared{Options: controlplane.Options{CrossNamespace: true}}

func TestMain(m *testing.M) {
	kubectl.Become()
	ctrl.SetLogger(logr.Discard()) // of the clients that install the chart
	os.Exit(controlplane.Run(m, plane))
}

// skipOnExistingCluster keeps the namespaces, volumes and permissions of the
// pages out of somebody's cluster.
func skipOnExistingCluster(t *testing.T) {
	t.Helper()
	if os.Getenv(controlplane.ExistingClusterEnv) == "true" {
		t.Skip("the pages are followed on a cluster of their own only")
	}
}
