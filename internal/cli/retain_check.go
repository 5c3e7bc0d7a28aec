package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mooring-k8s/mooring/internal/retain"
)

func newRetainCheck(e Env) *cobra.Command {
	var out output
	var manifests manifestFlags
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Check manifests of retained volumes, without a cluster",
		Long: `Check manifests of retained volumes, without a cluster and without credentials.

Every problem is told at once, with the path of its field. A manifest that
passes is one v1 PersistentVolume with an explicit Retain, a complete claimRef,
an explicit class and a source that can be compared with other volumes.`,
		Example: "  mooring retain check examples/retained-nfs.yaml --policy policy.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			if err := out.check(); err != nil {
				return err
			}
			return check(e, files, &out, &manifests)
		},
	}
	out.flags(cmd, "retain-check.schema.json")
	manifests.flags(cmd)
	return cmd
}

func check(e Env, files []string, out *output, manifests *manifestFlags) error {
	overlap, err := manifests.overlaps()
	if err != nil {
		return err
	}
	checked, err := manifests.read(files)
	if err != nil {
		return err
	}
	refused := refusal(checked)
	if refused == nil {
		refused = retain.CheckSet(manifestsOf(checked), overlap)
	}
	err = out.print(e.Out, map[string]any{"files": checked}, func(w io.Writer) { printChecked(w, checked) })
	if refused == nil {
		return err
	}
	return refused
}

func printChecked(w io.Writer, checked []checkedFile) {
	for _, c := range checked {
		if c.OK {
			fmt.Fprintf(w, "%s: ok\n  volume    %s\n  reaches   %s\n  manifest  %s\n", c.File, c.Name, strings.Join(c.Backends, ", "), c.Digest)
			continue
		}
		fmt.Fprintf(w, "%s: %d problem(s)\n", c.File, len(c.Problems))
	}
}
