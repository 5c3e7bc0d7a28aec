package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mooring-k8s/mooring/internal/inventory"
	"github.com/mooring-k8s/mooring/internal/mirror"
)

// listFlags are the flags of mooring list.
type listFlags struct {
	people                  peopleFlags
	everywhere, watch       bool
	denied, revoked         bool
	origin, output          string
	labels, fields, sorting string
}

func newList(e Env) *cobra.Command {
	f := &listFlags{}
	command := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List mirror claims: what they mirror, and how they stand",
		Long: "list prints the mirror claims of a namespace, or with -A of all: their origin, access, state, and\n" +
			"the reason where there is one. What it may not read it leaves out, and says so.\n\n" +
			"States: Bound; Revoked (bound, and its grant has ended), Unclear (bound, and something is wrong with\n" +
			"its origin), Waiting (for its origin), Refused, Pending (nothing was said yet), Lost, Ending (being\n" +
			"deleted), and Gone, which only --watch tells.\n\n" +
			"-o json and yaml are described by docs/list.schema.json. -o name prints NAMESPACE/CLAIM, as the other\n" +
			"commands take it. A terminal too narrow for all columns shows fewer; a pipe gets all of them.",
		Example: "  mooring list                                # of the current namespace\n" +
			"  mooring list -A --origin data/projects      # who mirrors this claim\n" +
			"  mooring list -A --denied -o name | xargs -n1 mooring explain\n" +
			"  mooring list -A --sort-by=age -o wide\n" +
			"  mooring list -A --revoked --watch",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), e) },
	}
	f.people.flags(command, e)
	flags := command.Flags()
	flags.BoolVarP(&f.everywhere, "all-namespaces", "A", false, "of all namespaces")
	flags.StringVar(&f.origin, "origin", "", "only mirrors of this claim: NAMESPACE/CLAIM")
	flags.BoolVar(&f.denied, "denied", false, "only those that are refused")
	flags.BoolVar(&f.revoked, "revoked", false, "only those that have lost their grant")
	flags.StringVarP(&f.output, "output", "o", "", "wide, json, yaml or name; a table without it")
	flags.BoolVarP(&f.watch, "watch", "w", false, "then print every change, until interrupted")
	flags.StringVarP(&f.labels, "selector", "l", "", "label selector of the claims, such as team=a")
	flags.StringVar(&f.fields, "field-selector", "", "field selector of the claims, such as metadata.name=data")
	flags.StringVar(&f.sorting, "sort-by", "", "a column's name, such as age, or JSONPath of a field of -o json, such as '{.created}'")
	completeOrigin(command, &f.people, e)
	completeTo(command, "output", "wide", "json", "yaml", "name")
	completeTo(command, "sort-by", sortable()...)
	return command
}

func (f *listFlags) run(ctx context.Context, e Env) error {
	if !slices.Contains([]string{"", "wide", "json", "yaml", "name"}, f.output) {
		return usageError("--output: is %q; expected wide, json, yaml or name, or nothing for a table", f.output)
	}
	order, err := sorting(f.sorting)
	if err != nil {
		return err
	}
	if err := f.checkSelectors(); err != nil {
		return err
	}
	s, err := f.people.open(ctx, e)
	if err != nil {
		return err
	}
	query, err := f.query(s)
	if err != nil {
		return err
	}
	defer s.done(e.Err)
	listing, err := s.List(ctx, query)
	if err != nil {
		return err
	}
	order(listing.Rows)
	printer := f.printer(e, s, listing)
	if err := printer.print(listing.Rows); err != nil || !f.watch {
		return err
	}
	return s.Watch(ctx, listing, inventory.Changes{
		Row: printer.change,
		Trouble: func(err error) {
			fmt.Fprintf(e.Err, "note: the watch was interrupted and goes on: %s\n", printable(err.Error()))
		},
	})
}

// checkSelectors refuses a selector that cannot be read before anything is
// asked.
func (f *listFlags) checkSelectors() error {
	if _, err := labels.Parse(f.labels); err != nil {
		return usageError("--selector: %v", err)
	}
	if _, err := fields.ParseSelector(f.fields); err != nil {
		return usageError("--field-selector: %v", err)
	}
	return nil
}

func (f *listFlags) query(s *session) (inventory.Query, error) {
	query := inventory.Query{Namespace: s.namespace, Own: s.namespace, LabelSelector: f.labels, FieldSelector: f.fields}
	if f.everywhere {
		query.Namespace = ""
	}
	if f.denied {
		query.States = append(query.States, inventory.Refused)
	}
	if f.revoked {
		query.States = append(query.States, inventory.Revoked)
	}
	if f.origin == "" {
		return query, nil
	}
	var err error
	query.Origin, err = s.claimArg(f.origin)
	return query, err
}

// rowPrinter prints rows in one form, at once or as they change.
type rowPrinter struct {
	env    Env
	output string
	table  table
	// everywhere says that namespaces have to be told.
	everywhere bool
	listing    listingDocument
	empty      string
	// told is what people were told of each mirror, but its age.
	told map[types.NamespacedName]string
}

