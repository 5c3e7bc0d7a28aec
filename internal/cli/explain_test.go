package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mooring-k8s/mooring/internal/inventory"
	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/internal/picture"
	"github.com/mooring-k8s/mooring/internal/retain"
)

var since = time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)

func explanations() []Explanation {
	return []Explanation{
		{
			Claim: "team-b/data", Outcome: "Refused", Reason: mirror.NotShared, Message: "team-a/data does not exist or is not shared with namespace team-b: ask its owner to share it",
			From: fromController, Origin: "team-a/data", Access: "ReadWrite",
			Steps: []mirror.Step{
				{Title: "the claim names one origin of another namespace, and nothing else", Outcome: mirror.Passed, Saw: []string{"names team-a/data"}},
				{Title: "its class is fit for mirrors", Outcome: mirror.Unseen, Saw: []string{"not visible to you: the claim's StorageClass"}},
				{Title: "the origin's owner shares it with this namespace", Outcome: mirror.Stopped, Reason: mirror.NotShared, Message: "not shared"},
				{Title: "the origin is bound to its volume", Outcome: mirror.NotReached},
			},
			Mend:       &Mending{Who: string(mirror.Owner), How: "grant access", Wakes: "a change of the origin claim"},
			Said:       &Said{Status: "False", Reason: string(mirror.NotShared), Message: "not shared", Since: &since},
			NotVisible: []string{"storageclasses"},
		},
		{
			Claim: "team-b/data", Outcome: "Bound", Reason: mirror.Mirrored, Message: "bound to its mirror volume", From: fromRules, Origin: "team-a/data", Access: "ReadOnly",
			Source: &Source{
				Volume: "pvc-0b0e2e0e-0000-4000-8000-000000000001", OriginVolume: "projects", Since: &since, ServedBy: "mooring-system/mooring",
				GrantedBy: "a/read-only-target-ns-labels: team=b", Until: &since, Ends: []string{"the time comes", "the owner removes it"}, Then: "that is reported",
			},
		},
		{Claim: "team-b/data", Outcome: "Unclear", Message: "the controller has said nothing yet about this claim", From: fromController, Access: "ReadWrite"},
	}
}

