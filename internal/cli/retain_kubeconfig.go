package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mooring-k8s/mooring/internal/kubeconfig"
	"github.com/mooring-k8s/mooring/internal/retain"
)

func newRetainKubeconfig(e Env) *cobra.Command {
	var o kubeconfig.BuildOptions
	var ca, token string
	cmd := &cobra.Command{
		Use:   "kubeconfig --server URL --ca FILE --token-file FILE",
		Short: "Print a kubeconfig that the other commands accept",
		Long: `Print a kubeconfig that satisfies the contract of the other commands: one
cluster, one user, one context; embedded certificates and token; https.

It holds the token: write it to a file that only you can read (umask 077).`,
		Example: "  mooring retain kubeconfig --server https://api.example.com:6443 --ca ca.crt --token-file token > retain.kubeconfig",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return printKubeconfig(e, o, ca, token)
		},
	}
	cmd.Flags().StringVar(&o.Server, "server", "", "the https `URL` of the API server")
	cmd.Flags().StringVar(&o.TLSServerName, "tls-server-name", "", "the `NAME` in the server's certificate, if it is not the URL's host")
	cmd.Flags().StringVar(&ca, "ca", "", "the `FILE` with the PEM certificates of the server's authority")
	cmd.Flags().StringVar(&token, "token-file", "", "the `FILE` with the token")
	return cmd
}

func printKubeconfig(e Env, o kubeconfig.BuildOptions, ca, token string) error {
	for _, flag := range []struct{ name, value string }{{"--server", o.Server}, {"--ca", ca}, {"--token-file", token}} {
		if flag.value == "" {
			return usageError("%s: missing; expected --server, --ca and --token-file", flag.name)
		}
	}
	var err error
	if o.CA, err = readFile(ca, kubeconfig.MaxBytes); err != nil {
		return usageError("--ca: %v", err)
	}
	secret, err := readFile(token, kubeconfig.MaxBytes)
	if err != nil {
		return usageError("--token-file: %v", err)
	}
	o.Token, o.Now = string(secret), time.Now()
	data, err := kubeconfig.Build(o)
	if err != nil {
		return &retain.Error{Reason: retain.KubeconfigRefused, Message: err.Error(), Cause: err}
	}
	fmt.Fprintf(e.Out, "%s", data)
	return nil
}
