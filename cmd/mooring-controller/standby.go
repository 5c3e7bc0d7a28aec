package main

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/mooring-k8s/mooring/internal/controller/cleanup"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// tellOfCleanup says in the log that a cleanup holds the lease: whoever installs
// Mooring again soon after it was uninstalled would see Pods that are ready and
// do nothing. What cannot be read is the leader election's to report.
func tellOfCleanup(ctx context.Context, log logr.Logger, config *rest.Config, f flags, names mooringapi.Names) {
	if !f.leaderElect {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	api, err := cleanup.Connect(config, types.NamespacedName{Namespace: f.leaseNamespace, Name: leaseName(f.instance, names.Provisioner())})
	if err != nil {
		return
	}
	lease, err := api.GetLease(ctx)
	if err != nil || !cleanup.IsCleanup(ptr.Deref(lease.Spec.HolderIdentity, "")) {
		return
	}
	log.Info("a cleanup holds the lease: this replica stands by until it has run out; "+
		"to start Mooring again after it was uninstalled, delete the lease",
		"lease", api.LeaseName(), "heldForSeconds", ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))
}
