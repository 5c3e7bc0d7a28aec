package cli

import "io"

// inWorkflow says whether a runner of a forge reads what is printed.
func inWorkflow(lookup func(string) (string, bool)) bool {
	value, _ := lookup("GITHUB_ACTIONS")
	return value != ""
}

// commandless writes what a runner reads and does not obey. A runner takes a line that
// begins with :: for a command of the step, and ##[ anywhere in a line, such as one
// that sets an output or hides a text from the log; and what is printed quotes names
// and values of others. What could begin a command is written as JSON would escape
// it, so that JSON stays the same.
type commandless struct {
	io.Writer
	inLine bool // something but white space stands in the line
	hashes int  // how many # were the last bytes
}

func (w *commandless) Write(data []byte) (int, error) {
	text := make([]byte, 0, len(data))
	for _, b := range data {
		switch {
		case b == ':' && !w.inLine:
			text = append(text, `\u003a`...)
		case b == '[' && w.hashes >= 2:
			text = append(text, `\u005b`...)
		default:
			text = append(text, b)
		}
		w.follow(b)
	}
	if _, err := w.Writer.Write(text); err != nil {
		return 0, err
	}
	return len(data), nil
}

// follow takes note of a byte that was written. A carriage return ends a line for
// some runners; bytes beyond ASCII may be white space.
func (w *commandless) follow(b byte) {
	switch {
	case b == '\n' || b == '\r':
		w.inLine = false
	case b > ' ' && b < 0x80:
		w.inLine = true
	}
	if b == '#' {
		w.hashes++
	} else {
		w.hashes = 0
	}
}
