package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version returns the version that was linked in, or else that of the build.
func (e Env) version() string {
	if e.Version != "" {
		return e.Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}

func newVersion(e Env) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  mooring version",
		Args:    cobra.NoArgs,
		Run:     func(*cobra.Command, []string) { fmt.Fprintln(e.Out, e.version()) },
	}
}
