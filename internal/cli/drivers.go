package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

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
			drivers, known := describeDrivers(args)
			switch output {
			case "":
				if len(args) > 0 {
					return printDriver(e.Out, args[0], drivers, known)
				}
				return printDrivers(e.Out, drivers)
			case "json":
				encoder := json.NewEncoder(e.Out)
				encoder.SetIndent("", "  ")
				encoder.SetEscapeHTML(false)
				return encoder.Encode(drivers)
			case "yaml":
				text, err := yaml.Marshal(drivers)
				if err != nil {
					return fmt.Errorf("write the table as YAML: %w", err)
				}
				_, err = e.Out.Write(text)
				return err
			default:
				return usageError("--output %q: expected json or yaml, or nothing for a table", output)
			}
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "", "json or yaml; a table for people without it")
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
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "DRIVER\tHANDLE\tREAD-ONLY\tNOTES")
	for _, d := range drivers {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", driverTitle(d), orElse(string(d.Handle), "-"), orElse(strings.Join(d.ReadOnly, ","), "-"), driverRemark(d))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "\nMore about one: mooring drivers DRIVER. What each rests on, and what nobody has run yet: docs/drivers.md.")
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
	return orElse(strings.Join(remarks, "; "), "-")
}

// firstWords cuts a sentence at its first comma.
func firstWords(sentence string) string {
	first, _, _ := strings.Cut(sentence, ",")
	return first
}

func printDriver(out io.Writer, name string, drivers []recipe.Description, known bool) error {
	text := &strings.Builder{}
	if !known {
		fmt.Fprintf(text, "%s is not in the table, so it is mirrored as any other driver:\n\n", name)
	}
	for i, d := range drivers {
		if i > 0 {
			text.WriteByte('\n')
		}
		writeDriver(text, d)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func writeDriver(text *strings.Builder, d recipe.Description) {
	line := func(label, value string) {
		if value != "" {
			fmt.Fprintf(text, "  %-12s %s\n", label, value)
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
	fmt.Fprintln(text, driverTitle(d))
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
