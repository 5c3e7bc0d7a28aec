package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/mooring-k8s/mooring/internal/doctor"
)

// diagnosis is what doctor prints for machines.
type diagnosis struct {
	Provisioner string           `json:"provisioner"`
	Findings    []doctor.Finding `json:"findings"`
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
what they should be: references, classes, the controller and its rights, drivers without a recipe,
handles that are shared, mirrors that lost their grant or are looked after by nobody, origins whose
deletion is held, deletions that were stopped. With --receipts also retained volumes that are no
longer what their receipts say.

It only reads (and asks by dry run), and says what it could not see. It ends with 0 if nothing is
wrong, and with the exit code of "problems" if anything is.`,
		Example: "  mooring doctor\n  mooring doctor --receipts receipts/ -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "json" && output != "yaml" {
				return usageError("--output: is %q; expected json or yaml", output)
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
	people.flags(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml")
	cmd.Flags().StringVar(&receipts, "receipts", "", "a `DIR` of receipts to compare with the live volumes")
	return cmd
}

func examine(ctx context.Context, s *session, receipts string) (diagnosis, error) {
	patient, err := doctor.Read(ctx, s.Cluster, s.namespace)
	if err != nil {
		return diagnosis{}, err
	}
	found := diagnosis{Provisioner: s.Names.Provisioner(), Findings: patient.Findings(time.Now()), NotVisible: patient.Hidden}
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
	switch format {
	case "json":
		data, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			return fmt.Errorf("print the findings: %w", err)
		}
		fmt.Fprintln(w, string(data))
		return nil
	case "yaml":
		data, err := yaml.Marshal(d)
		if err != nil {
			return fmt.Errorf("print the findings: %w", err)
		}
		fmt.Fprint(w, string(data))
		return nil
	}
	by := map[string][]doctor.Finding{}
	for _, finding := range d.Findings {
		by[finding.Check] = append(by[finding.Check], finding)
	}
	for _, check := range append(doctor.Checks(), receiptsCheck) {
		found := by[check]
		if len(found) == 0 {
			if check != receiptsCheck {
				fmt.Fprintf(w, "ok       %s\n", check)
			}
			continue
		}
		for _, finding := range found {
			fmt.Fprintf(w, "%-8s %s: %s%s\n", finding.Level, check, object(finding.Object), printable(finding.Message))
			if finding.Remedy != "" {
				fmt.Fprintf(w, "         → %s\n", finding.Remedy)
			}
		}
	}
	return nil
}

func object(name string) string {
	if name == "" {
		return ""
	}
	return name + ": "
}
