package docs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/mooring-k8s/mooring/internal/grant"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// The tables of the concepts' "Grants" are what the rule book says.
func TestGrantsAreAsDocumented(t *testing.T) {
	page := read(t, "docs/concepts.md")
	namespaces := map[string]labels.Set{}
	for _, row := range table(t, page, "| namespace | labels") {
		set := labels.Set{"kubernetes.io/metadata.name": code(row[0])}
		for label := range strings.SplitSeq(row[1], ",") {
			if key, value, ok := strings.Cut(code(label), "="); ok {
				set[key] = value
			}
		}
		namespaces[code(row[0])] = set
	}
	for _, row := range table(t, page, "| grant | lets in |") {
		expectIn(t, code(row[0]), namespaces, strings.Split(row[1], ", "))
	}
	everything := labels.Set{"example.com/project": "atlas", "example.com/rank": "9", "project": "atlas", "any": ""}
	namespaces["everything"] = everything
	for _, row := range table(t, page, "| grant | why it lets in nobody |") {
		text := code(row[0])
		if text == "*(empty)*" {
			text = ""
		}
		expectIn(t, text, namespaces, nil)
	}
}

func expectIn(t *testing.T, text string, namespaces map[string]labels.Set, want []string) {
	t.Helper()
	var names mooringapi.Names
	terms := grant.Parse(names, map[string]string{names.ReadWriteGrant(): text})
	var in []string
	for name, set := range namespaces {
		if terms.For(set, time.Now()).Access == grant.ReadWrite {
			in = append(in, name)
		}
	}
	slices.Sort(in)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(in, want) {
		t.Errorf("the grant %q lets in %v; the page says %v", text, in, want)
	}
}

// table returns the cells of the table whose head begins so.
func table(t *testing.T, page, head string) [][]string {
	t.Helper()
	_, after, found := strings.Cut(page, "\n"+head)
	if !found {
		t.Fatalf("no table begins with %q", head)
	}
	var rows [][]string
	for i, line := range strings.Split(after, "\n") {
		if i < 2 {
			continue // the rest of the head, and the line under it
		}
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		for c := range cells {
			cells[c] = strings.TrimSpace(cells[c])
		}
		rows = append(rows, cells)
	}
	if len(rows) == 0 {
		t.Fatalf("the table %q has no rows", head)
	}
	return rows
}

// code takes the backquotes off a cell.
func code(cell string) string { return strings.Trim(strings.TrimSpace(cell), "`") }
