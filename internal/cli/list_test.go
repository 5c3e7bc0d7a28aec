package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mooring-k8s/mooring/internal/inventory"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

func listRows() []inventory.Row {
	now := time.Now().UTC().Truncate(time.Second)
	revoked := now.Add(-90 * time.Second)
	return []inventory.Row{
		{
			Namespace: "team-a", Name: "data", Origin: "storage/projects", Access: "ReadWrite", State: inventory.Bound, Class: "pvc-mirror",
			Volume: "pvc-0b0e2e0e-0000-4000-8000-000000000001", ServedBy: "mooring", Created: now.Add(-3 * time.Hour),
			GrantedBy: `{"annotation":"a/required-target-ns-labels","selector":"team in (a, b)","access":"ReadWrite"}`,
		},
		{
			Namespace: "team-b", Name: "a-very-long-name-of-a-claim-that-no-terminal-holds", Origin: "storage/another-rather-long-name-of-an-origin",
			Access: "ReadOnly", State: inventory.Refused, Reason: string(mirror.NotShared), Message: "not shared\nwith you", Class: "pvc-mirror", Created: now.Add(-50 * 24 * time.Hour),
		},
		{
			Namespace: "team-c", Name: "lost", Access: "ReadWrite", State: inventory.Revoked, Reason: string(mirror.GrantReadOnly), Volume: "pvc-x",
			RevokedAt: &revoked, Created: now.Add(-20 * time.Second),
		},
	}
}

// printed is what a listing is printed as.
func printed(t *testing.T, output string, rows []inventory.Row) string {
	t.Helper()
	var out, errs bytes.Buffer
	f := &listFlags{output: output, everywhere: true}
	p := f.printer(Env{Out: &out, Err: &errs}, &session{Cluster: &inventory.Cluster{}}, &inventory.Listing{Rows: rows})
	if err := p.print(rows); err != nil {
		t.Fatal(err)
	}
	return out.String() + errs.String()
}

func TestListTable(t *testing.T) {
	t.Setenv("COLUMNS", "")
	want := `ORIGIN                                         MIRROR                                                      ACCESS      STATE     REASON          AGE
storage/projects                               team-a/data                                                 ReadWrite   Bound     -               3h
storage/another-rather-long-name-of-an-origin   team-b/a-very-long-name-of-a-claim-that-no-terminal-holds   ReadOnly    Refused   NotShared       50d
-                                              team-c/lost                                                 ReadWrite   Revoked   GrantReadOnly   20s
`
	// The origin's column is as wide as its longest value.
	want = strings.ReplaceAll(want, "ORIGIN     ", "ORIGIN      ")
	want = strings.ReplaceAll(want, "storage/projects   ", "storage/projects    ")
	want = strings.ReplaceAll(want, "-                                              team-c", "-                                               team-c")
	if got := printed(t, "", listRows()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := printed(t, "name", listRows()[:1]); got != "team-a/data\n" {
		t.Errorf("-o name: %q", got)
	}
	if got := printed(t, "", nil); got != "No mirror claims.\n" {
		t.Errorf("nothing: %q", got)
	}
	wide := printed(t, "wide", listRows())
	for _, want := range []string{"CLASS", "SERVED-BY", "team in (a, b)", "90s", "pvc-0b0e2e0e-0000-4000-8000-000000000001"} {
		if !strings.Contains(wide, want) {
			t.Errorf("-o wide lacks %q:\n%s", want, wide)
		}
	}
}

// A table fits every terminal, and its columns stand below each other.
func TestListFitsEveryWidth(t *testing.T) {
	for width := 40; width <= 200; width++ {
		t.Setenv("COLUMNS", fmt.Sprint(width))
		text := printed(t, "", listRows())
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if len(lines) != 4 {
			t.Fatalf("at %d: %d lines\n%s", width, len(lines), text)
		}
		at := utf8.RuneCountInString(lines[0][:strings.Index(lines[0], "STATE")])
		for i, line := range lines {
			if n := utf8.RuneCountInString(line); n > width {
				t.Errorf("at %d: a line of %d\n%s", width, n, text)
			}
			if state := string([]rune(line)[at:]); i > 0 && !strings.HasPrefix(state, string(listRows()[i-1].State)) {
				t.Errorf("at %d: the columns are broken\n%s", width, text)
			}
		}
	}
}

func TestListJSON(t *testing.T) {
	schema := compileSchema(t, "../../docs/list.schema.json")
	for _, rows := range [][]inventory.Row{listRows(), nil} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(printed(t, "json", rows)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Error(err)
		}
	}
	// What the schema does not name is refused: it is complete.
	if schema.Validate(map[string]any{"mirrors": []any{}, "other": true}) == nil {
		t.Error("the schema lets anything pass")
	}
	if yaml := printed(t, "yaml", listRows()[:1]); !strings.HasPrefix(yaml, "mirrors:\n- access: ReadWrite\n") {
		t.Errorf("got\n%s", yaml)
	}
}

