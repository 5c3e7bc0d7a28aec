package workflows_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"

	"github.com/mooring-k8s/mooring/test/workflows"
)

const root = "../.."

var forges = []string{".github", ".gitea", ".forgejo"}

func file(forge string) string { return filepath.Join(root, forge, "workflows/retained-volume.yml") }

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestNoSecretBeforeTheGate(t *testing.T) {
	for _, forge := range forges {
		if got, err := workflows.Problems([]byte(read(t, file(forge)))); err != nil || len(got) > 0 {
			t.Errorf("%s: %v\n%s", forge, err, strings.Join(got, "\n"))
		}
	}
}

// On GitHub a job's secrets reach no other job, so that there the gate's job has none.
func TestGatesJobOnGitHubHasNoSecret(t *testing.T) {
	text := read(t, file(".github"))
	_, jobs, _ := strings.Cut(text, "\njobs:\n")
	gate, _, found := strings.Cut(jobs, "\n  preview:\n")
	if !found || strings.Contains(strings.ToLower(gate), "secrets") || !strings.Contains(gate, "ci gate") {
		t.Errorf("the job of the gate:\n%s", gate)
	}
}

// Each rule is broken once, to see that it is noticed.
func TestRulesBite(t *testing.T) {
	const checkout = "          persist-credentials: false\n"
	const leak = "        env:\n          X: ${{ secrets.kubeconfig }}\n"
	for _, row := range []struct{ name, forge, from, to, want string }{
		{"secret in the first step", ".gitea", checkout, checkout + leak, "reads a secret before the gate's success"},
		{"secret in the gate's step", ".forgejo", "        id: mooring-gate\n        env:\n", "        id: mooring-gate\n        env:\n          MOORING_KUBECONFIG: ${{ secrets.kubeconfig }}\n", `step "Gate" reads a secret before the gate's success`},
		{"secret in the gate's job", ".github", checkout, checkout + leak, "reads a secret before the gate's success"},
		{"all secrets as JSON", ".github", checkout, checkout + "        env:\n          X: ${{ toJSON(Secrets) }}\n", "reads a secret before the gate's success"},
		{"secret for a whole job", ".gitea", "    timeout-minutes: 60\n", "    timeout-minutes: 60\n    env:\n      X: ${{ secrets.kubeconfig }}\n", "job retained-volume reads a secret for all its steps"},
		{"secret for the workflow", ".github", "permissions: {}\n", "permissions: {}\nenv:\n  X: ${{ secrets.kubeconfig }}\n", "the whole workflow reads a secret"},
		{"preview without the gate", ".github", "    needs: gate\n", "", `job preview, step "Preview" reads a secret before the gate's success`},
		{"preview whatever the gate says", ".github", "    needs: gate\n", "    needs: gate\n    if: ${{ always() }}\n", "job preview runs although the gate failed"},
		{"create whatever failed", ".gitea", "if: ${{ inputs.mode == 'create' }}", "if: ${{ always() }}", "reads a secret although a step before it failed"},
		{"gate that may fail", ".gitea", "        id: mooring-gate\n", "        id: mooring-gate\n        continue-on-error: true\n", "is the gate, and can be passed by"},
		{"gate that may be skipped", ".github", "      - name: Gate\n", "      - name: Gate\n        if: ${{ inputs.mode == 'create' }}\n", "is the gate, and can be passed by"},
		{"no gate", ".gitea", " ci gate ", " ci look ", "no step calls mooring ci gate"},
		{"secret for an action", ".github", "          if-no-files-found: ignore\n", "          if-no-files-found: ${{ secrets.kubeconfig }}\n", "hands a secret to somebody else's action"},
		{"another secret", ".gitea", "MOORING_KUBECONFIG: ${{ secrets.kubeconfig }}", "MOORING_KUBECONFIG: ${{ secrets.other }}", "reads another secret than the kubeconfig"},
		{"action by its tag", ".github", "@3d3c42e5aac5ba805825da76410c181273ba90b1", "@v7", "is not pinned by its digest"},
		{"expression in a script", ".gitea", `case $MODE in`, `case ${{ inputs.mode }} in`, "puts an expression into a script"},
		{"writing token", ".github", "      contents: read\n", "      contents: write\n", "may do more than read the contents"},
		{"token for all", ".gitea", "permissions:\n  contents: read\n", "permissions: write-all\n", "permissions are no list"},
		{"no word on permissions", ".forgejo", "permissions:\n  contents: read\n", "", "the workflow does not say its permissions"},
		{"no time limit", ".github", "    timeout-minutes: 20\n", "", "job gate has no time limit"},
		{"no concurrency group", ".gitea", "concurrency:\n  group: mooring-retained-volume\n  cancel-in-progress: false\n", "", "no concurrency group"},
	} {
		text := read(t, file(row.forge))
		if !strings.Contains(text, row.from) {
			t.Errorf("%s: %s has no %q", row.name, row.forge, row.from)
			continue
		}
		got, err := workflows.Problems([]byte(strings.Replace(text, row.from, row.to, 1)))
		if err != nil || !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, row.want) }) {
			t.Errorf("%s: got %v, %q; want %q", row.name, err, got, row.want)
		}
	}
}

// The inputs are the same on all forges, so that one page explains them.
func TestSameInputs(t *testing.T) {
	inputs := func(forge string) string {
		_, after, _ := strings.Cut(read(t, file(forge)), "workflow_call:\n    inputs:\n")
		before, _, _ := strings.Cut(after, "    secrets:\n")
		return before
	}
	if want := inputs(".gitea"); want == "" || inputs(".forgejo") != want || !strings.HasPrefix(inputs(".github"), want) {
		t.Error("the inputs of the three files differ")
	}
}

func TestActionlint(t *testing.T) {
	for _, forge := range forges {
		var out bytes.Buffer
		linter, err := actionlint.NewLinter(&out, &actionlint.LinterOptions{
			IgnorePatterns: []string{`label "mooring" is unknown`}, // that of somebody's own runner
		})
		if err != nil {
			t.Fatal(err)
		}
		problems, err := linter.Lint(file(forge), []byte(read(t, file(forge))), nil)
		if err != nil || len(problems) > 0 {
			t.Errorf("%s: %v\n%s", forge, err, out.String())
		}
	}
}
