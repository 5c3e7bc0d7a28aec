package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mooring-k8s/mooring/internal/receipt"
	"github.com/mooring-k8s/mooring/internal/retain"
)

// kubeconfigEnv is where a step finds the secret: a file of it would have to be
// removed, and could be read meanwhile.
const kubeconfigEnv = "MOORING_KUBECONFIG"

// ciFlags are what preview and create have in common.
type ciFlags struct {
	gateFlags
	cluster clusterFlags
	receipt string
	overlap []string
}

func (f *ciFlags) flags(cmd *cobra.Command) {
	f.gateFlags.flags(cmd, "run.schema.json")
	cmd.Flags().StringVarP(&f.receipt, "receipt", "o", "", "the `FILE` for the receipt; it must not exist, and not be in the checkout")
	cmd.Flags().StringSliceVar(&f.overlap, "allow-overlap", nil, "accept that this volume, `pv/NAME`, reaches a directory above or below; recorded")
	cmd.Flags().DurationVar(&f.cluster.timeout, "request-timeout", defaultRequestTimeout, "how long one request to the cluster may take")
}

func newCIPreview(e Env) *cobra.Command {
	var f ciFlags
	cmd := &cobra.Command{
		Use:   "preview --forge NAME --manifest PATHS",
		Short: "Pass the gate, then show what create would do, and the digest to approve",
		Long: `Passes the gate of mooring ci gate, then does what mooring retain preview does.

The kubeconfig is the content of $` + kubeconfigEnv + `, which is not looked at before the
gate is open; it is never written to a file. The result goes to the job's summary and
to the outputs plan-digest, outcome and reason.`,
		Example: "  mooring ci preview --forge github --manifest volumes/projects.yaml -o \"$RUNNER_TEMP/preview.json\"",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), e, func(ctx context.Context, p *prepared) (receipt.Receipt, error) {
				record, refused := retain.Preview(ctx, p.connection.client, p.manifests, p.options)
				if p.file != nil {
					if err := p.file.Write(record); err != nil {
						return record, &retain.Error{Reason: retain.ReceiptUnwritable, Message: err.Error(), Cause: err}
					}
				}
				return record, refused
			})
		},
	}
	f.flags(cmd)
	return cmd
}

func newCICreate(e Env) *cobra.Command {
	var f ciFlags
	var plan string
	cmd := &cobra.Command{
		Use:   "create --forge NAME --manifest PATHS --approved-plan DIGEST -o FILE",
		Short: "Pass the gate, then create the volumes, once, if the plan is the approved one",
		Long: `Passes the gate of mooring ci gate, then does what mooring retain create does with
--approved-plan. Another approval than that digest there is none: a person reads the
summary of a preview, and dispatches a run with the digest.`,
		Example: `  mooring ci create --forge github --manifest volumes/projects.yaml \
    --approved-plan "$APPROVED_PLAN" -o "$RUNNER_TEMP/create.json"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.receipt == "" {
				return usageError("--receipt: missing; a create without a record is none: name a new file with -o")
			}
			approval := retain.Approval{PlanDigest: plan}
			return f.run(cmd.Context(), e, func(ctx context.Context, p *prepared) (receipt.Receipt, error) {
				return retain.CreateVolumes(ctx, p.connection.client, p.manifests,
					retain.CreateOptions{Options: p.options, Approval: approval, Recorder: p.file})
			})
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&plan, "approved-plan", "", "the `DIGEST` that a preview printed and somebody approved")
	return cmd
}

// run passes the gate, takes the secret, acts, and tells the forge.
func (f *ciFlags) run(ctx context.Context, e Env, act func(context.Context, *prepared) (receipt.Receipt, error)) error {
	// The secret leaves the environment before git or anything else is started.
	f.cluster.source, f.cluster.content = "$"+kubeconfigEnv, os.Getenv(kubeconfigEnv)
	if err := os.Unsetenv(kubeconfigEnv); err != nil {
		return fmt.Errorf("take %s out of the environment: %w", kubeconfigEnv, err)
	}
	p, err := f.pass(ctx, e, false)
	if err != nil {
		return err
	}
	ready, err := f.ready(e, p)
	if err != nil {
		return errors.Join(err, tellForge(os.LookupEnv, runSummary(receipt.Receipt{Action: "run", Outcome: receipt.Refused}, err), runOutputs(receipt.Receipt{}, err)))
	}
	record, refused := act(ctx, ready)
	forgeErr := tellForge(os.LookupEnv, runSummary(record, refused), runOutputs(record, refused))
	if err := f.print(e.Out, record, func(w io.Writer) { printRecord(w, record) }); err != nil && refused == nil {
		return err
	}
	if refused != nil {
		return refused
	}
	return forgeErr
}

// ready does all that needs no cluster. The manifests are those that the gate saw.
func (f *ciFlags) ready(e Env, p *passed) (*prepared, error) {
	overlap, err := (&manifestFlags{overlap: f.overlap}).overlaps()
	if err != nil {
		return nil, err
	}
	checked, err := readAtCommit(f.checkout, p)
	if err != nil {
		return nil, err
	}
	plan := planFlags{clusterFlags: f.cluster, receipt: f.receipt}
	return plan.prepareChecked(e, checked, overlap)
}

// readAtCommit reads the manifests again, and sees that they are still what the
// gate compared with the commit.
func readAtCommit(checkout string, p *passed) ([]checkedFile, error) {
	checked := make([]checkedFile, 0, len(p.files))
	for _, file := range p.files {
		data, err := readFile(filepath.Join(checkout, filepath.FromSlash(file)), retain.MaxManifestBytes)
		if err != nil {
			return nil, &retain.Error{Reason: retain.ManifestInvalid, Message: err.Error(), Cause: err}
		}
		if receipt.DigestBytes(data) != p.digests[file] {
			return nil, &retain.Error{Reason: retain.ManifestInvalid, Message: file + ": changed after the gate looked at it; expected the file of the commit"}
		}
		checked = append(checked, checkManifest(file, data, p.policy))
	}
	return checked, nil
}
