// Command mooring-controller is the PVC mirror provisioner.
package main

import (
	"errors"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
)

// Exit codes. A lost lease is a failure: the replica starts anew.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	command := newCommand()
	command.SetArgs(args)
	err := command.ExecuteContext(ctrl.SetupSignalHandler())
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(os.Stderr, "mooring-controller:", err)
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitFailure
}
