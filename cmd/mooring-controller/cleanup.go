package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-k8s/mooring/internal/controller/cleanup"
)

// cleanupFlags are those of the cleanup. What says which installation it is
// about, it shares with the controller: give it the controller's values.
type cleanupFlags struct {
	flags
	stopped      bool
	allInstances bool
	timeout      time.Duration
	output       string
}

func newCleanupCommand() *cobra.Command {
	var f cleanupFlags
	command := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove Mooring's finalizers before it is uninstalled",
		Long: "cleanup takes the leader lease of an installation, by force and for an hour, so that no replica works\n" +
			"any more; removes Mooring's finalizer from every claim, and nothing else; and says what stays. The\n" +
			"Helm chart runs it when it is uninstalled. It can be repeated. To start Mooring again after it, delete\n" +
			"the lease.\n\n" +
			"Exit codes: 0, no claim has the finalizer any more; 1, something failed or was refused, and it may be\n" +
			"repeated; 2, the command line is wrong, and nothing was done.",
		Args: noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			chosen, err := f.check()
			if err != nil {
				return usageError{err}
			}
			return f.run(command, chosen)
		},
	}
	set := command.Flags()
	f.registerInstallation(set)
	set.BoolVar(&f.stopped, "stopped", false,
		"with --leader-elect=false: the controller's only Pod is stopped (scaled to zero), since no lease can stop it")
	set.BoolVar(&f.allInstances, "all-instances", false,
		"remove the finalizers although other instances serve mirrors; only where these are gone")
	set.DurationVar(&f.timeout, "timeout", 5*time.Minute, "how long it may take altogether")
	set.StringVarP(&f.output, "output", "o", "text", "text or json")
	return command
}

// check returns the parsed flags, or everything that is wrong with them.
func (f *cleanupFlags) check() (choices, error) {
	chosen, err := f.checkInstallation()
	problems := []error{err}
	if !f.leaderElect && !f.stopped {
		problems = append(problems, errors.New("--leader-elect=false: no lease keeps the controller's Pod from putting finalizers back: "+
			"scale its Deployment to zero, and say so with --stopped"))
	}
	if f.leaderElect && f.stopped {
		problems = append(problems, errors.New("--stopped is for an installation with --leader-elect=false: any other is stopped by its lease"))
	}
	if f.timeout <= 0 {
		problems = append(problems, fmt.Errorf("--timeout %v: expected more than nothing", f.timeout))
	}
	if !slices.Contains([]string{"text", "json"}, f.output) {
		problems = append(problems, fmt.Errorf("--output %q: expected text or json", f.output))
	}
	return chosen, errors.Join(problems...)
}

func (f *cleanupFlags) run(command *cobra.Command, chosen choices) error {
	ctx, cancel := context.WithTimeoutCause(command.Context(), f.timeout,
		fmt.Errorf("not done within --timeout %v: repeat it", f.timeout))
	defer cancel()
	config, err := restConfig(f.flags)
	if err != nil {
		return err
	}
	lease := types.NamespacedName{Namespace: f.leaseNamespace, Name: leaseName(f.instance, chosen.names.Provisioner())}
	api, err := cleanup.Connect(config, lease)
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	report, err := cleanup.Run(ctx, api, cleanup.Options{
		Names:        chosen.names,
		Instances:    []string{instanceName(f.leaseNamespace, f.instance), f.instance},
		AllInstances: f.allInstances,
		NoLease:      !f.leaderElect,
		Tell:         func(sentence string) { fmt.Fprintln(os.Stderr, sentence) },
	})
	if err != nil {
		return fmt.Errorf("the cleanup is not complete: %w", err)
	}
	return f.print(command.OutOrStdout(), report)
}

// print writes what was done and what stays, for people or for programs.
func (f *cleanupFlags) print(out io.Writer, report *cleanup.Report) error {
	if f.output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	_, err := io.WriteString(out, inWords(report))
	return err
}

func inWords(report *cleanup.Report) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Done: no claim has the finalizer %s any more. It was removed from %d.\n", report.Finalizer, report.Removed)
	if report.Deleting > 0 {
		fmt.Fprintf(&text, "%d of them are being deleted, and go as soon as no finalizer of others holds them.\n", report.Deleting)
	}
	fmt.Fprintf(&text, "\nWhat stays:\n- %d mirror volumes of %d origin claims. They go on working without Mooring.\n",
		report.Mirrors.Count, report.Mirrors.Origins)
	if unsafe := report.Mirrors.NotRetain; len(unsafe) > 0 {
		fmt.Fprintf(&text, "  WARNING: %d of them are not Retain, so that the origin's data may be deleted with a mirror claim. Set\n"+
			"  persistentVolumeReclaimPolicy to Retain: %s\n", len(unsafe), shortList(unsafe))
	} else {
		text.WriteString("  All are Retain: no data is deleted with a mirror claim.\n")
	}
	fmt.Fprintf(&text, "- An origin claim can be deleted from now on although mirrors of it exist.\n"+
		"- Annotations and conditions that start with %s, and the classes of that provisioner, are as they were.\n", report.Provisioner)
	if report.Lease != "" {
		namespace, name, _ := strings.Cut(report.Lease, "/")
		fmt.Fprintf(&text, "- The lease %s is held until %s, so that Pods which still run do nothing.\n"+
			"  To start Mooring again: kubectl --namespace %s delete lease %s\n",
			report.Lease, report.HeldUntil.UTC().Format(time.RFC3339), namespace, name)
	}
	return text.String()
}

// shortList names the first ten, and counts the rest.
func shortList(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
