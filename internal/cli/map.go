package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mooring-k8s/mooring/internal/inventory"
	"github.com/mooring-k8s/mooring/internal/layered"
	"github.com/mooring-k8s/mooring/internal/picture"
)

// mapDocument is what mooring map -o json prints.
type mapDocument struct {
	picture.Graph
	// NotVisible is what the identity that asked may not read.
	NotVisible []string `json:"notVisible,omitempty"`
}

func newMap(e Env) *cobra.Command {
	var people peopleFlags
	var origin, output string
	command := &cobra.Command{
		Use:   "map",
		Short: "Draw who shares what with whom",
		Long: "map draws origins, the namespaces that mirror them, the access they ask for and how each mirror\n" +
			"stands: of all that you may see, of one origin (--origin) or of one namespace's origins and mirrors\n" +
			"(--namespace). Where there are many mirrors, those that have all in common are drawn as one.\n\n" +
			"-o svg is a picture for a browser; dot is for Graphviz, mermaid for a README or an issue. -o json is\n" +
			"the whole graph, never grouped, as docs/map.schema.json says. Nothing is written but what is printed.",
		Example: "  mooring map -o svg > map.svg\n" +
			"  mooring map --origin data/projects -o svg > projects.svg\n" +
			"  mooring map --namespace team-a -o mermaid\n" +
			"  mooring map -o dot | dot -Tpdf > map.pdf",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			draw, err := drawerOf(cmd.Context(), output)
			if err != nil {
				return err
			}
			s, err := people.open(cmd.Context(), e)
			if err != nil {
				return err
			}
			defer s.done(e.Err)
			only := ""
			if *people.config.Namespace != "" {
				only = s.namespace
			}
			graph, err := s.graph(cmd.Context(), only, origin)
			if err != nil {
				return err
			}
			return draw(e.Out, mapDocument{Graph: graph, NotVisible: s.Hidden()})
		},
	}
	people.flags(command, e)
	command.Flags().StringVar(&origin, "origin", "", "only mirrors of this claim: NAMESPACE/CLAIM")
	command.Flags().StringVarP(&output, "output", "o", "svg", "svg, dot, mermaid or json")
	completeOrigin(command, &people, e)
	completeTo(command, "output", "svg", "dot", "mermaid", "json")
	return command
}

// drawerOf returns what prints a graph in one form.
func drawerOf(ctx context.Context, output string) (func(io.Writer, mapDocument) error, error) {
	text := func(draw func(picture.Graph) string) func(io.Writer, mapDocument) error {
		return func(out io.Writer, document mapDocument) error {
			_, err := io.WriteString(out, draw(document.Graph))
			return err
		}
	}
	switch output {
	case "svg":
		return func(out io.Writer, document mapDocument) error {
			drawn, err := picture.SVG(document.Graph, layered.By(ctx))
			if err != nil {
				return err
			}
			_, err = io.WriteString(out, drawn)
			return err
		}, nil
	case "dot":
		return text(picture.DOT), nil
	case "mermaid":
		return text(picture.Mermaid), nil
	case "json":
		return func(out io.Writer, document mapDocument) error { return encode(out, "json", document) }, nil
	}
	return nil, usageError("--output: is %q; expected svg, dot, mermaid or json", output)
}

// graph reads what is to be drawn: with a namespace its mirrors, and the mirrors
// of its origins.
func (s *session) graph(ctx context.Context, namespace, origin string) (picture.Graph, error) {
	graph := picture.Graph{Origins: []picture.Origin{}}
	query := inventory.Query{Own: s.namespace}
	if origin != "" {
		var err error
		if query.Origin, err = s.claimArg(origin); err != nil {
			return graph, err
		}
	}
	listing, err := s.List(ctx, query)
	if err != nil {
		return graph, fmt.Errorf("read the mirrors: %w", err)
	}
	isOther := func(row inventory.Row) bool {
		return namespace != "" && row.Namespace != namespace && !strings.HasPrefix(row.Origin, namespace+"/")
	}
	for _, row := range slices.DeleteFunc(listing.Rows, isOther) {
		graph.Add(row.Origin, picture.Mirror{Namespace: row.Namespace, Name: row.Name, Access: row.Access, State: string(row.State), Reason: row.Reason})
	}
	return graph, nil
}
