package cli

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/cobra"

	"github.com/mooring-k8s/mooring/internal/doctor"
	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/internal/retain"
)

// statesByCommand are the states in which a command is seen. Where the code has
// a closed list, that list it is.
func statesByCommand(t *testing.T) map[string][]string {
	t.Helper()
	var reasons []string
	for _, doc := range mirror.Reasons() {
		reasons = append(reasons, string(doc.Reason))
	}
	states := constantsOf(t, "../../pkg/mooringapi/state.go", "State")
	return map[string][]string{
		"explain": slices.Concat(reasons, eachPrefixed("by-rules-", outcomes(t)), []string{
			"by-controller-Bound", "by-controller-nothing-said", "being-deleted", "no-claim", "no-mirror", "cluster-fails",
		}),
		"list":   slices.Concat(states, []string{"Gone", "none", "none-of-the-kind", "all-in-all-namespaces", "wide", "name", "of-one-origin", "seen-by-a-tenant"}),
		"map":    slices.Concat(states, []string{"none", "all", "of-one-origin", "without-origin", "seen-by-a-tenant"}),
		"access": {"granted-and-mirrored", "not-granted", "tried", "broken-grant", "expires", "origin-gone", "being-deleted", "seen-by-its-owner", "of-a-mirror", "of-an-unbound-mirror", "of-a-nameless-mirror", "no-claim", "not-visible"},
		"share": {"gains", "read-only", "expires", "expired", "replaces", "everybody", "a-mirror", "nothing-to-write", "client-dry-run", "server-dry-run", "confirmed", "not-confirmed", "nobody-to-confirm",
			"namespaces-hidden", "no-claim", "not-visible", "not-allowed", "changed-meanwhile", "bad-selector"},
		"unshare": {"loses", "read-only", "read-write", "not-shared", "client-dry-run", "server-dry-run", "confirmed", "not-confirmed", "nobody-to-confirm", "no-claim", "not-visible", "not-allowed", "changed-meanwhile"},
		"mirror": {"bound-by-annotation", "bound-by-reference", "waits-then-bound", "refused", "not-bound-in-time", "gone-again", "not-waited-for", "client-dry-run", "server-dry-run", "read-only",
			"not-allowed", "there-already", "own-namespace", "no-class", "several-classes", "classes-hidden"},
		"doctor":  slices.Concat(eachPrefixed("finds-", append(doctor.Checks(), receiptsCheck)), []string{"healthy", "seen-by-a-tenant", "no-receipts"}),
		"drivers": slices.Concat(eachPrefixed("of-", driverNames()), []string{"all", "of-a-stranger", "bad-output"}),
		"version": {"release"},
	}
}

// outcomes are mirror.Outcome's, by the words of -o json.
func outcomes(t *testing.T) []string {
	t.Helper()
	all := constantsOf(t, "../mirror/explain.go", "Outcome")
	for i := range all {
		all[i] = orElse(all[i], "Unclear")
	}
	return all
}

func eachPrefixed(prefix string, names []string) []string {
	var all []string
	for _, name := range names {
		all = append(all, prefix+name)
	}
	return all
}

// endingsByCommand are the ends that a command must be seen to have.
func endingsByCommand() map[string][]ending {
	good := ending{reason: "nothing to do", code: 0}
	usage := ending{reason: string(retain.Usage), code: retain.InfoOf(retain.Usage).ExitCode}
	failed := ending{reason: string(retain.ReadFailed), code: retain.InfoOf(retain.ReadFailed).ExitCode}
	return map[string][]ending{
		"explain": {good, endRefused, endWaiting, endRevoked, endUnclear, endNoClaim, endNotOurs, failed},
		"list":    {good},
		"map":     {good},
		"access":  {good, endNoClaim, endIsMirror},
		"share":   {good, usage, endNoClaim, endNotAllowed, endChanged},
		"unshare": {good, usage, endNoClaim, endNotAllowed, endChanged},
		"mirror":  {good, usage, endRefused, endWaiting, endNoClaim, endNotAllowed},
		"doctor":  {good, usage, endProblems},
		"drivers": {good, usage},
		"version": {good},
	}
}

