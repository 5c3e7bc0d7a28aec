// Command drivers writes docs/drivers.md from the table of recipes, so that
// the page says what the controller does.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/mooring-k8s/mooring/internal/recipe"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "drivers:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("expected the file to write, got %q", args)
	}
	return os.WriteFile(args[0], []byte(page()), 0o644) //nolint:gosec // a page of documentation is for everybody to read
}

func page() string {
	var b strings.Builder
	b.WriteString(head)
	all := recipe.Drivers().Describe()
	b.WriteString("| driver | handle | read-only mirror by | notes |\n| --- | --- | --- | --- |\n")
	for _, d := range all {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name(d), orDash(string(d.Handle)), orDash(code(strings.Join(d.ReadOnly, ","))), summary(d))
	}
	b.WriteString(meaning)
	for _, d := range all {
		if d.Mirrored {
			section(&b, d)
		}
	}
	b.WriteString("\n## Refused drivers\n\n| driver | why | read in |\n| --- | --- | --- |\n")
	for _, d := range all {
		if !d.Mirrored {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", name(d), d.Refused, d.Basis)
		}
	}
	b.WriteString(tail)
	return b.String()
}

// name is the driver's name, with what distributions put before it.
func name(d recipe.Description) string {
	switch {
	case d.Driver == recipe.UnknownDriver || d.Driver == recipe.InTreeNFS:
		return d.Driver
	case d.VendorPrefix:
		return "`" + d.Driver + "`, `*." + d.Driver + "`"
	default:
		return "`" + d.Driver + "`"
	}
}

func summary(d recipe.Description) string {
	var parts []string
	for _, pair := range pairs(d.When) {
		parts = append(parts, "volumes with "+pair)
	}
	switch {
	case !d.Mirrored:
		parts = append(parts, "refused")
	case len(d.Refuses) > 0:
		parts = append(parts, "some volumes are refused")
	}
	if d.Handle == recipe.SharedHandle {
		parts = append(parts, "one mirror of an origin per namespace")
	}
	return orDash(strings.Join(parts, "; "))
}

func section(b *strings.Builder, d recipe.Description) {
	fmt.Fprintf(b, "\n### %s", name(d))
	for _, pair := range pairs(d.When) {
		fmt.Fprintf(b, " with %s", pair)
	}
	b.WriteString("\n\n")
	item := func(label, text string) {
		if text != "" {
			fmt.Fprintf(b, "- **%s:** %s\n", label, text)
		}
	}
	items := func(label string, texts []string) {
		for _, text := range texts {
			item(label, text)
		}
	}
	item("Handle", strings.TrimSuffix(string(d.Handle)+", "+code(d.HandleForm), ", "))
	item("Every mirror has", code(strings.Join(d.Unshare, ",")))
	if len(d.ReadOnly) == 0 {
		item("Read-only", "refused: nothing would enforce it")
	} else {
		item("Read-only", fmt.Sprintf("%s, access mode %s first", code(strings.Join(d.ReadOnly, ",")), d.ReadOnlyModes[0]))
	}
	item("Attributes needed", list(d.Needs))
	item("Attributes set", strings.Join(pairs(d.Sets), ", "))
	item("Attributes dropped", list(d.Drops))
	items("Refused", d.Refuses)
	items("Note", d.Notes)
	items("Not verified", d.Unverified)
	item("Read in", d.Basis)
}

func pairs(attributes map[string]string) []string {
	var all []string
	for key, value := range attributes {
		all = append(all, "`"+key+": "+value+"`")
	}
	slices.Sort(all)
	return all
}

func list(keys []string) string {
	var all []string
	for _, key := range keys {
		all = append(all, code(key))
	}
	return strings.Join(all, ", ")
}

func code(text string) string {
	if text == "" || text == "the origin's" {
		return text
	}
	return "`" + text + "`"
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}
