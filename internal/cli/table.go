package cli

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// column is one of a table for people.
type column struct {
	title string
	// shrinks is how narrow the column may become: its values are then cut in
	// the middle. 0 means that they are never cut.
	shrinks int
	// optional columns are left out of a terminal that is too narrow for them,
	// the highest first. 0 stays.
	optional int
}

// cell is a value and the colour that it is shown in, if any.
type cell struct{ text, colour string }

const (
	tableGap = 3
	cut      = "…"
)

// table prints rows below each other, so that no line is longer than the
// terminal is wide. It keeps its columns' places when more rows come.
type table struct {
	columns  []column
	terminal terminal
	// usual is a row that will fit whatever comes later, where more rows come.
	usual  []cell
	widths []int // 0: left out
}

// write writes rows, and the titles if these are the first.
func (t *table) write(out io.Writer, rows [][]cell) error {
	var text strings.Builder
	if t.widths == nil {
		measured := rows
		if t.usual != nil {
			measured = append(slices.Clone(rows), t.usual)
		}
		t.place(measured)
		titles := make([]cell, len(t.columns))
		for i, column := range t.columns {
			titles[i].text = column.title
		}
		t.line(&text, titles)
	}
	for _, row := range rows {
		t.line(&text, row)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// place decides how wide each column is.
func (t *table) place(rows [][]cell) {
	t.widths = make([]int, len(t.columns))
	for i, column := range t.columns {
		t.widths[i] = utf8.RuneCountInString(column.title)
		for _, row := range rows {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(row[i].text))
		}
	}
	if t.terminal.width == 0 {
		return
	}
	for t.least() > t.terminal.width && t.leaveOut() {
	}
	for t.total() > t.terminal.width && t.shrink() {
	}
}

// total is the length of a line.
func (t *table) total() int {
	total := -tableGap
	for _, width := range t.widths {
		if width > 0 {
			total += width + tableGap
		}
	}
	return total
}

// least is the length of a line all of whose columns are shrunk.
func (t *table) least() int {
	total := t.total()
	for i, column := range t.columns {
		if column.shrinks > 0 && t.widths[i] > column.shrinks {
			total -= t.widths[i] - column.shrinks
		}
	}
	return total
}

// leaveOut leaves out the next column that is optional, if there is one.
func (t *table) leaveOut() bool {
	worst := -1
	for i, column := range t.columns {
		if t.widths[i] > 0 && column.optional > 0 && (worst < 0 || column.optional > t.columns[worst].optional) {
			worst = i
		}
	}
	if worst < 0 {
		return false
	}
	t.widths[worst] = 0
	return true
}

// shrink takes one character from the widest column that can give it.
func (t *table) shrink() bool {
	widest := -1
	for i, column := range t.columns {
		if column.shrinks > 0 && t.widths[i] > column.shrinks && (widest < 0 || t.widths[i] > t.widths[widest]) {
			widest = i
		}
	}
	if widest < 0 {
		return false
	}
	t.widths[widest]--
	return true
}

func (t *table) line(text *strings.Builder, row []cell) {
	blanks := 0 // owed; a line does not end with any
	for i, value := range row {
		if t.widths[i] == 0 {
			continue
		}
		shown := value.text
		if t.terminal.width > 0 {
			shown = cutMiddle(shown, t.widths[i])
		}
		shown = printable(strings.ReplaceAll(shown, "\n", " "))
		if shown != "" {
			text.WriteString(strings.Repeat(" ", blanks))
			text.WriteString(t.terminal.paint(value.colour, shown))
			blanks = 0
		}
		blanks += tableGap + max(0, t.widths[i]-utf8.RuneCountInString(shown))
	}
	text.WriteByte('\n')
}

// cutMiddle shortens text to a width. Both ends stay: what tells names apart is
// mostly there.
func cutMiddle(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	if width <= 1 {
		return cut
	}
	tail := (width - 1) / 2
	return string(runes[:width-1-tail]) + cut + string(runes[len(runes)-tail:])
}
