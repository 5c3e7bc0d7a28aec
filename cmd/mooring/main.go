// Command mooring is the people's command: it shares volumes with other
// namespaces and keeps them safe.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mooring-k8s/mooring/internal/cli"
)

// version and commitDate are set by the Makefile when the program is linked.
var version, commitDate string

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal lets a run end its record, the second ends it: a file that
	// never answers, such as a FIFO, must not keep the program alive.
	defer context.AfterFunc(ctx, stop)()
	plugin := strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-")
	return cli.Run(ctx, os.Args[1:], cli.Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Plugin: plugin, Version: version, CommitDate: commitDate,
	})
}
