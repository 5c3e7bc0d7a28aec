package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/mooring-k8s/mooring/internal/receipt"
	"github.com/mooring-k8s/mooring/internal/retain"
)

// tellForge appends to the job's summary and outputs, where the runner has them.
func tellForge(lookup func(string) (string, bool), summary string, outputs [][2]string) error {
	var lines strings.Builder
	for _, o := range outputs {
		if strings.ContainsAny(o[1], "\r\n") {
			return fmt.Errorf("the output %s has several lines", o[0])
		}
		fmt.Fprintf(&lines, "%s=%s\n", o[0], o[1])
	}
	return errors.Join(
		appendTo(lookup, "GITHUB_STEP_SUMMARY", summary),
		appendTo(lookup, "GITHUB_OUTPUT", lines.String()))
}

func appendTo(lookup func(string) (string, bool), variable, text string) error {
	path, _ := lookup(variable)
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w", variable, err)
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// gateSummary is the verdict for the page of the run.
func gateSummary(v verdict) string {
	var text strings.Builder
	fmt.Fprintf(&text, "### Gate: %s\n\n| condition | met | |\n| --- | --- | --- |\n", openText(v.Open))
	for _, c := range v.Conditions {
		met := "yes"
		if !c.Met {
			met = "**no**"
		}
		fmt.Fprintf(&text, "| %s | %s | %s |\n", mdCell(c.Name), met, mdCell(c.Says))
	}
	if len(v.Findings) > 0 {
		text.WriteString("\n| found in | rule | |\n| --- | --- | --- |\n")
	}
	for _, f := range v.Findings {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", mdCell(place(f)), mdCell(f.Rule), mdCell(f.Says))
	}
	return text.String() + "\n"
}

// mdCell is text in a cell of a Markdown table, where it can be nothing else.
func mdCell(text string) string {
	return strings.NewReplacer("\n", "; ", "|", `\|`, "`", "'", "<", "&lt;", ">", "&gt;", "[", `\[`, "*", `\*`, "_", `\_`, "!", `\!`, "@", "&#64;", `\`, `\\`).Replace(printable(text))
}

// runSummary is what a preview or create found, for the page of the run.
func runSummary(r receipt.Receipt, refused error) string {
	var text strings.Builder
	fmt.Fprintf(&text, "### %s: %s\n\n", strings.ToUpper(r.Action[:1])+r.Action[1:], mdCell(string(r.Outcome)))
	if refused != nil {
		info := retain.InfoOf(retain.ReasonOf(refused))
		message := strings.TrimPrefix(refused.Error(), string(info.Reason)+": ")
		fmt.Fprintf(&text, "**%s**: %s\n\nNext: %s\n\n", mdCell(string(info.Reason)), mdCell(message), mdCell(info.Next))
	}
	if c := r.Cluster; c != nil {
		fmt.Fprintf(&text, "Cluster %s, Kubernetes %s\n\n", mdCell(c.UID), mdCell(c.Version))
	}
	text.WriteString("| volume | outcome | reaches | claim |\n| --- | --- | --- | --- |\n")
	for _, v := range r.Volumes {
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", mdCell(v.Planned.Name), mdCell(string(v.Outcome)),
			mdCell(strings.Join(v.Planned.Backends, ", ")), mdCell(claimText(v.Planned.Claim)))
	}
	if r.PlanDigest != "" {
		fmt.Fprintf(&text, "\nPlan digest, to approve by a dispatch with mode `create`:\n\n```\n%s\n```\n", r.PlanDigest)
	}
	return text.String() + "\n"
}

// runOutputs are the step's outputs.
func runOutputs(r receipt.Receipt, refused error) [][2]string {
	return [][2]string{
		{"plan-digest", r.PlanDigest}, {"outcome", string(r.Outcome)}, {"reason", string(reasonOf(refused))},
	}
}