// listingDocument is what -o json and yaml print: docs/list.schema.json.
type listingDocument struct {
	// Namespace is the one that was read; absent for all.
	Namespace string          `json:"namespace,omitempty"`
	Mirrors   []inventory.Row `json:"mirrors"`
	// NotVisible is what the identity that asked may not read.
	NotVisible []string `json:"notVisible,omitempty"`
}

func (f *listFlags) printer(e Env, s *session, listing *inventory.Listing) *rowPrinter {
	p := &rowPrinter{env: e, output: f.output, everywhere: listing.Namespace == "", told: map[types.NamespacedName]string{}}
	p.listing = listingDocument{Namespace: listing.Namespace, Mirrors: listing.Rows, NotVisible: s.Hidden()}
	if p.listing.Mirrors == nil {
		p.listing.Mirrors = []inventory.Row{}
	}
	p.table = table{terminal: terminalOf(e.Out), columns: listColumns}
	if f.output == "wide" { // all of it, however wide
		p.table = table{columns: append(slices.Clone(listColumns), wideColumns...), terminal: terminal{colour: p.table.terminal.colour}}
	}
	if f.watch {
		p.table.usual = p.cells([]inventory.Row{usualRow})[0]
	}
	which := "No mirror claims"
	if f.origin != "" || f.denied || f.revoked || f.labels != "" || f.fields != "" {
		which = "No such mirror claims"
	}
	p.empty = which + " in namespace " + listing.Namespace + "."
	if p.everywhere {
		p.empty = which + "."
	}
	return p
}

// print prints the listing.
func (p *rowPrinter) print(rows []inventory.Row) error {
	switch p.output {
	case "json", "yaml":
		return encode(p.env.Out, p.output, p.listing)
	case "name":
		return p.names(rows)
	}
	if len(rows) == 0 {
		fmt.Fprintln(p.env.Err, p.empty)
		return nil
	}
	return p.table.write(p.env.Out, p.cells(rows))
}

// change prints a row that changed: in the machines' forms a document of its
// own, as kubectl does.
func (p *rowPrinter) change(row inventory.Row) error {
	switch p.output {
	case "json":
		return encode(p.env.Out, p.output, row)
	case "yaml":
		fmt.Fprintln(p.env.Out, "---")
		return encode(p.env.Out, p.output, row)
	case "name":
		return p.names([]inventory.Row{row})
	}
	// What changes besides is seen with -o wide and in the machines' forms.
	told := string(row.State) + " " + row.Reason + " " + row.Origin
	if p.output == "" && p.told[row.Key()] == told {
		return nil
	}
	if p.told[row.Key()] = told; row.State == inventory.Gone {
		delete(p.told, row.Key())
	}
	return p.table.write(p.env.Out, p.cells([]inventory.Row{row}))
}

func (p *rowPrinter) names(rows []inventory.Row) error {
	var text strings.Builder
	for _, row := range rows {
		text.WriteString(row.Key().String() + "\n")
	}
	_, err := p.env.Out.Write([]byte(text.String()))
	return err
}

// usualRow leaves room for the mirrors that a watch may tell of.
var usualRow = inventory.Row{
	Namespace: "a-namespace", Name: "a-claim", Origin: "a-namespace/a-claim",
	Access: "ReadWrite", State: inventory.Refused, Reason: string(mirror.AccessModeUnsupported), Created: time.Now(),
}

var (
	listColumns = []column{{"ORIGIN", 12, 0}, {"MIRROR", 12, 0}, {"ACCESS", 0, 2}, {"STATE", 0, 0}, {"REASON", 0, 1}, {"AGE", 0, 3}}
	wideColumns = []column{{title: "CLASS"}, {title: "VOLUME"}, {title: "SERVED-BY"}, {title: "GRANTED-BY"}, {title: "REVOKED"}}
)

func (p *rowPrinter) cells(rows []inventory.Row) [][]cell {
	now := time.Now()
	var all [][]cell
	for _, row := range rows {
		name := row.Name
		if p.everywhere {
			name = types.NamespacedName{Namespace: row.Namespace, Name: row.Name}.String()
		}
		cells := []cell{
			{text: orElse(row.Origin, "-")}, {text: name}, {text: row.Access},
			{string(row.State), stateColour(row.State)}, {text: orElse(row.Reason, "-")},
			{text: duration.HumanDuration(now.Sub(row.Created))},
		}
		if p.output == "wide" {
			revoked := "-"
			if row.RevokedAt != nil {
				revoked = duration.HumanDuration(now.Sub(*row.RevokedAt))
			}
			cells = append(cells, cell{text: orElse(row.Class, "-")}, cell{text: orElse(row.Volume, "-")},
				cell{text: orElse(row.ServedBy, "-")}, cell{text: orElse(grantText(row.GrantedBy), "-")}, cell{text: revoked})
		}
		all = append(all, cells)
	}
	return all
}

// grantText is the selector of a recorded grant.
func grantText(recorded string) string {
	var granted mirror.GrantedBy
	if json.Unmarshal([]byte(recorded), &granted) != nil {
		return recorded
	}
	return granted.Selector
}
