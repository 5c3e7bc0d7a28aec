package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mooring-k8s/mooring/internal/recipe"
)

func newDrivers(e Env) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "drivers [DRIVER]",
		Short: "Say which storage drivers' volumes can be mirrored, and how",
		Long: "drivers prints the table by which Mooring decides: for each driver whether its volumes can be\n" +
			"mirrored, whether the mirror has a volume handle of its own, and what keeps a read-only mirror\n" +
			"from writing. With a driver's name, such as rook-ceph.cephfs.csi.ceph.com, all that is known of it.\n" +
			"No cluster is asked.",
		Args:    cobra.MaximumNArgs(1),
		Example: "  mooring drivers\n  mooring drivers nfs.csi.k8s.io\n  mooring drivers -o json",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			drivers, known := describeDrivers(args)
			switch {
			case output != "":
				return encode(e.Out, output, drivers)
			case len(args) > 0:
				return printDriver(e.Out, args[0], drivers, known)
			}
			return printDrivers(e.Out, drivers)
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "", "json or yaml, as docs/drivers.schema.json says; a table for people without it")
	completeTo(command, "output", "json", "yaml")
	return command
}

// describeDrivers returns the rows to print, and whether the table knows the driver
// that was asked for; one that it does not know has the row for all others.
func describeDrivers(args []string) (drivers []recipe.Description, known bool) {
	table := recipe.Drivers()
	if len(args) == 0 {
		return table.Describe(), true
	}
	if drivers = table.DescribeDriver(args[0]); len(drivers) > 0 {
		return drivers, true
	}
	return table.DescribeDriver(recipe.UnknownDriver), false
}

func printDrivers(out io.Writer, drivers []recipe.Description) error {
	t := terminalOf(out)
	rows := make([][]cell, 0, len(drivers))
	for _, d := range drivers {
		rows = append(rows, []cell{
			{text: driverTitle(d)}, {text: orElse(string(d.Handle), none)}, {text: orElse(strings.Join(d.ReadOnly, ","), none)}, {text: driverRemark(d)},
		})
	}
	columns := []column{{title: "DRIVER", shrinks: 12}, {title: "HANDLE"}, {title: "READ-ONLY", shrinks: 9, optional: 1}, {title: "NOTES", shrinks: 10}}
	if err := (&table{columns: columns, terminal: t}).write(out, rows); err != nil {
		return err
	}
	p := &prose{width: t.width}
	p.add("", "")
	p.add("", "More about one: mooring drivers DRIVER. What each rests on, and what nobody has run yet: docs/drivers.md.")
	_, err := io.WriteString(out, p.text.String())
	return err
}

// driverTitle is the driver's name with what distributions put before it.
func driverTitle(d recipe.Description) string {
	if d.VendorPrefix {
		return "[*.]" + d.Driver
	}
	return d.Driver
}

// driverRemark is a row's notes in a few words.
func driverRemark(d recipe.Description) string {
	if d.Refused != "" {
		return "refused: " + firstWords(d.Refused)
	}
	var remarks []string
	for _, key := range sortedAttributes(d.When) {
		remarks = append(remarks, "with "+key+": "+d.When[key])
	}
	if d.Driver == recipe.UnknownDriver {
		remarks = append(remarks, "only with attachRequired: false and ReadWriteMany")
	}
	if d.Handle == recipe.SharedHandle {
		remarks = append(remarks, "one mirror of an origin per namespace")
	}
	if len(d.Refuses) > 0 {
		remarks = append(remarks, "some volumes refused")
	}
	return orElse(strings.Join(remarks, "; "), none)
}

// firstWords cuts a sentence at its first comma.
func firstWords(sentence string) string {
	first, _, _ := strings.Cut(sentence, ",")
	return first
}

func printDriver(out io.Writer, name string, drivers []recipe.Description, known bool) error {
	p := &prose{width: terminalOf(out).width}
	if !known {
		p.add("", name+" is not in the table, so it is mirrored as any other driver:")
		p.add("", "")
	}
	for i, d := range drivers {
		if i > 0 {
			p.add("", "")
		}
		p.driver(d)
	}
	_, err := io.WriteString(out, p.text.String())
	return err
}

func (p *prose) driver(d recipe.Description) {
	line := func(label, value string) {
		if value != "" {
			p.hang(fmt.Sprintf("  %-12s ", label), strings.Repeat(" ", 15), value)
		}
	}
	lines := func(label string, values []string) {
		for i, value := range values {
			if i > 0 {
				label = ""
			}
			line(label, value)
		}
	}
	p.add("", driverTitle(d))
	line("refused", d.Refused)
	lines("with", attributePairs(d.When))
	line("handle", strings.TrimSuffix(string(d.Handle)+": "+d.HandleForm, ": "))
	if d.Mirrored {
		line("read-only", orElse(strings.Join(d.ReadOnly, ","), "no"))
	}
	line("options", strings.Join(d.Unshare, ","))
	line("needs", strings.Join(d.Needs, ", "))
	line("drops", strings.Join(d.Drops, ", "))
	lines("sets", attributePairs(d.Sets))
	lines("refuses", d.Refuses)
	lines("notes", d.Notes)
	lines("not verified", d.Unverified)
	line("basis", d.Basis)
}

func attributePairs(attributes map[string]string) []string {
	var all []string
	for _, key := range sortedAttributes(attributes) {
		all = append(all, key+": "+attributes[key])
	}
	return all
}

func sortedAttributes(attributes map[string]string) []string {
	keys := make([]string, 0, len(attributes))
	for key := range attributes {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
