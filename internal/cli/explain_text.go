package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// marks are how the steps of a ladder are told apart at a glance.
var marks = map[mirror.StepOutcome]cell{
	mirror.Passed:     {"✓", green},
	mirror.Stopped:    {"✗", red},
	mirror.Unseen:     {"?", yellow},
	mirror.NotReached: {"·", ""},
}

func printExplanation(out io.Writer, x Explanation) error {
	t := terminalOf(out)
	p := &prose{width: t.width}
	p.add("", "claim "+x.Claim+": "+headline(x))
	p.add("  ", x.Message)
	if x.Said != nil && (x.Said.Reason != string(x.Reason)) && x.From == fromRules {
		p.add("  ", "The controller's answer so far is another: "+x.Said.Reason+", "+x.Said.Message)
	}
	p.source(x)
	p.add("", "")
	for i, step := range x.Steps {
		p.step(t, i+1, step)
	}
	if m := x.Mend; m != nil && m.How != "" {
		p.add("", "")
		p.add("", "Who can mend it: "+who(x)+".")
		p.add("  ", m.How)
		if m.Wakes != "" {
			p.add("  ", "Decided again after "+m.Wakes+".")
		}
	}
	_, err := io.WriteString(out, p.text.String())
	return err
}

func headline(x Explanation) string {
	line := map[string]string{
		string(mirror.StandsBound):   "bound, and its grant holds",
		string(mirror.StandsAllowed): "nothing is in its way",
		string(mirror.StandsRefused): "refused",
		string(mirror.StandsWaiting): "waiting",
		string(mirror.StandsRevoked): "bound, and its grant has ended",
	}[x.Outcome]
	line = orElse(line, "not certain")
	if x.Reason != "" && x.Reason != mirror.Mirrored {
		line += " (" + string(x.Reason) + ")"
	}
	if x.From == fromController {
		line += ", by the controller's answer"
	}
	return line
}

func who(x Explanation) string {
	namespace, _, _ := strings.Cut(x.Claim, "/")
	switch mirror.Side(x.Mend.Who) {
	case mirror.AskingSide:
		return "the asking side, who has claim " + x.Claim + " in namespace " + namespace
	case mirror.Owner:
		return "the owner of " + orElse(x.Origin, "the origin")
	case mirror.Administrator:
		return "an administrator of the cluster"
	case mirror.Nobody:
	}
	return "nobody needs to"
}

// prose is text that is wrapped at a terminal's width, if there is one.
type prose struct {
	text  strings.Builder
	width int
}

func (p *prose) source(x Explanation) {
	s := x.Source
	if s == nil {
		return
	}
	p.add("", "")
	line := func(label, value string) {
		if value != "" {
			p.hang("  "+label+strings.Repeat(" ", 12-len(label)), strings.Repeat(" ", 14), value)
		}
	}
	line("data from", x.Origin+optional(" (volume ", s.OriginVolume, ")"))
	line("by volume", s.Volume+optional(", looked after by ", s.ServedBy, ""))
	line("since", moment(s.Since))
	line("access", x.Access)
	line("granted by", s.GrantedBy)
	line("until", moment(s.Until))
	line("revoked", moment(s.RevokedAt))
	for i, end := range s.Ends {
		label := "ends when"
		if i > 0 {
			label = "or when"
		}
		line(label, end)
	}
	line("then", s.Then)
}

func optional(before, text, after string) string {
	if text == "" {
		return ""
	}
	return before + text + after
}

func moment(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func (p *prose) step(t terminal, number int, step mirror.Step) {
	mark := marks[step.Outcome]
	label := fmt.Sprintf("%s %d ", mark.text, number)
	start := p.text.Len()
	p.hang(label, "    ", step.Title)
	if t.colour {
		line := p.text.String()
		p.text.Reset()
		p.text.WriteString(line[:start] + strings.Replace(line[start:], mark.text, t.paint(mark.colour, mark.text), 1))
	}
	if step.Outcome == mirror.Stopped {
		p.add("      ", string(step.Reason)+": "+step.Message)
	}
	for _, saw := range step.Saw {
		p.add("      ", saw)
	}
}

// add appends a paragraph, each of whose lines is indented.
func (p *prose) add(indent, text string) { p.hang(indent, indent, text) }

// hang appends a paragraph whose first line starts with one text and all others
// with another.
func (p *prose) hang(first, others, text string) {
	line, empty := first, true
	for _, word := range strings.Fields(printable(text)) {
		long := utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > p.width
		switch {
		case empty:
			line += word
		case p.width > 0 && long:
			p.text.WriteString(line + "\n")
			line = others + word
		default:
			line += " " + word
		}
		empty = false
	}
	p.text.WriteString(strings.TrimRight(line, " ") + "\n")
}
