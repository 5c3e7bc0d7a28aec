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
	// eachNamespace: also the origins of one namespace are one line.
	eachNamespace
)

// Lines on the right side up to which a picture can be read with that detail.
const (
	fewLines  = 40
	manyLines = 120
)

// view is a graph as it is drawn: boxes of origins on the left, boxes of mirrors
// on the right, and arrows between their lines.
type view struct {
	left, right []box
	arrows      []arrow
}

// box is a namespace, or several of a kind.
type box struct {
	title string
	// note says more about what the box stands for; tip all of it.
	note, tip string
	lines     []line
}

// line is an origin or a mirror, or several of a kind.
type line struct {
	text, status string
	style        style
	tip          string
}

// arrow goes from a line on the left to one on the right.
type arrow struct {
	from, to place
	style    style
}

// place is a line of a box.
type place struct{ box, line int }

// style is what tells arrows apart.
type style struct{ access, state string }

// viewOf groups a graph until it can be looked at.
func viewOf(graph Graph) view {
	for _, d := range []detail{eachMirror, eachOrigin} {
		v := grouped(graph, d)
		if lines := v.rightLines(); d == eachMirror && lines <= fewLines || d == eachOrigin && lines <= manyLines {
			return v
		}
	}
	return grouped(graph, eachNamespace)
}

func (v view) rightLines() int {
	lines := 0
	for _, box := range v.right {
		lines += len(box.lines)
	}
	return lines
}

// bundle is the mirrors that are drawn as one line.
type bundle struct {
	from place
	style
	reason string
	names  []string
}

func (b bundle) compare(other bundle) int {
	return cmp.Or(cmp.Compare(b.from.box, other.from.box), cmp.Compare(b.from.line, other.from.line),
		cmp.Compare(b.access, other.access), cmp.Compare(b.state, other.state), cmp.Compare(strings.Join(b.names, ","), strings.Join(other.names, ",")))
}

func grouped(graph Graph, d detail) view {
	var v view
	bundles := map[string][]bundle{} // by the mirrors' namespace
	for _, origin := range graph.Origins {
		from := v.origin(origin, d)
		for _, mirror := range origin.Mirrors {
			bundles[mirror.Namespace] = bundled(bundles[mirror.Namespace], from, mirror, d)
		}
	}
	v.countMirrors(graph, d)
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
		v.mirrors(alike[kind], bundles, d)
	}
	return v
}

// origin returns the line of an origin, which it adds if there is none.
func (v *view) origin(origin Origin, d detail) place {
	title := "namespace " + origin.Namespace
	if origin.Namespace == "" {
		title = "no origin named"
	}
	if len(v.left) == 0 || v.left[len(v.left)-1].title != title {
		v.left = append(v.left, box{title: title, tip: title})
	}
	at := len(v.left) - 1
	if d != eachNamespace || len(v.left[at].lines) == 0 {
		v.left[at].lines = append(v.left[at].lines, line{text: origin.Name, tip: origin.Namespace + "/" + origin.Name})
	}
	return place{at, len(v.left[at].lines) - 1}
}

// countMirrors writes beside each origin how many mirrors it has.
func (v *view) countMirrors(graph Graph, d detail) {
	mirrors, origins := map[place]int{}, map[place]int{}
	at := place{-1, 0}
	last := ""
	for i, origin := range graph.Origins {
		switch {
		case i == 0 || origin.Namespace != last:
			at = place{at.box + 1, 0}
		case d != eachNamespace:
			at.line++
		}
		last = origin.Namespace
		mirrors[at] += len(origin.Mirrors)
		origins[at]++
	}
	for at, count := range mirrors {
		line := &v.left[at.box].lines[at.line]
		line.status = plural(count, "mirror")
		if origins[at] > 1 {
			line.text, line.tip = plural(origins[at], "origin"), ""
		}
	}
}

func bundled(bundles []bundle, from place, mirror Mirror, d detail) []bundle {
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
		fmt.Fprintf(&text, "%d/%d %q %q %q\n", b.from.box, b.from.line, b.access, b.state, b.reason)
	}
	return text.String()
}

// mirrors adds the box of namespaces that are alike, and its arrows.
func (v *view) mirrors(namespaces []string, bundles map[string][]bundle, d detail) {
	added := box{title: "namespace " + namespaces[0], tip: strings.Join(namespaces, ", ")}
	if len(namespaces) > 1 {
		added.title, added.note = plural(len(namespaces), "namespace"), some(namespaces)
	}
	for i, bundle := range bundles[namespaces[0]] {
		count := 0
		for _, namespace := range namespaces {
			count += len(bundles[namespace][i].names)
		}
		text, tip := bundle.names[0], namespaces[0]+"/"+bundle.names[0]
		if d != eachMirror && (count > 1 || len(namespaces) > 1) {
			text, tip = plural(count, "mirror"), ""
		}
		added.lines = append(added.lines, line{text: text, status: bundle.status(), style: bundle.style, tip: tip})
		v.arrows = append(v.arrows, arrow{bundle.from, place{len(v.right), i}, bundle.style})
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
