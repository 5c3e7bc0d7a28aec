package cli

import (
	"fmt"
	"runtime"
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

// buildInfo is what this program was made of.
type buildInfo struct {
	Version string `json:"version"`
	// CommitDate is when its last commit was made; empty for a build that was not
	// made by this repository's Makefile.
	CommitDate string `json:"commitDate,omitempty"`
	GoVersion  string `json:"goVersion"`
	Platform   string `json:"platform"`
}

func newVersion(e Env) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, when its commit was made, Go's version and the platform",
		Example: `  mooring version
  mooring version -o json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			info := buildInfo{e.version(), e.CommitDate, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			if output != "" {
				return encode(e.Out, output, info)
			}
			date := info.CommitDate
			if date == "" {
				date = "unknown"
			}
			fmt.Fprintf(e.Out, "version:     %s\ncommit date: %s\nGo:          %s\nplatform:    %s\n", info.Version, date, info.GoVersion, info.Platform)
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml, as docs/version.schema.json says; text for people without it")
	completeTo(cmd, "output", "json", "yaml")
	return cmd
}
