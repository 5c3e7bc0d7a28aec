package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mooring-k8s/mooring/internal/gate"
	"github.com/mooring-k8s/mooring/internal/retain"
	"github.com/mooring-k8s/mooring/internal/strictyaml"
)

func newCI(e Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ci",
		Short: "Retained volumes from a forge's workflow, behind a gate",
		Long: `Retained volumes from a forge's workflow, behind a gate.

  gate     may this run touch a cluster's credentials? needs none itself
  preview  the gate again, then what create would do, and the digest to approve
  create   the gate again, then the volumes, once, if the plan is the approved one

They read what the runner says about the run in GITHUB_* variables, as GitHub,
Gitea and Forgejo all have them, and ask the forge for the rest. Only a manual
dispatch, by an owner, of the head of a protected branch goes on. docs/ci.md shows
the workflow files.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCIGate(e), newCIPreview(e), newCICreate(e))
	return cmd
}

// gateFlags say what the gate looks at.
type gateFlags struct {
	output
	forge     string
	manifests string
	owners    string
	policy    string
	checkout  string
	timeout   time.Duration
}

func (f *gateFlags) flags(cmd *cobra.Command, schema string) {
	f.output.flags(cmd, schema)
	cmd.Flags().StringVar(&f.forge, "forge", "", "which forge runs this: github, gitea or forgejo")
	cmd.Flags().StringVar(&f.manifests, "manifest", "", "the `PATHS` of the manifests in the checkout, one a line")
	cmd.Flags().StringVar(&f.owners, "owners", ".mooring/owners", "the `PATH` of the list of owners, one account a line, on the default branch")
	cmd.Flags().StringVar(&f.policy, "policy", "", "the `PATH` of a RetainPolicy on the default branch")
	cmd.Flags().StringVar(&f.checkout, "checkout", ".", "the top `DIRECTORY` of the checkout")
	cmd.Flags().DurationVar(&f.timeout, "gate-timeout", 10*time.Minute, "how long the gate may take, its scan included")
}

// paths returns the manifests' paths.
func (f *gateFlags) paths() []string {
	var paths []string
	for line := range strings.Lines(f.manifests) {
		if line = strings.TrimSpace(line); line != "" {
			paths = append(paths, line)
		}
	}
	return paths
}

func newCIGate(e Env) *cobra.Command {
	var f gateFlags
	cmd := &cobra.Command{
		Use:   "gate --forge NAME --manifest PATHS",
		Short: "May this run touch a cluster's credentials?",
		Long: `Says whether this run may touch a cluster's credentials, before it has any.

All must be so, and all that is not is told at once: somebody dispatched the run by
hand, as its first attempt, on the head of a branch that the forge says is protected,
in a repository that is no fork; whoever dispatched it is in the list of owners on the
protected default branch; the checkout is exactly the run's commit; the manifests are
regular files that git tracks there, and acceptable; and nothing in the repository is
a secret, a private key, a kubeconfig, or a volume that is no retained one. What
cannot be told is refused. The forge is asked with the job's token, GITHUB_TOKEN.`,
		Example: "  mooring ci gate --forge github --manifest volumes/projects.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := f.pass(cmd.Context(), e, true)
			return err
		},
	}
	f.flags(cmd, "ci-gate.schema.json")
	return cmd
}

// passed is a run that the gate lets go on.
type passed struct {
	files   []string
	digests map[string]string // of the manifests at the commit, by path
	policy  *retain.Policy
}

// verdict is what the gate prints for machines.
type verdict struct {
	Open       bool                `json:"open"`
	Reason     gate.Reason         `json:"reason,omitempty"`
	Repository string              `json:"repository"`
	Commit     string              `json:"commit"`
	Actor      string              `json:"actor"`
	Conditions []gate.Condition    `json:"conditions"`
	Manifests  []gate.ManifestFile `json:"manifests,omitempty"`
	Findings   []gate.Finding      `json:"findings,omitempty"`
}

