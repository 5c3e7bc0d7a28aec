package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommandsCanBeCopiedIntoAShell(t *testing.T) {
	for arg, want := range map[string]string{
		"get":            "get",
		"a=b,c=d":        "a=b,c=d",
		"":               "''",
		"two words":      "'two words'",
		"it's":           `'it'\''s'`,
		`a\.b`:           `'a\.b'`,
		"$HOME":          "'$HOME'",
		"in (a, b)":      "'in (a, b)'",
		"{.spec}":        "'{.spec}'",
		"ns/name:tag@99": "ns/name:tag@99",
	} {
		if got := shellWord(arg); got != want {
			t.Errorf("%q is typed as %s; want %s", arg, got, want)
		}
	}
}

func TestLinesAreNotTooLong(t *testing.T) {
	text := strings.Repeat("wörter und ", 40) + strings.Repeat("x", width+20)
	wrapped := wrap(text, width)
	lines := strings.Split(wrapped, "\n")
	for _, line := range lines[:len(lines)-1] {
		if length := len([]rune(line)); length > width {
			t.Errorf("a line of %d characters: %s", length, line)
		}
	}
	if strings.Join(strings.Fields(wrapped), " ") != strings.Join(strings.Fields(text), " ") {
		t.Errorf("words were lost: %s", wrapped)
	}
}

// A file is no terminal: no colours, and a failure shows the object.
func TestOutputOfAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	tell := newNarrator(file)
	tell.heading("one")
	tell.typed("kubectl", "get", "pvc")
	tell.typedInto("the token", "kubectl", "create", "token")
	tell.seen("done")
	tell.failure(fmt.Errorf("scene 1: %w", &surprise{told: "it is Bound", object: "phase: Pending\n"}))
	tell.failure(errors.New("no object"))
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "\x1b") {
		t.Errorf("there are colours in a file: %q", out)
	}
	for _, want := range []string{"$ kubectl get pvc\n", "$ kubectl create token > 'the token'\n", "✓ done\n", "not as told: scene 1: it is Bound\n  phase: Pending\n", "not as told: no object\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
}
