package picture

import (
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Measures of the drawing, in pixels. Letters of a monospaced face are all as
// wide, so that boxes fit their text whatever draws it.
const (
	letter    = 7.3
	lineRoom  = 22.0
	titleRoom = 26.0
	padding   = 12.0
	boxGap    = 14.0
	edgeRoom  = 220.0 // between the two sides
	margin    = 16.0
	heading   = 56.0 // the sides' titles and the legend above them
	longest   = 44   // letters of a name that are drawn; a tip has all of it
)

// side is a column of boxes with their places.
type side struct {
	boxes []box
	x, w  float64
	y     []float64 // of each box
}

func (b box) height() float64 {
	h := titleRoom + lineRoom*float64(len(b.lines)) + padding/2
	if b.note != "" {
		h += lineRoom
	}
	return h
}

// lineY is the middle of a line, from the top of its box.
func (b box) lineY(line int) float64 {
	y := titleRoom + lineRoom*(float64(line)+0.5)
	if b.note != "" {
		y += lineRoom
	}
	return y
}

func (b box) width() float64 {
	letters := max(width(b.title), width(b.note))
	for _, line := range b.lines {
		letters = max(letters, width(line.text)+width(line.status)+3)
	}
	return 2*padding + letter*float64(letters)
}

func width(text string) int { return utf8.RuneCountInString(shortened(text)) }

// shortened cuts a long text in the middle.
func shortened(text string) string {
	runes := []rune(text)
	if len(runes) <= longest {
		return text
	}
	return string(runes[:longest/2]) + "…" + string(runes[len(runes)-longest/2+1:])
}

// SVG returns a graph as a picture.
func SVG(graph Graph) string {
	v := viewOf(graph)
	v.arrange()
	left, right := sideOf(v.left), sideOf(v.right)
	v.stack(&left, &right)
	left.x = margin
	right.x = left.x + left.w + edgeRoom
	w, h := max(right.x+right.w+margin, legendWidth), heading+max(left.bottom(), right.bottom(), lineRoom)+margin

	d := &drawing{}
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img" font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="12">`, w, h, w, h)
	d.printf(`<title>Who shares what with whom</title>`)
	d.printf(`<desc>%s of %s</desc>`, plural(countMirrors(graph), "mirror"), plural(len(graph.Origins), "origin"))
	d.printf(`<rect width="100%%" height="100%%" fill="#ffffff"/>`)
	d.legend()
	d.text(left.x, heading-10, label{text: "origins", colour: ink, bold: true})
	d.text(right.x, heading-10, label{text: "mirrors", colour: ink, bold: true})
	if len(v.arrows) == 0 {
		d.text(left.x, heading+10, label{text: "none", colour: pale})
	}
	for _, arrow := range v.arrows {
		d.arrow(arrow, left, right)
	}
	d.side(left)
	d.side(right)
	d.printf(`</svg>`)
	return d.String()
}

func countMirrors(graph Graph) int {
	count := 0
	for _, origin := range graph.Origins {
		count += len(origin.Mirrors)
	}
	return count
}

// drawing is the text of an SVG document.
type drawing struct{ strings.Builder }

func (d *drawing) printf(format string, args ...any) {
	fmt.Fprintf(d, format, args...)
	d.WriteByte('\n')
}

func escaped(text string) string {
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, []byte(plain(text))) // into memory
	return escaped.String()
}

// label is a text of the drawing; a tip has all of what it stands for.
type label struct {
	text, tip, colour string
	bold              bool
}

const (
	ink  = "#263238"
	pale = "#607d8b"
)

func (d *drawing) text(x, y float64, l label) {
	if l.text == "" {
		return
	}
	weight, tip := "", ""
	if l.bold {
		weight = ` font-weight="bold"`
	}
	if l.tip != "" {
		tip = "<title>" + escaped(l.tip) + "</title>"
	}
	d.printf(`<text x="%.1f" y="%.1f" fill="%s"%s>%s%s</text>`, x, y, l.colour, weight, tip, escaped(shortened(strings.ReplaceAll(l.text, "\n", " "))))
}

const legendWidth = 810.0

func (d *drawing) legend() {
	x := margin
	for _, entry := range []struct {
		style style
		text  string
	}{
		{style{"ReadWrite", bound}, "read-write"}, {style{readOnly, bound}, "read-only"},
		{style{"ReadWrite", "Refused"}, "refused, waiting"}, {style{"ReadWrite", "Revoked"}, "grant ended"}, {style{"ReadWrite", "Unclear"}, "unclear"}, {style{"ReadWrite", "Pending"}, "pending"},
	} {
		d.printf(`<path d="M%.1f %.1fh28" %s/>`, x, margin, entry.style.stroke())
		d.text(x+36, margin+4, label{text: entry.text, colour: ink})
		x += 36 + letter*float64(width(entry.text)) + 20
	}
}

func (s style) stroke() string {
	dashes := ""
	switch s.dotStyle() {
	case "dashed":
		dashes = ` stroke-dasharray="7 4"`
	case "dotted":
		dashes = ` stroke-dasharray="2 4"`
	}
	return fmt.Sprintf(`fill="none" stroke="%s" stroke-width="1.6"%s`, s.colour(), dashes)
}

func (d *drawing) arrow(arrow arrow, left, right side) {
	x1, y1 := left.x+left.w, heading+left.y[arrow.from.box]+left.boxes[arrow.from.box].lineY(arrow.from.line)
	x2, y2 := right.x, heading+right.y[arrow.to.box]+right.boxes[arrow.to.box].lineY(arrow.to.line)
	const head = 7
	d.printf(`<path d="M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f" %s/>`, x1, y1, x1+edgeRoom/2, y1, x2-head-edgeRoom/2, y2, x2-head, y2, arrow.style.stroke())
	d.printf(`<path d="M%.1f %.1fl-%d -4v8z" fill="%s"/>`, x2, y2, head, arrow.style.colour())
}

func (d *drawing) side(s side) {
	for i, box := range s.boxes {
		top := heading + s.y[i]
		d.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="6" fill="#f4f6f8" stroke="#b0bec5"/>`, s.x, top, s.w, box.height())
		d.text(s.x+padding, top+18, label{box.title, box.tip, ink, true})
		d.text(s.x+padding, top+titleRoom+14, label{box.note, box.tip, pale, false})
		for j, line := range box.lines {
			y := top + box.lineY(j) + 4
			d.text(s.x+padding, y, label{line.text, line.tip, ink, false})
			colour := pale
			if line.style.state != "" {
				colour = line.style.colour()
			}
			d.text(s.x+s.w-padding-letter*float64(width(line.status)), y, label{text: line.status, colour: colour})
		}
	}
}
