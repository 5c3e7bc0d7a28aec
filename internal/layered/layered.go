// Package layered places the boxes of a picture by dagre, the layout that Mermaid
// draws with too, as D2 has it. It is the one package that knows the library.
package layered

import (
	"context"
	"strconv"

	"oss.terrastruct.com/d2/d2graph"
	"oss.terrastruct.com/d2/d2layouts/d2dagrelayout"
	"oss.terrastruct.com/d2/lib/geo"

	"github.com/mooring-k8s/mooring/internal/picture"
)

// By returns what places boxes, unless nobody waits for it any more. The library
// does not look at the context once it has begun: what is drawn is grouped before,
// so that it takes a second or two at the most.
func By(ctx context.Context) picture.Layered {
	return func(layers picture.Layers) (picture.Places, error) {
		if err := ctx.Err(); err != nil {
			return picture.Places{}, err
		}
		graph := d2graph.NewGraph()
		graph.Root.Direction.Value = "right"
		left, right := add(graph, layers.Left), add(graph, layers.Right)
		for i, arrow := range layers.Arrows {
			graph.Edges = append(graph.Edges, &d2graph.Edge{Index: i, Src: left[arrow[0]], Dst: right[arrow[1]], DstArrow: true})
		}
		options := d2dagrelayout.ConfigurableOpts{NodeSep: layers.Gap, EdgeSep: layers.Gap / 2}
		if err := d2dagrelayout.Layout(ctx, graph, &options); err != nil {
			return picture.Places{}, err
		}
		return picture.Places{Left: tops(left), Right: tops(right)}, nil
	}
}

// add adds the boxes of a layer to a graph.
func add(graph *d2graph.Graph, boxes []picture.Size) []*d2graph.Object {
	all := make([]*d2graph.Object, len(boxes))
	for i, size := range boxes {
		id := strconv.Itoa(len(graph.Objects))
		all[i] = &d2graph.Object{
			Graph: graph, Parent: graph.Root, ID: id, IDVal: id, Children: map[string]*d2graph.Object{},
			Box: geo.NewBox(geo.NewPoint(0, 0), size.Width, size.Height),
		}
		graph.Objects = append(graph.Objects, all[i])
		graph.Root.Children[id] = all[i]
		graph.Root.ChildrenArray = append(graph.Root.ChildrenArray, all[i])
	}
	return all
}

// tops returns where the boxes stand, from the top of the highest.
func tops(boxes []*d2graph.Object) []float64 {
	all := make([]float64, len(boxes))
	for i, box := range boxes {
		all[i] = box.TopLeft.Y
	}
	return all
}
