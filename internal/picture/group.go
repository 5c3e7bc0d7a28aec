package picture

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// How much is drawn, from everything to what still fits a screen or two.
type detail int

const (
	eachMirror detail = iota
	// eachOrigin: mirrors of one namespace that have origin, access and state in
	// common are one line, and namespaces that have all their lines in common one
	// box.
	eachOrigin
	// eachNamespace: also the origins of one namespace are one box.
	eachNamespace
	// eachOwner: also all mirrors of a namespace's origins are one box, and the
	// namespaces with the fewest mirrors one.
	eachOwner
)

// How many boxes and lines a picture can be read with.
const (
	fewLines   = 50
	manyLines  = 130
	mostOwners = 40
)

// view is a graph as it is drawn: boxes of origins on the left, boxes of mirrors
// on the right, and an arrow from a box on the left to each line on the right.
type view struct{ left, right []box }

// box is an origin or a namespace, or several of a kind.
type box struct {
	title string
	// note says more about what the box stands for; tip all of it.
	note, tip string
	lines     []line
}

// line is a mirror, or several of a kind.
type line struct {
	text, status, tip string
	style             style
	// from is the box of the origin.
	from int
}

// style is what tells arrows apart.
type style struct{ access, state string }

// viewOf groups a graph until it can be looked at.
func viewOf(graph Graph) view {
	for _, d := range []detail{eachMirror, eachOrigin, eachNamespace} {
		most := manyLines
		if d == eachMirror {
			most = fewLines
		}
		if v := grouped(graph, d); v.size() <= most {
			return v
		}
	}
	return grouped(graph, eachOwner)
}

// size is how much there is to read.
func (v view) size() int {
	lines := len(v.left)
	for _, box := range v.right {
		lines += len(box.lines)
	}
	return lines
}

// bundle is the mirrors that are drawn as one line.
type bundle struct {
	from int
	style
	reason string
	names  []string
}

func (b bundle) compare(other bundle) int {
	return cmp.Or(cmp.Compare(b.from, other.from), cmp.Compare(b.access, other.access), cmp.Compare(b.state, other.state),
		cmp.Compare(strings.Join(b.names, ","), strings.Join(other.names, ",")))
}

func grouped(graph Graph, d detail) view {
	var v view
	bundles := map[string][]bundle{} // by the mirrors' namespace
	for _, origins := range originsOf(graph, d) {
		v.origins(origins)
		from := len(v.left) - 1
		all, namespaces := []bundle{}, map[string]bool{}
		for _, mirror := range mirrorsOf(origins) {
			bundles[mirror.Namespace] = bundled(bundles[mirror.Namespace], from, mirror, d)
			all, namespaces[mirror.Namespace] = bundled(all, from, mirror, d), true
		}
		if d == eachOwner {
			v.mirrors(slices.Sorted(maps.Keys(namespaces)), [][]bundle{all})
		}
	}
	if d == eachOwner {
		return v
	}
	alike := map[string][]string{}
	var order []string
	for _, namespace := range slices.Sorted(maps.Keys(bundles)) {
		slices.SortFunc(bundles[namespace], bundle.compare)
		kind := namespace
		if d != eachMirror {
			kind = signature(bundles[namespace])
		}
		if alike[kind] == nil {
			order = append(order, kind)
		}
		alike[kind] = append(alike[kind], namespace)
	}
	for _, kind := range order {
		var of [][]bundle
		for _, namespace := range alike[kind] {
			of = append(of, bundles[namespace])
		}
		v.mirrors(alike[kind], of)
	}
	return v
}

