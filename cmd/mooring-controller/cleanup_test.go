package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mooring-k8s/mooring/internal/controller/cleanup"
)

// What cannot be used is told before anything is done. The cluster is named by
// no kubeconfig, so that flags which are fit end with another error.
func TestCleanupUsage(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string // "": fit
	}{
		{"the defaults", nil, ""},
		{"without leader election, stopped", []string{"--leader-elect=false", "--stopped"}, ""},
		{"json", []string{"-o", "json", "--timeout=1s", "--all-instances"}, ""},
		{"without leader election", []string{"--leader-elect=false"}, "scale its Deployment to zero, and say so with --stopped"},
		{"stopped, but with a lease", []string{"--stopped"}, "--stopped is for an installation with --leader-elect=false"},
		{"a lease without namespace", []string{"--leader-election-namespace="}, "POD_NAMESPACE"},
		{"a broken provisioner name", []string{"--provisioner-name=A"}, "--provisioner-name"},
		{"a broken instance", []string{"--instance=A"}, "--instance"},
		{"an unknown output", []string{"--output=yaml"}, `--output "yaml": expected text or json`},
		{"no time", []string{"--timeout=0"}, "--timeout 0s"},
		{"an argument", []string{"now"}, "now"},
		{"a flag of the controller's alone", []string{"--workers=1"}, "unknown flag: --workers"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("POD_NAMESPACE", "mooring-system")
			command := newCommand()
			command.SetArgs(append([]string{"cleanup", "--kubeconfig=/nowhere"}, tc.args...))
			command.SetOut(io.Discard)
			err := command.Execute()
			if isUsage := errors.As(err, new(usageError)); err == nil || isUsage != (tc.want != "") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want a usage error with %q", err, tc.want)
			}
		})
	}
}

func TestCleanupInWords(t *testing.T) {
	report := &cleanup.Report{
		Provisioner: "mirror.example.com", Finalizer: "mirror.example.com/mirrored", Removed: 3, Deleting: 1,
		Mirrors: cleanup.Mirrors{Count: 7, Origins: 2, NotRetain: strings.Fields("a b c d e f g h i j k l")},
		Lease:   "mooring-system/mooring.mirror.example.com", HeldUntil: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC),
	}
	text := inWords(report)
	for _, want := range []string{
		"no claim has the finalizer mirror.example.com/mirrored any more. It was removed from 3.", "1 of them are being deleted",
		"7 mirror volumes of 2 origin claims", "WARNING: 12 of them are not Retain", "Retain: a, b, c, d, e, f, g, h, i, j and 2 more\n",
		"held until 2026-08-01T12:00:00Z", "kubectl --namespace mooring-system delete lease mooring.mirror.example.com\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	text = inWords(&cleanup.Report{Mirrors: cleanup.Mirrors{Count: 7, Origins: 2}})
	if strings.Contains(text, "lease") || strings.Contains(text, "WARNING") || !strings.Contains(text, "All are Retain") {
		t.Errorf("without a lease, all Retain:\n%s", text)
	}
}
