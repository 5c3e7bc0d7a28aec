package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// version is stamped by the build (-ldflags -X main.version=…).
var version = "devel"

// usageError is a flag that cannot be used; the program has done nothing.
type usageError struct{ error }

// flags are the command line as given; see newCommand for what each means.
type flags struct {
	kubeconfig        string
	provisionerName   string
	instance          string
	namespaceSelector string
	unknownDrivers    string
	workers           int
	kubeAPIQPS        float32
	kubeAPIBurst      int
	metricsAddress    string
	probeAddress      string
	pprofAddress      string
	leaderElect       bool
	leaseNamespace    string
	logFormat         string
	logLevel          string
	adopt             string
	maxRevocations    string
	brakeConfigMap    string
}

// choices are the flags that were checked and parsed.
type choices struct {
	names    mooringapi.Names
	selector labels.Selector // nil: all namespaces
	// maxRevocations and maxRevokedPercent are how much may be revoked in 10
	// minutes before deletions stop; the larger counts.
	maxRevocations    int
	maxRevokedPercent int
}

func newCommand() *cobra.Command {
	var f flags
	command := &cobra.Command{
		Use:   "mooring-controller",
		Short: "Bind claims to mirrors of volumes that other namespaces share",
		Long: "mooring-controller is the PVC mirror provisioner: it binds a claim that names a claim of\n" +
			"another namespace to a volume that reaches the same data, if that claim's owner granted it.",
		Args:          noArgs,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			chosen, err := f.check()
			if err != nil {
				return usageError{err}
			}
			return serve(command.Context(), f, chosen)
		},
	}
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	f.register(command.Flags())
	command.CompletionOptions.DisableDefaultCmd = true // the image has no shell
	command.AddCommand(newCleanupCommand())
	return command
}

// noArgs refuses what is no flag.
func noArgs(command *cobra.Command, args []string) error {
	if err := cobra.NoArgs(command, args); err != nil {
		return usageError{err}
	}
	return nil
}

// registerInstallation registers what says which installation it is.
func (f *flags) registerInstallation(set *pflag.FlagSet) {
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file; unset: $KUBECONFIG, then the Pod's service account")
	set.StringVar(&f.provisionerName, "provisioner-name", mooringapi.DefaultProvisioner,
		"name that classes, annotations, the finalizer and the condition start with; choose it before the first claim")
	set.StringVar(&f.instance, "instance", "mooring", "this installation's name; names the lease, and is recorded on the volumes it makes")
	set.BoolVar(&f.leaderElect, "leader-elect", true, "work only while holding the lease")
	set.StringVar(&f.leaseNamespace, "leader-election-namespace", os.Getenv("POD_NAMESPACE"), "namespace of the lease; unset: the Pod's")
}

