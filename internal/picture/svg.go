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
	boxGap    = 14
	edgeRoom  = 220.0 // between the two sides
	margin    = 16.0
	heading   = 76.0 // the sides' titles and the legend above them
	longest   = 44   // letters of a name that are drawn; a tip has all of it
)

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

// SVG returns a graph as a picture, whose boxes are placed by a layout.
func SVG(graph Graph, layered Layered) (string, error) {
	v := viewOf(graph)
	left, right, err := v.layOut(layered)
	if err != nil {
		return "", err
	}
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
	if len(v.left) == 0 {
		d.text(left.x, heading+10, label{text: "none", colour: pale})
	}
	d.arrows(left, right)
	d.side(left)
	d.side(right)
	d.printf(`</svg>`)
	return d.String(), nil
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

const legendWidth = 660.0

// legend says what a line's form means, and what its colour.
func (d *drawing) legend() {
	x, y := margin, margin
	entry := func(mark, text string) {
		d.printf(mark, x, y)
		d.text(x+36, y+4, label{text: text, colour: ink})
		x += 36 + letter*float64(width(text)) + 20
	}
	for _, form := range []struct {
		of   style
		text string
	}{
		{style{"ReadWrite", bound}, "read-write"}, {style{readOnly, bound}, "read-only"}, {style{"ReadWrite", "Refused"}, "no data reached"},
	} {
		entry(`<path d="M%.1f %.1fh28" fill="none" stroke="`+ink+`" stroke-width="1.6"`+form.of.dashes()+`/>`, form.text)
	}
	x, y = margin, margin+20
	for _, colour := range []struct{ state, text string }{
		{bound, "bound"}, {"Refused", "refused, lost, grant ended"}, {"Waiting", "waiting, unclear, ending"}, {"Pending", "pending"},
	} {
		entry(`<path d="M%.1f %.1fm8 -6h12v12h-12z" fill="`+style{state: colour.state}.colour()+`"/>`, colour.text)
	}
}

func (s style) stroke() string {
	return fmt.Sprintf(`fill="none" stroke="%s" stroke-width="1.6"%s`, s.colour(), s.dashes())
}

func (s style) dashes() string {
	switch s.dotStyle() {
	case "dashed":
		return ` stroke-dasharray="7 4"`
	case "dotted":
		return ` stroke-dasharray="2 4"`
	}
	return ""
}

// arrows draws one to each line on the right.
func (d *drawing) arrows(left, right side) {
	for i, box := range right.boxes {
		for j, line := range box.lines {
			d.arrow(place{left.x + left.w, heading + left.y[line.from] + left.boxes[line.from].height()/2},
				place{right.x, heading + right.y[i] + box.lineY(j)}, line.style)
		}
	}
}

// place is a point of the drawing.
type place struct{ x, y float64 }

func (d *drawing) arrow(from, to place, s style) {
	const head = 7
	d.printf(`<path d="M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f" %s/>`, from.x, from.y, from.x+edgeRoom/2, from.y, to.x-head-edgeRoom/2, to.y, to.x-head, to.y, s.stroke())
	d.printf(`<path d="M%.1f %.1fl-%d -4v8z" fill="%s"/>`, to.x, to.y, head, s.colour())
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
			d.text(s.x+s.w-padding-letter*float64(width(line.status)), y, label{text: line.status, colour: line.style.colour()})
		}
	}
}
