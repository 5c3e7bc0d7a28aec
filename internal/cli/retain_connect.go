package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/mooring-k8s/mooring/internal/kubeconfig"
	"github.com/mooring-k8s/mooring/internal/retain"
	"github.com/mooring-k8s/mooring/internal/strictyaml"
)

// clusterFlags lead to a cluster.
type clusterFlags struct {
	kubeconfig string
	timeout    time.Duration
	verbose    bool
	// content is the kubeconfig itself, of which source says where it is from;
	// only where there is no file.
	content, source string
}

const defaultRequestTimeout = 30 * time.Second

func (f *clusterFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "the kubeconfig `FILE`; no other place is looked at, $KUBECONFIG neither")
	cmd.Flags().DurationVar(&f.timeout, "request-timeout", defaultRequestTimeout, "how long one request may take")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "print on stderr how many requests were sent")
}

// connection is a client and what was noticed on the way to it.
type connection struct {
	client *retain.Client
	access retain.AccessFacts
	notes  []string
}

// connect checks the kubeconfig against the contract. It sends nothing.
func (f *clusterFlags) connect(e Env, now time.Time) (*connection, error) {
	if f.timeout <= 0 {
		return nil, usageError("--request-timeout: is %s; expected more than 0", f.timeout)
	}
	source, data, err := f.readKubeconfig()
	if err != nil {
		return nil, err
	}
	access, err := kubeconfig.Parse(data, now)
	if err != nil {
		return nil, &retain.Error{Reason: retain.KubeconfigRefused, Message: kubeconfigProblems(source, err), Cause: err}
	}
	client, err := retain.Connect(access, retain.ClientOptions{Timeout: f.timeout, Version: e.version()})
	if err != nil {
		return nil, &retain.Error{Reason: retain.KubeconfigRefused, Message: err.Error(), Cause: err}
	}
	return &connection{
		client: client,
		access: retain.AccessFacts{Server: access.Server, CADigest: access.CADigest},
		notes:  append(access.Notes, ignoredProxies(os.LookupEnv)...),
	}, nil
}

// readKubeconfig returns the kubeconfig, and where it is from.
func (f *clusterFlags) readKubeconfig() (string, []byte, error) {
	switch {
	case f.source != "" && f.content == "":
		return "", nil, &retain.Error{Reason: retain.KubeconfigRefused, Message: f.source + ": is empty; expected the kubeconfig, as a secret of the repository or environment"}
	case f.source != "":
		return f.source, []byte(f.content), nil
	case f.kubeconfig == "":
		return "", nil, usageError("--kubeconfig: missing; expected a file as mooring retain kubeconfig writes it")
	}
	data, err := readFile(f.kubeconfig, kubeconfig.MaxBytes)
	if err != nil {
		return "", nil, &retain.Error{Reason: retain.KubeconfigRefused, Message: err.Error(), Cause: err}
	}
	return f.kubeconfig, data, nil
}

func kubeconfigProblems(file string, err error) string {
	var problems strictyaml.Problems
	if errors.As(err, &problems) {
		return prefixed(file, problems)
	}
	return file + ": " + err.Error()
}

// ignoredProxies says which proxy variables are set: a person who set one
// expects it to be used.
func ignoredProxies(lookup func(string) (string, bool)) []string {
	var notes []string
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		if value, _ := lookup(name); value != "" {
			notes = append(notes, name+" is set and ignored: the connection to the cluster is direct")
		}
	}
	return notes
}

func (c *connection) printNotes(w io.Writer) {
	for _, note := range c.notes {
		fmt.Fprintln(w, "note:", note)
	}
}

// printRequests tells how much was asked of the API server.
func (f *clusterFlags) printRequests(w io.Writer, c *connection) {
	if f.verbose {
		single, pages := c.client.Requests()
		fmt.Fprintf(w, "requests: %d, and %d page(s) of the list of volumes\n", single, pages)
	}
}
