// Command gendocs writes the documentation pages that come from the code.
package main

import (
	"fmt"
	"os"

	"github.com/mooring-k8s/mooring/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gendocs FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(cli.ExitCodesPage()), 0o644); err != nil { //nolint:gosec // a documentation page is for everybody
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