func (f *flags) register(set *pflag.FlagSet) {
	f.registerInstallation(set)
	set.StringVar(&f.namespaceSelector, "namespace-selector", "", "label selector of the namespaces whose claims are served; empty: all")
	set.StringVar(&f.unknownDrivers, "unknown-drivers", "share",
		"volumes of drivers without a recipe: share (the same handle, if the driver needs no attaching) or refuse")
	set.IntVar(&f.workers, "workers", 16, "claims worked on at once")
	set.Float32Var(&f.kubeAPIQPS, "kube-api-qps", 0, "requests a second to the API server; 0: as its own priority and fairness allows")
	set.IntVar(&f.kubeAPIBurst, "kube-api-burst", 0, "burst above --kube-api-qps; 0: twice that")
	set.StringVar(&f.metricsAddress, "metrics-bind-address", ":8080", "address of /metrics; 0: none")
	set.StringVar(&f.probeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0: none")
	set.StringVar(&f.pprofAddress, "pprof-bind-address", "0",
		"loopback address of /debug/pprof such as 127.0.0.1:6060, for kubectl port-forward; 0: none")
	set.StringVar(&f.adopt, "adopt", "Report",
		"mirrors that CrownLabs' provisioner made: Report (record them, revoke none), Enforce (as its own) or Off (leave them alone)")
	set.StringVar(&f.maxRevocations, "max-revocations", "20,5%",
		"how many mirrors, or which part of all, may be revoked in 10 minutes before deletions stop; the larger counts")
	set.StringVar(&f.brakeConfigMap, "brake-configmap", "mooring-brake",
		"ConfigMap of the Pod's namespace that records a stop of deletions")
	set.StringVar(&f.logFormat, "log-format", "json", "json or text")
	set.StringVar(&f.logLevel, "log-level", "info", "info or debug")
}

// check returns the parsed flags, or everything that is wrong with them.
func (f *flags) check() (choices, error) {
	chosen, installationErr := f.checkInstallation()
	selector, selectorErr := f.selector()
	count, percent, revocationsErr := ParseMaxRevocations(f.maxRevocations)
	if revocationsErr != nil {
		revocationsErr = fmt.Errorf("--max-revocations %w", revocationsErr)
	}
	chosen.selector, chosen.maxRevocations, chosen.maxRevokedPercent = selector, count, percent
	return chosen, errors.Join(installationErr, selectorErr, f.checkWords(), f.checkNumbers(), revocationsErr, f.checkBrake(), f.checkPprof())
}

// checkInstallation checks what says which installation it is.
func (f *flags) checkInstallation() (choices, error) {
	names, err := mooringapi.NewNames(f.provisionerName)
	if err != nil {
		err = fmt.Errorf("--provisioner-name: %w", err)
	}
	return choices{names: names}, errors.Join(err, f.checkLease())
}

// selector returns the namespaces to be served; nil means all.
func (f *flags) selector() (labels.Selector, error) {
	if f.namespaceSelector == "" {
		return nil, nil
	}
	selector, err := labels.Parse(f.namespaceSelector)
	if err != nil {
		return nil, fmt.Errorf("--namespace-selector %q: expected a label selector such as team=lab: %w", f.namespaceSelector, err)
	}
	return selector, nil
}

func (f *flags) checkWords() error {
	var problems []error
	for _, choice := range []struct {
		flag, value string
		words       []string
	}{
		{"unknown-drivers", f.unknownDrivers, []string{"share", "refuse"}},
		{"adopt", f.adopt, []string{"Report", "Enforce", "Off"}},
		{"log-format", f.logFormat, []string{"json", "text"}},
		{"log-level", f.logLevel, []string{"info", "debug"}},
	} {
		if !slices.Contains(choice.words, choice.value) {
			problems = append(problems, fmt.Errorf("--%s %q: expected %s", choice.flag, choice.value, strings.Join(choice.words, " or ")))
		}
	}
	return errors.Join(problems...)
}

func (f *flags) checkNumbers() error {
	var problems []error
	if f.workers < 1 {
		problems = append(problems, fmt.Errorf("--workers %d: expected at least 1", f.workers))
	}
	if f.kubeAPIQPS < 0 || f.kubeAPIBurst < 0 {
		problems = append(problems, fmt.Errorf("--kube-api-qps %v, --kube-api-burst %d: expected no negative number", f.kubeAPIQPS, f.kubeAPIBurst))
	}
	return errors.Join(problems...)
}

func (f *flags) checkLease() error {
	var problems []error
	if len(validation.IsDNS1123Subdomain(f.instance)) > 0 {
		problems = append(problems, fmt.Errorf("--instance %q: expected a DNS subdomain such as the Helm release's name", f.instance))
	}
	if f.leaderElect && f.leaseNamespace == "" {
		problems = append(problems, errors.New("--leader-election-namespace is empty and POD_NAMESPACE is not set: "+
			"name the lease's namespace, or use --leader-elect=false"))
	}
	return errors.Join(problems...)
}

func (f *flags) checkBrake() error {
	if len(validation.IsDNS1123Subdomain(f.brakeConfigMap)) > 0 {
		return fmt.Errorf("--brake-configmap %q: expected the name of a ConfigMap such as mooring-brake", f.brakeConfigMap)
	}
	return nil
}

// checkPprof refuses an address that others could reach: profiles show what is
// in memory, and taking one costs time.
func (f *flags) checkPprof() error {
	if f.pprofAddress == "0" {
		return nil
	}
	address, err := netip.ParseAddrPort(f.pprofAddress)
	if err != nil || !address.Addr().IsLoopback() {
		return fmt.Errorf("--pprof-bind-address %q: expected a loopback address and a port such as 127.0.0.1:6060 or [::1]:6060, or 0 for none; "+
			"kubectl port-forward reaches it from elsewhere", f.pprofAddress)
	}
	return nil
}

// buildVersion returns the stamped version, or what the Go toolchain knows.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && version == "devel" && info.Main.Version != "" {
		return info.Main.Version
	}
	return version
}