// originsOf returns the origins that are one box each: those of a namespace
// where that is the detail, else every one.
func originsOf(graph Graph, d detail) [][]Origin {
	var all [][]Origin
	for _, origin := range graph.Origins {
		last := len(all) - 1
		if d >= eachNamespace && last >= 0 && all[last][0].Namespace == origin.Namespace {
			all[last] = append(all[last], origin)
		} else {
			all = append(all, []Origin{origin})
		}
	}
	if d < eachOwner || len(all) <= mostOwners {
		return all
	}
	slices.SortStableFunc(all, func(a, b []Origin) int { return cmp.Compare(len(mirrorsOf(b)), len(mirrorsOf(a))) })
	return append(all[:mostOwners-1:mostOwners-1], slices.Concat(all[mostOwners-1:]...))
}

func mirrorsOf(origins []Origin) []Mirror {
	var all []Mirror
	for _, origin := range origins {
		all = append(all, origin.Mirrors...)
	}
	return all
}

// origins adds the box of origins.
func (v *view) origins(origins []Origin) {
	var names, namespaces []string
	for _, origin := range origins {
		names = append(names, origin.Namespace+"/"+origin.Name)
		if !slices.Contains(namespaces, origin.Namespace) {
			namespaces = append(namespaces, origin.Namespace)
		}
	}
	added := box{title: names[0], note: plural(len(mirrorsOf(origins)), "mirror"), tip: strings.Join(names, ", ")}
	switch {
	case len(namespaces) > 1:
		added.title = plural(len(namespaces), "other namespace")
	case origins[0].Namespace == "":
		added.title, added.tip = "no origin named", ""
	case len(origins) > 1:
		added.title = "namespace " + origins[0].Namespace
	}
	if len(origins) > 1 {
		added.note = plural(len(origins), "origin") + ", " + added.note
	}
	v.left = append(v.left, added)
}

func bundled(bundles []bundle, from int, mirror Mirror, d detail) []bundle {
	added := bundle{from: from, style: style{mirror.Access, mirror.State}, reason: mirror.Reason, names: []string{mirror.Name}}
	if d == eachMirror {
		return append(bundles, added)
	}
	for i := range bundles {
		if bundles[i].from == from && bundles[i].style == added.style {
			bundles[i].names = append(bundles[i].names, mirror.Name)
			if bundles[i].reason != mirror.Reason {
				bundles[i].reason = ""
			}
			return bundles
		}
	}
	return append(bundles, added)
}

// signature is what namespaces have in common that are drawn as one.
func signature(bundles []bundle) string {
	var text strings.Builder
	for _, b := range bundles {
		fmt.Fprintf(&text, "%d %q %q %q\n", b.from, b.access, b.state, b.reason)
	}
	return text.String()
}

// mirrors adds the box of namespaces, whose bundles are alike.
func (v *view) mirrors(namespaces []string, alike [][]bundle) {
	added := box{title: "namespace " + namespaces[0], tip: strings.Join(namespaces, ", ")}
	if len(namespaces) > 1 {
		added.title, added.note = plural(len(namespaces), "namespace"), some(namespaces)
	}
	for i, bundle := range alike[0] {
		count := 0
		for _, bundles := range alike {
			count += len(bundles[i].names)
		}
		text, tip := bundle.names[0], namespaces[0]+"/"+bundle.names[0]
		if count > 1 || len(namespaces) > 1 {
			text, tip = plural(count, "mirror"), ""
		}
		added.lines = append(added.lines, line{text: text, status: bundle.status(), style: bundle.style, tip: tip, from: bundle.from})
	}
	v.right = append(v.right, added)
}

func (b bundle) status() string {
	text := accessWord(b.access) + ", " + b.state
	if b.reason != "" && b.state != bound {
		text += ": " + b.reason
	}
	return text
}

const (
	bound    = "Bound"
	readOnly = "ReadOnly"
)

func accessWord(access string) string {
	if access == readOnly {
		return "read-only"
	}
	return "read-write"
}

func plural(count int, what string) string {
	if count == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", count, what)
}

// some names the first few and the last of many.
func some(names []string) string {
	const few = 2
	if len(names) <= few+1 {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:few], ", ") + " … " + names[len(names)-1]
}
