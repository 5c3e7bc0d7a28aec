package cli

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"

	"github.com/mooring-k8s/mooring/internal/inventory"
)

// terminal is what is known of where text goes.
type terminal struct {
	// width is how many characters a line holds; 0 where that does not matter:
	// in a pipe or a file.
	width  int
	colour bool
}

// terminalOf looks at where a command writes. $COLUMNS names a width where
// there is no terminal, $NO_COLOR means what https://no-color.org says.
func terminalOf(out io.Writer) terminal {
	var t terminal
	if wrapped, ok := out.(*firstError); ok {
		out = wrapped.Writer
	}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		t.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		t.width, _, _ = term.GetSize(int(file.Fd())) // unknown: 0
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		t.width = columns
	}
	return t
}

// Colours of a terminal's own palette, which its user has chosen.
const (
	green  = "32"
	yellow = "33"
	red    = "31"
)

// paint colours text for a terminal that shows colours.
func (t terminal) paint(colour, text string) string {
	if !t.colour || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// stateColour is how a state is told from others at a glance; the word says it
// too.
func stateColour(state inventory.State) string {
	switch state {
	case inventory.Bound:
		return green
	case inventory.Revoked, inventory.Refused, inventory.Lost:
		return red
	case inventory.Unclear, inventory.Waiting, inventory.Ending, inventory.Gone:
		return yellow
	case inventory.Pending:
	}
	return ""
}
