// Command gendocs writes the documentation pages that come from the code.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mooring-k8s/mooring/internal/cli"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1:
		return write(args[0], cli.ExitCodesPage())
	case len(args) == 2 && args[0] == "commands":
		return writeCommands(args[1])
	}
	return errors.New("usage: gendocs FILE, or gendocs commands DIR")
}

// writeCommands writes a page for each command, and removes those of commands
// that are no more.
func writeCommands(dir string) error {
	// Defaults that depend on who runs this must not stand in the pages.
	for variable, value := range map[string]string{"HOME": "$HOME", "MOORING_PROVISIONER_NAME": ""} {
		if err := os.Setenv(variable, value); err != nil {
			return err
		}
	}
	pages := cli.CommandPages()
	old, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if _, stays := pages[filepath.Base(file)]; !stays {
			if err := os.Remove(file); err != nil { //nolint:gosec // in the directory that was named
				return err
			}
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // documentation is for everybody
		return err
	}
	for name, page := range pages {
		if err := write(filepath.Join(dir, name), page); err != nil {
			return err
		}
	}
	return nil
}

func write(file, page string) error {
	return os.WriteFile(file, []byte(page), 0o644) //nolint:gosec // a documentation page is for everybody
}