// pass asks the gate, and tells what it says.
func (f *gateFlags) pass(ctx context.Context, e Env, alone bool) (*passed, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, f.timeout)
	defer stop()
	facts, p, err := f.observe(ctx)
	if err != nil {
		return nil, err
	}
	judged := gate.Judge(facts)
	report := verdict{
		Open: judged.Open(), Reason: judged.Reason(), Repository: facts.Event.Repository, Commit: facts.Event.Commit,
		Actor: facts.Event.Actor, Conditions: judged.Conditions, Manifests: facts.Checkout.Manifests, Findings: facts.Scan.Findings,
	}
	out := e.Out
	if !alone {
		out = e.Err // the result is that of the step itself
	}
	printErr := f.print(out, report, func(w io.Writer) { printVerdict(w, report) })
	forgeErr := tellForge(os.LookupEnv, gateSummary(report), [][2]string{{"gate", openText(report.Open)}})
	if !judged.Open() {
		return nil, gateEnd(judged)
	}
	return p, errors.Join(printErr, forgeErr)
}

func openText(open bool) string {
	if open {
		return "open"
	}
	return "closed"
}

// observe finds out everything that the verdict rests on.
func (f *gateFlags) observe(ctx context.Context) (gate.Facts, *passed, error) {
	facts := gate.Facts{Event: gate.EventFrom(os.LookupEnv)}
	client, err := gate.NewClient(gate.ClientOptions{Kind: f.forge, URL: os.Getenv("GITHUB_API_URL"), Token: os.Getenv("GITHUB_TOKEN")})
	if err != nil {
		return facts, nil, usageError("%v", err)
	}
	var policy []byte
	facts.Forge, policy = client.Observe(ctx, facts.Event, gate.Asked{Owners: f.owners, Policy: f.policy})
	p := &passed{digests: map[string]string{}}
	if policy != nil {
		read, problems := retain.ParsePolicy(policy)
		if len(problems) > 0 {
			return facts, nil, &retain.Error{Reason: retain.PolicyInvalid, Message: prefixed(f.policy, problems), Cause: problems}
		}
		p.policy = &read
	}
	scanner, err := gate.NewScanner(func(data []byte) string {
		_, problems := retain.ParseManifest(data)
		return problemText(problems)
	})
	if err != nil {
		return facts, nil, err
	}
	facts.Checkout, facts.Scan = gate.Inspection{
		Dir: f.checkout, Commit: facts.Event.Commit, Manifests: f.paths(), Scanner: scanner,
		CheckVolume: func(data []byte) string { return problemText(checkManifest("", data, p.policy).Problems) },
	}.Observe(ctx)
	for _, m := range facts.Checkout.Manifests {
		p.files = append(p.files, m.Path)
		p.digests[m.Path] = m.Digest
	}
	return facts, p, nil
}

// problemText is "" if there are none.
func problemText(problems strictyaml.Problems) string {
	if len(problems) == 0 {
		return ""
	}
	return strings.ReplaceAll(problems.Error(), "\n", "; ")
}

func printVerdict(w io.Writer, v verdict) {
	fmt.Fprintf(w, "gate         %s, %s at %s, dispatched by %s\n", openText(v.Open), v.Repository, v.Commit, v.Actor)
	for _, c := range v.Conditions {
		mark := "met    "
		if !c.Met {
			mark = "NOT MET"
		}
		fmt.Fprintf(w, "  %s  %-18s %s\n", mark, c.Name, strings.ReplaceAll(c.Says, "\n", "; "))
	}
	for _, found := range v.Findings {
		fmt.Fprintf(w, "  found    %s: %s (%s)\n", place(found), found.Says, found.Rule)
	}
}

func place(f gate.Finding) string {
	if f.Line == 0 {
		return f.Path
	}
	return fmt.Sprintf("%s:%d", f.Path, f.Line)
}

// gateEnd is the end of a run that the gate does not let go on.
func gateEnd(v gate.Verdict) error {
	says := make([]string, 0, len(v.Conditions))
	for _, c := range v.Refusals() {
		says = append(says, c.Name+": "+c.Says)
	}
	for _, ending := range gateEndings() {
		if ending.reason == string(v.Reason()) {
			return &end{ending: ending, message: strings.Join(says, "\n")}
		}
	}
	return errors.New(strings.Join(says, "\n"))
}
