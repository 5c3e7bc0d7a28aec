// Package cli is the people's command: one file per subcommand, each of which
// reads flags and files, calls one room, and prints what it said.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mooring-k8s/mooring/internal/retain"
)

// Env is what a command has of the program around it.
type Env struct {
	Out, Err io.Writer
	// In is where a person answers; nil where nobody can.
	In io.Reader
	// Plugin says that kubectl called the program, as `kubectl mooring`.
	Plugin bool
	// Version of the program; empty for that of the build.
	Version string
	// CommitDate is when the last commit of the program was made, in RFC 3339;
	// empty where that is not known.
	CommitDate string
}

// Run carries out one command line and returns the exit code
// (docs/exit-codes.md). What went wrong is told on e.Err, with what to do next.
func Run(ctx context.Context, args []string, e Env) int {
	if inWorkflow(os.LookupEnv) {
		e.Out, e.Err = &commandless{Writer: e.Out}, &commandless{Writer: e.Err}
	}
	out := &firstError{Writer: e.Out}
	e.Out = out
	root := NewRoot(e) //nolint:contextcheck // the commands get ctx from ExecuteContext
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if out.err != nil && (err == nil || errors.Is(err, out.err)) {
		err = &retain.Error{Reason: retain.Unexpected, Message: "what was found could not be printed: " + out.err.Error(), Cause: out.err}
	}
	if err == nil {
		return 0
	}
	var answered *end
	if errors.As(err, &answered) {
		if answered.message != "" {
			fmt.Fprintf(e.Err, "%s: %s\nnext: %s\n", answered.reason, printable(answered.message), answered.next)
		}
		return answered.code
	}
	err = asReason(err)
	info := retain.InfoOf(retain.ReasonOf(err))
	message := strings.TrimPrefix(err.Error(), string(info.Reason)+": ")
	next := info.Next
	if info.Reason == retain.Usage {
		next = "Read " + cmd.CommandPath() + " --help."
	}
	fmt.Fprintf(e.Err, "%s: %s\nnext: %s\n", info.Reason, printable(message), next)
	return info.ExitCode
}

// firstError remembers the first error of a writer: a command whose output is
// cut off has not done what it was asked.
type firstError struct {
	io.Writer
	err error
}

func (w *firstError) Write(data []byte) (int, error) {
	n, err := w.Writer.Write(data)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// printable drops what could move a terminal's cursor or the order of what is
// read: messages quote files and servers.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// NewRoot returns the command with all its subcommands.
func NewRoot(e Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "mooring",
		Short: "Share volumes with other namespaces, and keep them safe",
		Long: "Mooring lets the owner of a Kubernetes volume share it with other namespaces and keep it safe,\n" +
			"and never destroys a byte while doing either.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError("%v", err) })
	root.SetOut(e.Out)
	root.SetErr(e.Err)
	if e.Plugin {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl mooring"}
	}
	root.AddCommand(newDrivers(e), newRetain(e), newCI(e), newVersion(e))
	root.AddCommand(newShare(e), newUnshare(e), newMirror(e))
	root.AddCommand(newList(e), newMap(e))
	root.AddCommand(newExplain(e), newAccess(e))
	root.AddCommand(newDoctor(e))
	return root
}

// usageError is a wrong command line.
func usageError(format string, args ...any) error {
	return &retain.Error{Reason: retain.Usage, Message: fmt.Sprintf(format, args...)}
}

// asReason gives cobra's own errors, which are all about the command line, the
// reason usage. Errors of a run carry a reason or wrap a cause: what a cluster or
// the way to it said.
func asReason(err error) error {
	var known *retain.Error
	var said apierrors.APIStatus
	var unreachable net.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &said), errors.As(err, &unreachable):
		return &retain.Error{Reason: retain.ReadFailed, Message: err.Error(), Cause: err}
	case errors.Unwrap(err) != nil:
		return err
	}
	return &retain.Error{Reason: retain.Usage, Message: err.Error()}
}
