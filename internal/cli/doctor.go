package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mooring-k8s/mooring/internal/doctor"
)

// diagnosis is what doctor prints for machines.
type diagnosis struct {
	Provisioner string           `json:"provisioner"`
	Findings    []doctor.Finding `json:"findings"`
	// Unseen are the checks that could not see all that they look at: that they
	// found nothing says nothing.
	Unseen []string `json:"unseen,omitempty"`
	// NotVisible is what could not be looked at with the rights of who asks.
	NotVisible []string `json:"notVisible,omitempty"`
}

func newDoctor(e Env) *cobra.Command {
	var people peopleFlags
	var output, receipts string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look a cluster over for what keeps mirrors from working",
		Long: `Look a cluster over for everything that keeps claims from being mirrored, and mirrors from being
what they should be: references, classes, the controller and its rights, policies that can deny its
volumes, the chart's own policies and fences (are they there, bound, do they deny?), drivers without a
recipe, handles that are shared, mirrors that lost their grant or are looked after by nobody, origins
whose deletion is held, deletions that were stopped. With --receipts also retained volumes that are
no longer what their receipts say.

It only reads (and asks by dry run), and says what it could not see. It ends with 0 if nothing is
wrong, and with the exit code of "problems" if anything is.`,
		Example: "  mooring doctor\n  mooring doctor --receipts receipts/ -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			session, err := people.open(cmd.Context(), e)
			if err != nil {
				return err
			}
			found, err := examine(cmd.Context(), session, receipts)
			if err != nil {
				return err
			}
			if err := printDiagnosis(e.Out, found, output); err != nil {
				return err
			}
			session.done(e.Err)
			return found.verdict()
		},
	}
	people.flags(cmd, e)
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml, as docs/doctor.schema.json says; text for people without it")
	completeTo(cmd, "output", "json", "yaml")
	cmd.Flags().StringVar(&receipts, "receipts", "", "a `DIR` of receipts to compare with the live volumes")
	_ = cmd.MarkFlagDirname("receipts") // the flag exists
	return cmd
}

func examine(ctx context.Context, s *session, receipts string) (diagnosis, error) {
	patient, err := doctor.Read(ctx, s.Cluster, s.namespace)
	if err != nil {
		return diagnosis{}, err
	}
	patient.Command = s.env.version()
	found := diagnosis{Provisioner: s.Names.Provisioner(), Findings: patient.Findings(time.Now()), Unseen: patient.Unseen(), NotVisible: patient.Hidden}
	if receipts != "" {
		drifted, err := checkReceipts(ctx, s, receipts)
		if err != nil {
			return diagnosis{}, err
		}
		found.Findings = append(found.Findings, drifted...)
	}
	if found.Findings == nil {
		found.Findings = []doctor.Finding{}
	}
	return found, nil
}

// verdict is the command's end.
func (d diagnosis) verdict() error {
	problems := 0
	for _, finding := range d.Findings {
		if finding.Level == doctor.Problem {
			problems++
		}
	}
	if problems == 0 {
		return nil
	}
	return &end{ending: endProblems}
}

func printDiagnosis(w io.Writer, d diagnosis, format string) error {
	if format != "" {
		return encode(w, format, d)
	}
	t := terminalOf(w)
	p := &prose{width: t.width}
	by := map[string][]doctor.Finding{}
	for _, finding := range d.Findings {
		by[finding.Check] = append(by[finding.Check], finding)
	}
	for _, check := range append(doctor.Checks(), receiptsCheck) {
		switch {
		case slices.Contains(d.Unseen, check):
			p.hang("unseen  ", "        ", check+": not all that it looks at is visible to you")
		case len(by[check]) == 0 && check != receiptsCheck:
			p.hang("ok      ", "        ", check)
		}
		for _, finding := range by[check] {
			p.finding(finding)
		}
	}
	_, err := io.WriteString(w, p.text.String())
	return err
}

// finding adds one finding, and below it what to do.
func (p *prose) finding(f doctor.Finding) {
	const indent = "        "
	p.hang(fmt.Sprintf("%-8s", f.Level), indent, f.Check+": "+object(f.Object)+f.Message)
	if f.Remedy != "" {
		p.hang(indent+"→ ", indent+"  ", f.Remedy)
	}
}

func object(name string) string {
	if name == "" {
		return ""
	}
	return name + ": "
}