// elsewhere are the commands whose ends are seen by other tests, and which.
var elsewhere = map[string]string{
	"retain":       "only groups the others; TestExitCodes",
	"retain check": "TestExitCodes, TestCheckForMachines", "retain kubeconfig": "TestExitCodes",
	"retain preview": "test/retain", "retain create": "test/retain", "retain verify": "test/retain", "retain export": "test/retain",
	"ci": "only groups the others", "ci gate": "ci_test.go and test/forge", "ci preview": "ci_test.go and test/forge", "ci create": "ci_test.go and test/forge",
}

// Every command has its states, or a test elsewhere; and every ending of a
// command for people is one that some golden file shows.
func TestEveryCommandHasStates(t *testing.T) {
	states := statesByCommand(t)
	for _, command := range allCommands() {
		name := strings.TrimPrefix(command.CommandPath(), "mooring ")
		if len(states[name]) == 0 && elsewhere[name] == "" {
			t.Errorf("mooring %s has no states", name)
		}
	}
	shown := map[string]bool{}
	for command, endings := range endingsByCommand() {
		if len(states[command]) == 0 {
			t.Errorf("there is no command %s", command)
		}
		for _, ending := range endings {
			shown[ending.reason] = true
		}
	}
	for _, ending := range endings() {
		if !shown[ending.reason] && !strings.HasPrefix(ending.reason, "gate-") {
			t.Errorf("no command ends with %s", ending.reason)
		}
	}
}

func allCommands() []*cobra.Command {
	var all []*cobra.Command
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		if command.HasParent() {
			all = append(all, command)
		}
		for _, sub := range command.Commands() {
			visit(sub)
		}
	}
	visit(NewRoot(Env{}))
	return all
}

// schemasByCommand compiles the schemas that the commands' flags name.
func schemasByCommand(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	schemas := map[string]*jsonschema.Schema{}
	for _, command := range allCommands() {
		if file := schemaOf(command); file != "" {
			name := strings.TrimPrefix(command.CommandPath(), "mooring ")
			schemas[name] = compileSchema(t, "../../docs/"+file+parts[name])
		}
	}
	return schemas
}

// parts of a schema say more about what one command prints.
var parts = map[string]string{"mirror": "#/$defs/mirrorClaim"}

// schemaOf returns the schema that a command names for what it prints as JSON.
func schemaOf(command *cobra.Command) string {
	text := command.Long
	for _, name := range []string{"output", "format"} {
		if flag := command.Flags().Lookup(name); flag != nil {
			text += " " + flag.Usage
		}
	}
	for _, word := range strings.Fields(text) {
		if file, named := strings.CutPrefix(strings.TrimRight(word, ".,;"), "docs/"); named && strings.HasSuffix(file, ".schema.json") {
			return file
		}
	}
	return ""
}

// Every command that prints JSON names its schema, every schema is named by a
// command, says what it is, and lets nothing else pass.
func TestEveryJSONHasASchema(t *testing.T) {
	named := map[string]bool{"receipt.schema.json": true} // of the file that --receipt writes
	for _, command := range allCommands() {
		json := false
		for _, name := range []string{"output", "format"} {
			flag := command.Flags().Lookup(name)
			json = json || flag != nil && strings.Contains(flag.Usage, "json")
		}
		file := schemaOf(command)
		if json != (file != "") {
			t.Errorf("%s prints JSON: %t; it names the schema %q", command.CommandPath(), json, file)
		}
		named[file] = true
	}
	files, err := filepath.Glob("../../docs/*.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !named[filepath.Base(file)] {
			t.Errorf("%s is named by no command", file)
		}
		schema := compileSchema(t, file)
		if schema.Title == "" || !strings.HasPrefix(schema.ID, "https://github.com/mooring-k8s/mooring/") {
			t.Errorf("%s: title %q, ID %q", file, schema.Title, schema.ID)
		}
		for _, other := range []any{map[string]any{"other": true}, []any{}, "text"} {
			if schema.Validate(other) == nil {
				t.Errorf("%s lets %v pass", file, other)
			}
		}
	}
	for file := range named {
		if file != "" && !slices.Contains(files, filepath.Join("..", "..", "docs", file)) {
			t.Errorf("docs/%s is named and not there", file)
		}
	}
}
