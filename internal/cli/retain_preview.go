package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mooring-k8s/mooring/internal/receipt"
	"github.com/mooring-k8s/mooring/internal/retain"
)

// planFlags are what preview and create have in common.
type planFlags struct {
	output
	manifestFlags
	clusterFlags
	receipt     string
	allowExcess bool
}

func (f *planFlags) flags(cmd *cobra.Command) {
	f.output.flags(cmd, "run.schema.json")
	f.manifestFlags.flags(cmd)
	f.clusterFlags.flags(cmd)
	cmd.Flags().StringVarP(&f.receipt, "receipt", "o", "", "the `FILE` for the receipt; it must not exist")
	cmd.Flags().BoolVar(&f.allowExcess, "allow-excess-permissions", false, "go on although the identity could change or delete volumes; recorded")
}

// prepared is a run that is ready to send its first request.
type prepared struct {
	manifests  []retain.Manifest
	connection *connection
	options    retain.Options
	file       *receipt.File // nil without --receipt
}

// prepare does all that needs no cluster, in the order of blame: command line,
// manifests, kubeconfig, receipt.
func (f *planFlags) prepare(e Env, files []string) (*prepared, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	overlap, err := f.overlaps()
	if err != nil {
		return nil, err
	}
	checked, err := f.read(files)
	if err != nil {
		return nil, err
	}
	return f.prepareChecked(e, checked, overlap)
}

// prepareChecked is prepare for manifests that were read.
func (f *planFlags) prepareChecked(e Env, checked []checkedFile, overlap []string) (*prepared, error) {
	if err := refusal(checked); err != nil {
		return nil, err
	}
	var err error
	p := &prepared{manifests: manifestsOf(checked)}
	if p.connection, err = f.connect(e, time.Now()); err != nil {
		return nil, err
	}
	p.connection.printNotes(e.Err)
	p.options = retain.Options{
		Access: p.connection.access, AllowOverlap: overlap, AllowExcess: f.allowExcess,
		Version: e.version(), Notes: p.connection.notes,
	}
	if f.receipt != "" {
		if p.file, err = receipt.Reserve(f.receipt); err != nil {
			return nil, &retain.Error{Reason: retain.ReceiptUnwritable, Message: err.Error(), Cause: err}
		}
	}
	return p, nil
}

func newRetainPreview(e Env) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "preview FILE...",
		Short: "Show what create would do, and the digest to approve; writes nothing",
		Long: `Show what create would do, and the digest of that plan. Writes nothing.

Preview proves that the identity cannot change or delete volumes, compares the
manifest with the live volume, its claim and every other volume of the cluster,
and lets the server dry-run the create. The plan digest is that of the situation:
the same whenever and by whomever it is previewed, and another one as soon as
manifest, cluster, claim or plan change.`,
		Example: "  mooring retain preview examples/retained-nfs.yaml --kubeconfig retain.kubeconfig -o preview.json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			return preview(cmd.Context(), e, files, &f)
		},
	}
	f.flags(cmd)
	return cmd
}

func preview(ctx context.Context, e Env, files []string, f *planFlags) error {
	p, err := f.prepare(e, files)
	if err != nil {
		return err
	}
	record, refused := retain.Preview(ctx, p.connection.client, p.manifests, p.options)
	f.printRequests(e.Err, p.connection)
	if p.file != nil {
		if err := p.file.Write(record); err != nil {
			return &retain.Error{Reason: retain.ReceiptUnwritable, Message: err.Error(), Cause: err}
		}
	}
	return f.printOutcome(e.Out, record, refused)
}

// printOutcome prints a run and returns how it ended, which counts more than
// that it could not be printed.
func (f *planFlags) printOutcome(w io.Writer, record receipt.Receipt, refused error) error {
	if err := f.print(w, record, func(w io.Writer) { printRecord(w, record) }); err != nil && refused == nil {
		return err
	}
	return refused
}

// printRecord tells people what a run found and did.
func printRecord(w io.Writer, r receipt.Receipt) {
	if c := r.Cluster; c != nil {
		fmt.Fprintf(w, "cluster      %s, %s at %s\n", c.UID, c.Version, c.Server)
	}
	if r.Caller != nil {
		fmt.Fprintf(w, "caller       %s\n", r.Caller.Username)
	}
	if p := r.Permissions; p != nil && p.ExcessAllowed {
		fmt.Fprintf(w, "permissions  more than needed, allowed: %s\n", strings.Join(p.Excess, "; "))
	}
	for _, v := range r.Volumes {
		printVolume(w, v)
	}
	if r.PlanDigest != "" {
		fmt.Fprintf(w, "plan digest  %s\n", r.PlanDigest)
	}
	fmt.Fprintf(w, "outcome      %s\n", r.Outcome)
}

func printVolume(w io.Writer, v receipt.Volume) {
	fmt.Fprintf(w, "volume       %s: %s\n", v.Planned.Name, v.Outcome)
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "  %-10s %s\n", name, text)
		}
	}
	line("reaches", strings.Join(v.Planned.Backends, ", "))
	line("claim", claimText(v.Planned.Claim))
	if v.Live != nil {
		line("live", strings.Join(slices.DeleteFunc([]string{v.Live.Phase, "UID " + v.Live.UID, "resourceVersion " + v.Live.ResourceVersion}, isEmpty), ", "))
	}
	if v.Planned.DryRunDigest != "" && v.Reason == "" {
		line("dry run", "stores exactly the manifest")
	}
	line("mirrors", strings.Join(v.Planned.Mirrors, ", "))
	line("overlaps", strings.Join(v.Planned.AllowedOverlaps, ", "))
	line("others'", strings.Join(v.OtherMetadata, ", "))
	line("reason", v.Reason)
}

func isEmpty(text string) bool { return text == "" }

func claimText(c receipt.Claim) string {
	text := c.Namespace + "/" + c.Name
	if !c.Present {
		return text + ", not there yet"
	}
	return fmt.Sprintf("%s, %s, UID %s", text, c.Phase, c.UID)
}