func explained(t *testing.T, x Explanation) string {
	t.Helper()
	var out bytes.Buffer
	if err := printExplanation(&out, x); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestExplainText(t *testing.T) {
	t.Setenv("COLUMNS", "")
	for i, want := range []string{
		`claim team-b/data: refused (NotShared), by the controller's answer
  team-a/data does not exist or is not shared with namespace team-b: ask its owner to share it

✓ 1 the claim names one origin of another namespace, and nothing else
      names team-a/data
? 2 its class is fit for mirrors
      not visible to you: the claim's StorageClass
✗ 3 the origin's owner shares it with this namespace
      NotShared: not shared
· 4 the origin is bound to its volume

Who can mend it: the owner of team-a/data.
  grant access
  Decided again after a change of the origin claim.
`,
		`claim team-b/data: bound, and its grant holds
  bound to its mirror volume

  data from   team-a/data (volume projects)
  by volume   pvc-0b0e2e0e-0000-4000-8000-000000000001, looked after by mooring-system/mooring
  since       2027-01-02T03:04:05Z
  access      ReadOnly
  granted by  a/read-only-target-ns-labels: team=b
  until       2027-01-02T03:04:05Z
  ends when   the time comes
  or when     the owner removes it
  then        that is reported

`,
		`claim team-b/data: not certain, by the controller's answer
  the controller has said nothing yet about this claim

`,
	} {
		if got := explained(t, explanations()[i]); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func accesses() []Access {
	return []Access{
		{
			Origin: "team-a/data", Volume: "projects", Exists: true, Mirrored: true, Grants: []Granting{{"ReadWrite", "team=b"}}, Until: &since, Pods: []string{"own"},
			Namespaces: []inventory.Space{
				{Namespace: "team-b", Granted: "ReadWrite", Mirrors: []inventory.MirrorSeen{
					{Name: "data", Access: "ReadWrite", State: inventory.Bound, Volume: "pvc-1", Pods: []string{"first", "second"}},
					{Name: "more", Access: "ReadOnly", State: inventory.Pending, Volume: "pvc-2"},
				}},
				{Namespace: "team-with-a-rather-long-name-that-no-terminal-holds", Granted: "None", Mirrors: []inventory.MirrorSeen{
					{Name: "a-claim-whose-name-is-long-as-well", Access: "ReadOnly", State: inventory.Revoked, Volume: "pvc-3"},
				}},
			},
		},
		{Origin: "team-a/data", Exists: true, Tried: true, Grants: []Granting{}, Problems: []string{"a selector is broken"},
			Namespaces: []inventory.Space{{Namespace: "team-b", Granted: "None", GrantedNow: "ReadWrite"}}},
		{Origin: "team-a/data", Exists: true, Mirrored: true, Grants: []Granting{}, Namespaces: []inventory.Space{}, NotVisible: []string{"persistentvolumes", "namespaces"}},
	}
}

func accessed(t *testing.T, a Access) string {
	t.Helper()
	var out bytes.Buffer
	if err := printAccess(&out, a); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAccessText(t *testing.T) {
	t.Setenv("COLUMNS", "")
	for i, want := range []string{
		`Who can reach the data of team-a/data (volume projects):
  ReadWrite   team=b
  until 2027-01-02T03:04:05Z

NAMESPACE                                            GRANTED     MIRROR                               ACCESS      STATE     PODS
team-a                                               its own     -                                    -           -         own
team-b                                               ReadWrite   data                                 ReadWrite   Bound     first,second
team-b                                               ReadWrite   more                                 ReadOnly    Pending   -
team-with-a-rather-long-name-that-no-terminal-holds   None        a-claim-whose-name-is-long-as-well   ReadOnly    Revoked   -

Granted to namespaces: 1 read-write, 0 read-only. Mirrors: 3, of which revoked: 1. Pods: 3.
`,
		`Who can reach the data of team-a/data:
As if the grants were those below; nothing was written.
  no grant: nobody else may mirror it
  warning: a selector is broken

NAMESPACE   GRANTED   NOW         MIRROR   ACCESS   STATE   PODS
team-a      its own   its own     -        -        -       -
team-b      None      ReadWrite   -        -        -       -

Granted to namespaces: 0 read-write, 0 read-only. Mirrors: 0, of which revoked: 0. Pods: 0. (with the grants that are tried)
`,
		`Who can reach the data of team-a/data:
  no grant: nobody else may mirror it
It has mirrors, which are not visible to you.

NAMESPACE   GRANTED   MIRROR   ACCESS   STATE   PODS
team-a      its own   -        -        -       -

Which namespaces that is, is not visible to you. Pods: 0.
`,
	} {
		got := accessed(t, accesses()[i])
		if blanks(got) != blanks(want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// blanks makes runs of blanks one: how wide columns are is the table's matter.
func blanks(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}

// Nothing is wider than the terminal, but for a word that is.
func TestAnswersFitEveryWidth(t *testing.T) {
	for width := 40; width <= 200; width++ {
		t.Setenv("COLUMNS", fmt.Sprint(width))
		var texts []string
		for _, x := range explanations() {
			texts = append(texts, explained(t, x))
		}
		for _, a := range accesses() {
			texts = append(texts, accessed(t, a))
		}
		for _, text := range texts {
			for line := range strings.Lines(text) {
				line = strings.TrimSuffix(line, "\n")
				words := strings.Fields(line)
				unbreakable := len(words) > 0 && 14+utf8.RuneCountInString(words[len(words)-1]) >= width
				if n := utf8.RuneCountInString(line); n > width && !unbreakable {
					t.Errorf("at %d: a line of %d: %q\n%s", width, n, line, text)
				}
			}
		}
	}
}

func TestAnswersMatchTheirSchemas(t *testing.T) {
	check := func(schema *jsonschema.Schema, value any) {
		var out bytes.Buffer
		if err := encode(&out, "json", value); err != nil {
			t.Fatal(err)
		}
		read, err := jsonschema.UnmarshalJSON(&out)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(read); err != nil {
			t.Error(err)
		}
	}
	explain, access := compileSchema(t, "../../docs/explain.schema.json"), compileSchema(t, "../../docs/access.schema.json")
	for _, x := range explanations() {
		check(explain, x)
	}
	for _, a := range accesses() {
		check(access, a)
	}
	drawn := compileSchema(t, "../../docs/map.schema.json")
	var graph picture.Graph
	graph.Add("a/data", picture.Mirror{Namespace: "b", Name: "m", Access: "ReadWrite", State: "Bound"})
	graph.Add("", picture.Mirror{Namespace: "b", Name: "none", Access: "ReadOnly", State: "Refused", Reason: "OriginMalformed"})
	check(drawn, mapDocument{Graph: graph, NotVisible: []string{"persistentvolumes"}})
	check(drawn, mapDocument{Graph: picture.Graph{Origins: []picture.Origin{}}})
	for _, schema := range []*jsonschema.Schema{explain, access, drawn} {
		if schema.Validate(map[string]any{"other": true}) == nil {
			t.Error("a schema lets anything pass")
		}
	}
}

// The endings have codes of their own, which retain's reasons do not have.
func TestEndings(t *testing.T) {
	var codes []int
	for _, info := range retain.Reasons() {
		codes = append(codes, info.ExitCode)
	}
	for _, ending := range endings() {
		if ending.code <= 2 || slices.Contains(codes, ending.code) {
			t.Errorf("%s has the code %d", ending.reason, ending.code)
		}
		codes = append(codes, ending.code)
		if !strings.Contains(ExitCodesPage(), fmt.Sprintf("| %d | `%s` |", ending.code, ending.reason)) {
			t.Errorf("%s is not documented", ending.reason)
		}
	}
}
