package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"

	"github.com/mooring-k8s/mooring/internal/inventory"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// provisionerVariable names the provisioner where the flag does not.
const provisionerVariable = "MOORING_PROVISIONER_NAME"

// peopleFlags lead to a cluster as kubectl's own flags do, and to the
// installation of Mooring that is meant.
type peopleFlags struct {
	config      *genericclioptions.ConfigFlags
	provisioner string
	verbose     bool
}

// flags adds them to a command, with what a shell completes them to.
func (f *peopleFlags) flags(cmd *cobra.Command, e Env) {
	f.config = genericclioptions.NewConfigFlags(true)
	f.config.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&f.provisioner, "provisioner-name", os.Getenv(provisionerVariable),
		"the provisioner name of the installation that is meant; unset: $"+provisionerVariable+", then the one installed, then "+mooringapi.DefaultProvisioner)
	cmd.Flags().BoolVar(&f.verbose, "requests", false, "print on stderr how many requests were sent, and how long it took")
	f.complete(cmd, e)
}

// session is a cluster that a command talks to.
type session struct {
	*inventory.Cluster
	// namespace is the one that the command line or the kubeconfig names.
	namespace string
	began     time.Time
	sent      *requests
	env       Env
	verbose   bool
	// assumed says that the provisioner name is a guess.
	assumed bool
}

// nowhere is where client-go turns to if nothing names a cluster.
const nowhere = "http://localhost:8080"

// open connects to the cluster. Only where the provisioner name has to be found
// out is anything asked.
func (f *peopleFlags) open(ctx context.Context, e Env) (*session, error) {
	began := time.Now()
	config, err := f.config.ToRESTConfig()
	if err != nil {
		return nil, usageError("find the cluster: %v; name a kubeconfig with --kubeconfig or $KUBECONFIG", err)
	}
	if config.Host == nowhere && *f.config.APIServer == "" {
		return nil, usageError("no cluster is named: name a kubeconfig with --kubeconfig or $KUBECONFIG")
	}
	config.QPS, config.Burst = -1, 0 // the server's own priority and fairness decides
	config.UserAgent = "mooring/" + e.version()
	config.WarningHandler = quiet{}
	sent := &requests{}
	config.Wrap(sent.count)
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	namespace, _, err := f.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("find the namespace: %w", err)
	}
	names, known, err := f.names(ctx, api)
	if err != nil {
		return nil, err
	}
	cluster := &inventory.Cluster{API: api, Names: names}
	return &session{Cluster: cluster, namespace: namespace, began: began, sent: sent, env: e, verbose: f.verbose, assumed: !known}, nil
}

// requests counts the requests that are sent to the API server, of whatever kind.
type requests struct{ atomic.Int64 }

func (r *requests) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		r.Add(1)
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// quiet drops the API server's warnings: they are about the objects of others.
type quiet struct{}

func (quiet) HandleWarningHeader(int, string, string) {}

// chartLabel marks what Mooring's chart installs.
const chartLabel = "app.kubernetes.io/name=mooring"

// names returns the names of the installation that is meant, and whether that is
// known.
func (f *peopleFlags) names(ctx context.Context, api kubernetes.Interface) (mooringapi.Names, bool, error) {
	name, known := f.provisioner, true
	if name == "" {
		var err error
		if name, known, err = installedName(ctx, api); err != nil {
			return mooringapi.Names{}, false, err
		}
	}
	names, err := mooringapi.NewNames(name)
	if err != nil {
		return names, false, usageError("--provisioner-name: %v", err)
	}
	return names, known, nil
}

// installedName returns the provisioner name of the only installation whose
// class was made by the chart; the default, as a guess, where there is none or
// classes cannot be read. Of several, one has to be named: a grant that is
// written for another grants nothing.
func installedName(ctx context.Context, api kubernetes.Interface) (string, bool, error) {
	classes, err := api.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{LabelSelector: chartLabel})
	if err != nil {
		return mooringapi.DefaultProvisioner, false, nil //nolint:nilerr // what is read next says what is wrong, or nothing needs classes
	}
	var found []string
	for _, class := range classes.Items {
		found = append(found, class.Provisioner)
	}
	slices.Sort(found)
	switch found = slices.Compact(found); len(found) {
	case 0:
		return mooringapi.DefaultProvisioner, false, nil
	case 1:
		return found[0], true, nil
	}
	return "", false, usageError("Mooring is installed under several names: choose one with --provisioner-name or $%s: %s", provisionerVariable, strings.Join(found, ", "))
}

// claimArg reads NAMESPACE/CLAIM, or CLAIM in the session's namespace.
func (s *session) claimArg(arg string) (types.NamespacedName, error) {
	namespace, name, found := strings.Cut(arg, "/")
	if !found {
		namespace, name = s.namespace, arg
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return types.NamespacedName{}, usageError("%q: expected NAMESPACE/CLAIM, or CLAIM in the namespace of -n", arg)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// done tells what could not be seen, and how much was asked.
func (s *session) done(w io.Writer) {
	if hidden := s.Hidden(); len(hidden) > 0 {
		fmt.Fprintf(w, "note: not visible to you: %s\n", strings.Join(hidden, ", "))
	}
	if s.assumed {
		fmt.Fprintf(w, "note: the provisioner name is not visible to you; %s is assumed. For another: --provisioner-name or $%s\n", s.Names.Provisioner(), provisionerVariable)
	}
	if s.verbose {
		fmt.Fprintf(w, "requests: %d, %s\n", s.sent.Load(), time.Since(s.began).Round(time.Millisecond))
	}
}
