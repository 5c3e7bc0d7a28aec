package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

func newRetain(e Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retain",
		Short: "Put a volume that must never be lost under Kubernetes' care",
		Long: `Put a volume that must never be lost under Kubernetes' care.

  check     a manifest, offline
  preview   what create would do, and the digest of that plan; writes nothing
  create    the volume, once, if the plan is the approved one
  verify    a receipt, and whether the live volume is still what it says
  export    a live volume as a manifest, to put it under retention
  kubeconfig  writes the only kind of kubeconfig that these commands accept

Nothing is ever patched or deleted. What does not match exactly is refused, with
a reason and an exit code of its own (docs/exit-codes.md). The whole is explained
in docs/retained-volumes.md.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRetainCheck(e), newRetainPreview(e), newRetainCreate(e),
		newRetainVerify(e), newRetainExport(e), newRetainKubeconfig(e))
	return cmd
}

// output is how a command prints what it found.
type output struct{ format string }

// flags adds the flag; the schema says what is printed for machines.
func (o *output) flags(cmd *cobra.Command, schema string) {
	cmd.Flags().StringVar(&o.format, "format", "text", "text for people, json for machines as docs/"+schema+" says")
	completeTo(cmd, "format", "text", "json")
}

// print writes value as JSON, or what forPeople writes. Run notices if it cannot
// be written.
func (o *output) print(w io.Writer, value any, forPeople func(io.Writer)) error {
	switch o.format {
	case "text":
		var text strings.Builder
		forPeople(&text)
		fmt.Fprint(w, printable(text.String()))
		return nil
	case "json":
		return encode(w, o.format, value)
	}
	return o.check()
}

// check refuses an unknown format before anything is done.
func (o *output) check() error {
	if o.format != "text" && o.format != "json" {
		return usageError("--format: is %q; expected text or json", o.format)
	}
	return nil
}
