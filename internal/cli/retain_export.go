package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mooring-k8s/mooring/internal/retain"
)

func newRetainExport(e Env) *cobra.Command {
	var cluster clusterFlags
	cmd := &cobra.Command{
		Use:   "export pv/NAME",
		Short: "Print the reviewable manifest of a live volume",
		Long: `Print the reviewable manifest of a live volume, so that it can be put under
retention: without what servers and controllers write, with the policy Retain and
a claimRef without UID. What was left out is told on stderr. The cluster is only
read.`,
		Example: "  mooring retain export pv/projects --kubeconfig retain.kubeconfig > projects.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return export(cmd.Context(), e, args[0], &cluster)
		},
	}
	cluster.flags(cmd)
	return cmd
}

func export(ctx context.Context, e Env, arg string, cluster *clusterFlags) error {
	name, isVolume := strings.CutPrefix(arg, "pv/")
	if !isVolume || name == "" || strings.Contains(name, "/") {
		return usageError("argument: is %q; expected pv/NAME", arg)
	}
	connection, err := cluster.connect(e, time.Now())
	if err != nil {
		return err
	}
	connection.printNotes(e.Err)
	exported, err := retain.Export(ctx, connection.client, name)
	cluster.printRequests(e.Err, connection)
	if err != nil {
		return err
	}
	for _, note := range exported.Notes {
		fmt.Fprintln(e.Err, "note:", note)
	}
	fmt.Fprintf(e.Out, "%s", exported.YAML)
	if len(exported.Problems) > 0 {
		return &retain.Error{Reason: retain.ManifestInvalid, Cause: exported.Problems,
			Message: "the manifest is printed, and must be changed before it is accepted:\n" + exported.Problems.Error()}
	}
	return nil
}
