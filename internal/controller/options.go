// Package controller makes happen what internal/mirror decides: three small
// reconcilers (claim, volume, origin) over one set of informers. The cache
// wakes and refuses; a yes and every deletion are confirmed by live reads.
package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// Options are what an installation chooses.
type Options struct {
	Names mooringapi.Names
	// Instance is the installation's name, recorded on the volumes it makes.
	Instance string
	// NamespaceSelector limits the namespaces whose claims are served; nil means
	// all of them.
	NamespaceSelector labels.Selector
	// RefuseUnknownDrivers refuses drivers that the table of recipes does not know.
	RefuseUnknownDrivers bool
	// Workers is how many claims are worked on at once; at least 1.
	Workers int
	// OwnNamespace is where the controller runs and may ask the API server, by a
	// dry run, which form of reference it keeps; "" leaves that unknown.
	OwnNamespace string
	// Adopt is what is done with mirror volumes of a provisioner that had the name
	// before.
	Adopt Adoption
	// MaxRevocations is how many mirrors may lose their grant within ten minutes
	// before no claim is deleted any more, and BrakeName the ConfigMap of
	// OwnNamespace where that is recorded.
	MaxRevocations mirror.Limit
	BrakeName      string
	// Version is the program's, for the metrics.
	Version string
	// Metrics is where the controller's metrics are registered.
	Metrics prometheus.Registerer
}
