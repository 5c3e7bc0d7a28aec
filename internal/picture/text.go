package picture

import (
	"fmt"
	"strings"
	"unicode"
)

// Names reach DOT and Mermaid as labels only, between quotes and escaped; what
// the languages see as names of their own is made here.

func leftID(box int) string        { return fmt.Sprintf("o%d", box) }
func rightID(box, line int) string { return fmt.Sprintf("m%d_%d", box, line) }

// DOT returns a graph in Graphviz's language.
func DOT(graph Graph) string {
	v := viewOf(graph)
	var text strings.Builder
	text.WriteString("digraph mirrors {\n  rankdir=LR\n  ranksep=2\n  fontname=\"sans-serif\"\n" +
		"  node [shape=box style=\"rounded,filled\" fillcolor=white fontname=\"sans-serif\" fontsize=11]\n  edge [fontname=\"sans-serif\" fontsize=10]\n")
	for i, box := range v.left {
		fmt.Fprintf(&text, "  %s [label=%s fillcolor=\"#f4f6f8\" color=\"#b0bec5\"]\n", leftID(i), dotQuoted(labelOf(box.title, box.note)))
	}
	for i, box := range v.right {
		fmt.Fprintf(&text, "  subgraph cluster_m%d {\n    style=\"rounded,filled\" fillcolor=\"#f4f6f8\" color=\"#b0bec5\"\n    label=%s\n", i, dotQuoted(labelOf(box.title, box.note)))
		for j, line := range box.lines {
			fmt.Fprintf(&text, "    %s [label=%s]\n", rightID(i, j), dotQuoted(labelOf(line.text, line.status)))
		}
		text.WriteString("  }\n")
	}
	v.eachArrow(func(from, to string, s style) {
		fmt.Fprintf(&text, "  %s -> %s [color=%q style=%s]\n", from, to, s.colour(), s.dotStyle())
	})
	text.WriteString("}\n")
	return text.String()
}

func labelOf(text, more string) string {
	if more == "" {
		return text
	}
	return text + "\n" + more
}

// dotQuoted is a label in DOT: Graphviz reads backslashes, quotes and XML's
// entities in it.
func dotQuoted(label string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;", "\n", `\n`).Replace(plain(label)) + `"`
}

// plain drops what is no text.
func plain(label string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(label, string(unicode.ReplacementChar)))
}

// Mermaid returns a graph in Mermaid's language, which many forges draw.
func Mermaid(graph Graph) string {
	v := viewOf(graph)
	var text strings.Builder
	text.WriteString("flowchart LR\n")
	for i, box := range v.left {
		fmt.Fprintf(&text, "  %s[%s]\n", leftID(i), mermaidQuoted(labelOf(box.title, box.note)))
	}
	for i, box := range v.right {
		fmt.Fprintf(&text, "  subgraph m%d[%s]\n", i, mermaidQuoted(labelOf(box.title, box.note)))
		for j, line := range box.lines {
			fmt.Fprintf(&text, "    %s[%s]\n", rightID(i, j), mermaidQuoted(labelOf(line.text, line.status)))
		}
		text.WriteString("  end\n")
	}
	var colours []string
	v.eachArrow(func(from, to string, s style) {
		kind := "-->"
		if s.dotStyle() != "solid" {
			kind = "-.->"
		}
		fmt.Fprintf(&text, "  %s %s %s\n", from, kind, to)
		colours = append(colours, s.colour())
	})
	for i, colour := range colours {
		fmt.Fprintf(&text, "  linkStyle %d stroke:%s\n", i, colour)
	}
	return text.String()
}

// eachArrow calls draw for each arrow, with the names of its ends.
func (v view) eachArrow(draw func(from, to string, s style)) {
	for i, box := range v.right {
		for j, line := range box.lines {
			draw(leftID(line.from), rightID(i, j), line.style)
		}
	}
}

// mermaidQuoted is a label in Mermaid. It finds directives, comments, Markdown
// and HTML even between quotes, so what is not plainly text becomes a number.
func mermaidQuoted(label string) string {
	var text strings.Builder
	for _, r := range plain(label) {
		switch {
		case r == '\n':
			text.WriteString("<br/>")
		case r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune(" ./:,-", r):
			text.WriteRune(r)
		default:
			fmt.Fprintf(&text, "#%d;", r)
		}
	}
	return `"` + text.String() + `"`
}

// colour tells how a mirror stands; the word stands beside it.
func (s style) colour() string {
	switch s.state {
	case bound:
		return "#2e7d32"
	case "Revoked", "Refused", "Lost":
		return "#c62828"
	case "Unclear", "Waiting", "Ending":
		return "#b26a00"
	}
	return "#607d8b"
}

// dotStyle is solid for read-write, dashed for read-only, dotted where no data
// is reached.
func (s style) dotStyle() string {
	switch {
	case s.state == "Refused" || s.state == "Waiting" || s.state == "Pending" || s.state == "Lost":
		return "dotted"
	case s.access == readOnly:
		return "dashed"
	}
	return "solid"
}
