// Command values writes what a chart's values.yaml says once more: as
// values.schema.json, by which Helm refuses what is not meant, and as README.md.
// values CHART-DIRECTORY. How a value is described is said in values.yaml.
package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The page around the table of values.
//
//go:embed README.in.md
var page string

const (
	tableMark   = "<!-- values -->"
	outputIsFor = 0o644 // everybody: these files are part of the repository
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "values:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("expected one argument, the chart's directory")
	}
	source, err := os.ReadFile(filepath.Join(args[0], "values.yaml")) //nolint:gosec // the path is the user's own argument
	if err != nil {
		return err
	}
	values, err := read(string(source))
	if err != nil {
		return err
	}
	schema, err := schemaOf(values)
	if err != nil {
		return err
	}
	if err := write(args[0], "values.schema.json", schema); err != nil {
		return err
	}
	return write(args[0], "README.md", strings.Replace(page, tableMark, tableOf(values), 1))
}

func write(dir, name, text string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(text), outputIsFor) //nolint:gosec // read by everybody, as every file of the repository
}
