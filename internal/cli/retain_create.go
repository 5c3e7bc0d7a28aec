package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mooring-k8s/mooring/internal/receipt"
	"github.com/mooring-k8s/mooring/internal/retain"
)

// approvalFlags say by what right a create goes on.
type approvalFlags struct {
	plan    string
	preview string
	without bool
	maxAge  time.Duration
}

func (f *approvalFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.plan, "approved-plan", "", "the `DIGEST` that a preview printed and somebody approved")
	cmd.Flags().StringVar(&f.preview, "approved", "", "the receipt `FILE` of a preview that somebody approved")
	cmd.Flags().BoolVar(&f.without, "without-approval", false, "create whatever the plan says; for people at a terminal, and recorded")
	cmd.Flags().DurationVar(&f.maxAge, "max-preview-age", 24*time.Hour, "how old the preview of --approved may be")
	cmd.MarkFlagsMutuallyExclusive("approved-plan", "approved", "without-approval")
}

func (f *approvalFlags) approval() (retain.Approval, error) {
	approval := retain.Approval{PlanDigest: f.plan, MaxAge: f.maxAge, Without: f.without}
	if f.preview == "" {
		return approval, nil
	}
	record, err := readReceipt(f.preview)
	if err != nil {
		return retain.Approval{}, err
	}
	approval.Preview = &record
	return approval, nil
}

func readReceipt(file string) (receipt.Receipt, error) {
	data, err := readFile(file, receipt.MaxBytes)
	if err != nil {
		return receipt.Receipt{}, &retain.Error{Reason: retain.ReceiptInvalid, Message: err.Error(), Cause: err}
	}
	record, err := receipt.Decode(data)
	if err != nil {
		return receipt.Receipt{}, &retain.Error{Reason: retain.ReceiptInvalid, Message: file + ": " + err.Error(), Cause: err}
	}
	return record, nil
}

func newRetainCreate(e Env) *cobra.Command {
	var f planFlags
	var approval approvalFlags
	cmd := &cobra.Command{
		Use:   "create FILE...",
		Short: "Create the volumes, once, if the plan is the approved one",
		Long: `Create the volumes, once, if the plan is the approved one.

Create previews again and goes on only if the plan digest is the approved one. It
sends one POST per volume and never repeats it, reads back, and writes the
receipt before it reports success. Several volumes are all planned before the
first is created; the first that fails ends the run.`,
		Example: `  mooring retain create examples/retained-nfs.yaml --kubeconfig retain.kubeconfig \
    --approved-plan sha256:... -o receipt.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			return create(cmd.Context(), e, createRequest{files, &f, &approval})
		},
	}
	f.flags(cmd)
	approval.flags(cmd)
	return cmd
}

type createRequest struct {
	files    []string
	plan     *planFlags
	approval *approvalFlags
}

func create(ctx context.Context, e Env, r createRequest) error {
	if r.plan.receipt == "" {
		return usageError("--receipt: missing; a create without a record is none: name a new file with -o")
	}
	approval, err := r.approval.approval()
	if err != nil {
		return err
	}
	if err := approval.Check(time.Now()); err != nil {
		return err
	}
	p, err := r.plan.prepare(e, r.files)
	if err != nil {
		return err
	}
	record, refused := retain.CreateVolumes(ctx, p.connection.client, p.manifests,
		retain.CreateOptions{Options: p.options, Approval: approval, Recorder: p.file})
	r.plan.printRequests(e.Err, p.connection)
	out := e.Out
	if reason := reasonOf(refused); reason == retain.ReceiptUnfinished || reason == retain.ReceiptUnwritable {
		out = e.Err // facts, and no result: nothing is reported without its receipt
	}
	return r.plan.printOutcome(out, record, refused)
}

func reasonOf(err error) retain.Reason {
	if err == nil {
		return ""
	}
	return retain.ReasonOf(err)
}
