package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// width is the longest line of what the narrator says in its own words.
const width = 96

// Colours, only for a person who looks at a terminal and has not said
// otherwise (no-color.org).
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	cyan  = "36"
)

// narrator prints what is told and shown.
type narrator struct {
	out     io.Writer
	colours bool
}

func newNarrator(out *os.File) *narrator {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	return &narrator{out: out, colours: terminal && os.Getenv("NO_COLOR") == ""}
}

func (n *narrator) in(colour, text string) string {
	if !n.colours {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (n *narrator) title(text string) { fmt.Fprintf(n.out, "%s\n\n", n.in(bold, text)) }

func (n *narrator) heading(format string, args ...any) {
	text := fmt.Sprintf("── %s ", fmt.Sprintf(format, args...))
	text += strings.Repeat("─", max(0, width-len([]rune(text))))
	fmt.Fprintf(n.out, "\n%s\n", n.in(bold, text))
}

// say tells something in the narrator's own words.
func (n *narrator) say(format string, args ...any) {
	fmt.Fprintln(n.out, wrap(fmt.Sprintf(format, args...), width))
}

// typed shows what a user would type.
func (n *narrator) typed(args ...string) { n.typedInto("", args...) }

// typedInto shows a command whose output goes to a file, if one is named.
func (n *narrator) typedInto(file string, args ...string) {
	line := "$"
	for _, arg := range args {
		line += " " + shellWord(arg)
	}
	if file != "" {
		line += " > " + shellWord(file)
	}
	fmt.Fprintln(n.out, n.in(cyan, line))
}

// shown is real output, indented.
func (n *narrator) shown(output string) {
	for line := range strings.Lines(strings.TrimRight(output, "\n")) {
		fmt.Fprintln(n.out, strings.TrimRight("  "+line, " \n"))
	}
}

// seen is something that was told and has been checked.
func (n *narrator) seen(format string, args ...any) {
	fmt.Fprintf(n.out, "%s %s\n", n.in(green, "✓"), fmt.Sprintf(format, args...))
}

func (n *narrator) done(format string, args ...any) {
	fmt.Fprintf(n.out, "\n%s\n", n.in(green, fmt.Sprintf(format, args...)))
}

// failure says what is not as told, with the objects that show it.
func (n *narrator) failure(err error) {
	fmt.Fprintf(n.out, "\n%s %v\n", n.in(red, "✗ not as told:"), err)
	var surprise *surprise
	if errors.As(err, &surprise) {
		n.shown(surprise.object)
	}
}

// wrap breaks a text into lines of at most so many characters.
func wrap(text string, most int) string {
	var out strings.Builder
	length := 0
	for _, word := range strings.Fields(text) {
		runes := len([]rune(word))
		switch {
		case length == 0:
		case length+1+runes > most:
			out.WriteByte('\n')
			length = 0
		default:
			out.WriteByte(' ')
			length++
		}
		out.WriteString(word)
		length += runes
	}
	return out.String()
}

// shellWord quotes an argument where a shell would need it.
func shellWord(arg string) string {
	if arg != "" && !strings.ContainsAny(arg, " \t\n'\"\\$&|;<>()*?[]{}~#!`") {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
