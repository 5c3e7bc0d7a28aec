package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/mooring-k8s/mooring/internal/receipt"
	"github.com/mooring-k8s/mooring/internal/retain"
)

func newRetainVerify(e Env) *cobra.Command {
	var out output
	var cluster clusterFlags
	cmd := &cobra.Command{
		Use:   "verify RECEIPT",
		Short: "Verify a receipt, and with a kubeconfig whether the live volumes still match it",
		Long: `Verify a receipt: its schema and every digest in it. It is not signed: this
proves that the receipt is whole, not who wrote it.

With --kubeconfig also the live volumes are compared with it, field by field.
What a volume's life brings is no drift: the binding to the claim, proven by the
claim's UID, the phase, known finalizers, labels and annotations of other tools.`,
		Example: "  mooring retain verify receipt.json --kubeconfig retain.kubeconfig",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			return verify(cmd.Context(), e, args[0], verifyFlags{&out, &cluster})
		},
	}
	out.flags(cmd, "retain-verify.schema.json")
	cluster.flags(cmd)
	return cmd
}

type verifyFlags struct {
	*output
	*clusterFlags
}

// verification is what verify prints for machines.
type verification struct {
	Receipt receipt.Receipt  `json:"receipt"`
	Live    *retain.Verified `json:"live,omitempty"`
}

func verify(ctx context.Context, e Env, file string, f verifyFlags) error {
	record, err := readReceipt(file)
	if err != nil {
		return err
	}
	found := verification{Receipt: record}
	var refused error
	if f.kubeconfig != "" {
		connection, err := f.connect(e, time.Now())
		if err != nil {
			return err
		}
		connection.printNotes(e.Err)
		var live retain.Verified
		live, refused = retain.Verify(ctx, connection.client, record, connection.access)
		found.Live = &live
		f.printRequests(e.Err, connection)
	}
	if err := f.print(e.Out, found, func(w io.Writer) { printVerification(w, found) }); err != nil && refused == nil {
		return err
	}
	return refused
}

func printVerification(w io.Writer, v verification) {
	r := v.Receipt
	fmt.Fprintf(w, "receipt      whole: schema, manifests and plan digest agree; not signed\n")
	fmt.Fprintf(w, "action       %s, begun %s\noutcome      %s\n", r.Action, r.StartedAt, r.Outcome)
	if r.Reason != "" {
		fmt.Fprintf(w, "reason       %s: %s\n", r.Reason, r.Message)
	}
	for _, volume := range r.Volumes {
		fmt.Fprintf(w, "volume       %s: %s\n", volume.Planned.Name, volume.Outcome)
	}
	if v.Live == nil {
		return
	}
	for _, note := range v.Live.Notes {
		fmt.Fprintln(w, "note:", note)
	}
	for _, volume := range v.Live.Volumes {
		fmt.Fprintf(w, "live volume  %s %s\n", volume.Name, volume.State)
		if volume.Compared && len(volume.Drift) == 0 {
			fmt.Fprintln(w, "  no drift")
		}
		for _, drift := range volume.Drift {
			fmt.Fprintf(w, "  drift      %s\n", drift)
		}
		for _, other := range volume.OtherMetadata {
			fmt.Fprintf(w, "  others'    %s\n", other)
		}
	}
}
