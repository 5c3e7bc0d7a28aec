package controlplane

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mooring-k8s/mooring/test/controlplane/internal/layout"
)

// CrossNamespaceGate is the alpha feature gate without which the API server
// drops a claim's dataSourceRef that names a namespace.
const CrossNamespaceGate = "CrossNamespaceVolumeDataSource"

// AuditLevel says how much of every request the API server's audit log keeps.
type AuditLevel string

// The audit levels. The zero value writes no audit log.
const (
	AuditNone     AuditLevel = ""
	AuditMetadata AuditLevel = "Metadata" // who did what to which object, and the answer's code
	AuditRequest  AuditLevel = "Request"  // and the request's body
)

// Options say what a control plane is like. The zero value is a plane of the
// default release with every alpha gate off, as a managed cluster has it.
type Options struct {
	// CrossNamespace turns CrossNamespaceGate on. Zero: off.
	CrossNamespace bool
	// FeatureGates are further gates of the API server and the controller
	// manager. Zero: Kubernetes' own defaults.
	FeatureGates map[string]bool
	// Version is the Kubernetes release, such as v1.36.3. Zero: the
	// environment's K8S_VERSION, else v1.37.2.
	Version string
	// Audit writes an audit log, see ControlPlane.AuditLog. Zero: none.
	Audit AuditLevel

	// APIServerArgs, ControllerManagerArgs and EtcdArgs are appended to the
	// command lines; a flag that takes one value replaces the plane's own.
	APIServerArgs, ControllerManagerArgs, EtcdArgs []string

	// Controllers run in addition to the volume binder, the two protection
	// controllers, namespace, garbage collector and service account.
	Controllers []string
	// ControllerQPS limits each controller's requests per second, with a burst
	// of twice as many. Zero: 500, so that the binder is not what a test
	// waits for. Kubernetes' own default is 20 (and a burst of 30); with it 400
	// claims took 58 s to bind, with 500 6 s.
	ControllerQPS int
	// BinderSyncPeriod is how often the binder looks at every claim and volume
	// again. Zero: Kubernetes' own default of 15 s. A longer period made 400
	// claims bind no faster.
	BinderSyncPeriod time.Duration

	// StartTimeout limits the time until everything is ready, at the first
	// start and at each later one. Zero: two minutes.
	StartTimeout time.Duration
	// TempDir is where the plane's directory is made. Zero: the system's
	// directory for temporary files.
	TempDir string
}

// controllers are what the tests need of kube-controller-manager.
var controllers = []string{
	"persistentvolume-binder-controller",
	"persistentvolume-protection-controller",
	"persistentvolumeclaim-protection-controller",
	"namespace-controller",
	"garbage-collector-controller",
	"serviceaccount-controller",
}

func (o Options) withDefaults() Options {
	if o.Version == "" {
		o.Version = layout.Version()
	}
	if o.ControllerQPS == 0 {
		o.ControllerQPS = 500
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 2 * time.Minute
	}
	return o
}

func (o Options) check() error {
	switch o.Audit {
	case AuditNone, AuditMetadata, AuditRequest:
		return nil
	default:
		return fmt.Errorf("audit level %q is not known; use %q or %q", o.Audit, AuditMetadata, AuditRequest)
	}
}

// featureGates is the flag of both servers. The gate this project cares about
// is always written, so that a log shows it.
func (o Options) featureGates() string {
	gates := map[string]bool{CrossNamespaceGate: o.CrossNamespace}
	maps.Copy(gates, o.FeatureGates)
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		parts = append(parts, fmt.Sprintf("%s=%t", name, gates[name]))
	}
	return "--feature-gates=" + strings.Join(parts, ",")
}