// compileSchema reads a published schema, and the receipt's, which others refer
// to.
func compileSchema(t *testing.T, path string) *jsonschema.Schema {
	t.Helper()
	path, fragment, _ := strings.Cut(path, "#")
	if fragment != "" {
		fragment = "#" + fragment
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	id := ""
	for _, path := range []string{"../../docs/receipt.schema.json", path} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		fields, _ := text.(map[string]any)
		if id, _ = fields["$id"].(string); id == "" {
			t.Fatalf("%s has no $id", path)
		}
		if err := compiler.AddResource(id, text); err != nil && filepath.Base(path) != "receipt.schema.json" {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile(id + fragment)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestListSorts(t *testing.T) {
	for by, want := range map[string]string{
		"":                            "team-a team-b team-c",
		"age":                         "team-b team-a team-c",
		"AGE":                         "team-b team-a team-c",
		"{.created}":                  "team-b team-a team-c",
		".metadata.creationTimestamp": "team-b team-a team-c",
		"origin":                      "team-c team-b team-a",
		"{.state}":                    "team-a team-b team-c",
		"revokedAt":                   "team-a team-b team-c",
		"access":                      "team-b team-a team-c",
		"{.metadata.namespace}":       "team-a team-b team-c",
	} {
		order, err := sorting(by)
		if err != nil {
			t.Errorf("%q: %v", by, err)
			continue
		}
		rows := listRows()
		order(rows)
		var got []string
		for _, row := range rows {
			got = append(got, row.Namespace)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %v; want %s", by, got, want)
		}
	}
	for _, by := range []string{"colour", "{.spec.volumeName}", "{range .}"} {
		if _, err := sorting(by); err == nil {
			t.Errorf("%q is accepted", by)
		}
	}
}

func TestListCommandLine(t *testing.T) {
	for says, args := range map[string][]string{
		"expected wide, json, yaml or name": {"-o", "xml"},
		"--sort-by":                         {"--sort-by", "colour"},
		"--selector":                        {"-l", "a in"},
		"--field-selector":                  {"--field-selector", "name"},
		"expected NAMESPACE/CLAIM":          {"--origin", "A/B", "--provisioner-name", "x.example"},
		"unknown command":                   {"data"},
	} {
		var out, errs bytes.Buffer
		if code := Run(t.Context(), append([]string{"list", "--server", "http://127.0.0.1:1"}, args...), Env{Out: &out, Err: &errs}); code == 0 || !strings.Contains(errs.String(), says) {
			t.Errorf("%v: exit code %d, %s", args, code, &errs)
		}
	}
}

// Colours are for terminals only, and a control character reaches none.
func TestTableOfColours(t *testing.T) {
	var out bytes.Buffer
	plain := table{columns: listColumns[3:4], terminal: terminalOf(&out)}
	bright := table{columns: listColumns[3:4], terminal: terminal{colour: true}}
	for _, table := range []*table{&plain, &bright} {
		if err := table.write(&out, [][]cell{{{"Bo\x1bund", green}}}); err != nil {
			t.Fatal(err)
		}
	}
	if want := "STATE\nBo\uFFFDund\nSTATE\n\x1b[32mBo\uFFFDund\x1b[0m\n"; out.String() != want {
		t.Errorf("got %q; want %q", out.String(), want)
	}
}

// A row that changes while it is watched is printed in the form of the list.
func TestListPrintsChanges(t *testing.T) {
	row := listRows()[0]
	changed := row
	changed.Reason = "OriginReplaced"
	for output, want := range map[string]string{"": "Bound", "name": "team-a/data\n", "yaml": "---\n", "json": `"state": "Bound"`} {
		var out bytes.Buffer
		f := &listFlags{output: output, everywhere: true}
		p := f.printer(Env{Out: &out, Err: &out}, &session{Cluster: &inventory.Cluster{}}, &inventory.Listing{})
		if err := errors.Join(p.change(row), p.change(changed)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), want); got != 2 {
			t.Errorf("-o %q: got\n%s", output, &out)
		}
	}
	var document struct{ Mirrors []inventory.Row }
	if err := json.Unmarshal([]byte(printed(t, "json", listRows())), &document); err != nil || !slices.ContainsFunc(document.Mirrors, func(r inventory.Row) bool { return r.Key() == row.Key() }) {
		t.Errorf("%v: %v", document, err)
	}
}

// Values sort as what they are; what a row lacks comes first.
func TestCompareValues(t *testing.T) {
	for _, sorted := range [][]string{
		{"", "-1", "9", "10", "1k"},
		{"900Mi", "1Gi", "2G", "2Gi"},
		{"", "2027-01-01T00:00:00Z", "2027-01-01T00:00:00.5Z", "2027-01-01T02:00:00+01:00"},
		{"Bound", "Lost", "team-2", "team-10", "team-10a"},
	} {
		for i := range sorted {
			for j := range sorted {
				if got, want := compareValues(sorted[i], sorted[j]), cmp.Compare(i, j); got != want {
					t.Errorf("%q and %q: %d, want %d", sorted[i], sorted[j], got, want)
				}
			}
		}
	}
}
