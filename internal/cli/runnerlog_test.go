package cli_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// obeyed returns what a runner would take for a command, by the rules of GitHub's: a
// line that begins with :: after white space, and ##[ anywhere.
func obeyed(text string) []string {
	var commands []string
	for _, line := range regexp.MustCompile(`\r\n|\r|\n`).Split(text, -1) {
		if strings.HasPrefix(strings.TrimLeftFunc(line, unicode.IsSpace), "::") || strings.Contains(line, "##[") {
			commands = append(commands, line)
		}
	}
	return commands
}

// Names and values of others, wherever they are printed, are no commands of the step.
func TestRunnerObeysNothing(t *testing.T) {
	const v1, v2 = "##[set-output name=gate;]open", "::set-output name=gate::open"
	for manifests, formats := range map[string][]string{
		"v.yaml": {"text", v2}, v1 + "\n####[add-mask]x\n::": {"json"},
		"a\n" + v2 + "\n\u00a0" + v2 + "\n\t" + v1 + "\na\r" + v2: {"text", "json"},
	} {
		for _, format := range formats {
			r := newCIRun(t, map[string]string{
				"v.yaml": strings.Replace(example(t, "retained-nfs.yaml"), "kind: PersistentVolume\n", "kind: PersistentVolume\n"+`"::x": "`+v1+"\"\n", 1),
				v2:       "x\n", v1: "x\n",
			})
			t.Setenv("GITHUB_ACTIONS", "true")
			t.Setenv("GITHUB_REF", "refs/heads/"+v1)
			t.Setenv("GITHUB_ACTOR", v1)
			code, out, errs := r.mooring("gate", "--manifest", manifests, "--owners", "a\n"+v2, "--policy", v1, "--format", format)
			if code == 0 {
				t.Errorf("%q: the gate is open", manifests)
			}
			if got := obeyed(out + "\n" + errs); len(got) > 0 {
				t.Errorf("%q, %s: a runner would obey %q", manifests, format, got)
			}
			var verdict struct{ Actor string }
			if format == "json" && (json.Unmarshal([]byte(out), &verdict) != nil || verdict.Actor != v1) {
				t.Errorf("%q: what machines read is another text: %s", manifests, out)
			}
			if got := r.read(r.outputs); got != "" && got != "gate=closed\n" {
				t.Errorf("outputs %q", got)
			}
			checkSummary(t, r.read(r.summary))
		}
	}
}

// checkSummary fails if a line of the summary is not one that the program writes.
func checkSummary(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && !strings.HasPrefix(line, "| ") && line != "### Gate: closed" || strings.ContainsFunc(line, unicode.IsControl) {
			t.Errorf("the summary has the line %q", line)
		}
	}
}

// Elsewhere than in a workflow nothing is escaped.
func TestNothingEscapedElsewhere(t *testing.T) {
	r := newCIRun(t, map[string]string{"v.yaml": "x\n"})
	t.Setenv("GITHUB_ACTIONS", "")
	if _, _, errs := r.mooring("gate", "--manifest", "##[x]"); !strings.Contains(errs, "##[x]: is not tracked") {
		t.Errorf("got %s", errs)
	}
}
