package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/mooring-k8s/mooring/test/controlplane/internal/layout"
)

const upstream = `module k8s.io/kubernetes

go 1.24.0

require (
	go.etcd.io/etcd/api/v3 v3.6.4
	go.etcd.io/etcd/client/v3 v3.6.4
	k8s.io/api v0.0.0
	k8s.io/klog/v2 v2.130.1
	k8s.io/kubelet v0.0.0
)
`

func TestModuleOfAnotherRelease(t *testing.T) {
	parsed, err := modfile.Parse("go.mod", []byte(upstream), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := binariesGoMod(parsed, "v1.34.4")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"go 1.24.0",
		"k8s.io/kubernetes v1.34.4",
		"go.etcd.io/etcd/server/v3 v3.6.4",
		"k8s.io/api => k8s.io/api v0.34.4",
		"k8s.io/kubelet => k8s.io/kubelet v0.34.4",
	} {
		if !strings.Contains(string(got), line) {
			t.Errorf("%q is missing in:\n%s", line, got)
		}
	}
	if strings.Contains(string(got), "klog") {
		t.Errorf("klog is not a staging module:\n%s", got)
	}
}

func TestModuleNeedsEtcdsVersion(t *testing.T) {
	parsed, err := modfile.Parse("go.mod", []byte("module k8s.io/kubernetes\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := binariesGoMod(parsed, "v1.34.4"); err == nil || !strings.Contains(err.Error(), "etcd") {
		t.Errorf("got %v", err)
	}
}

func TestReleasesAndCommands(t *testing.T) {
	for _, c := range []struct {
		version, with string
		ok            bool
	}{
		{"v1.37.2", "", true},
		{"v1.38.0-rc.1", "", true},
		{"v1.37.2", "kubelet, kube-scheduler", true},
		{"1.37.2", "", false},
		{"v1.37", "", false},
		{"latest", "", false},
		{"../v1.37.2", "", false},
		{"v1.37.2", "../cmd", false},
	} {
		target, err := newTarget(c.version, c.with)
		if (err == nil) != c.ok {
			t.Errorf("newTarget(%q, %q) gives %v", c.version, c.with, err)
		}
		if err == nil && c.with != "" && target.wanted["kube-scheduler"] != "k8s.io/kubernetes/cmd/kube-scheduler" {
			t.Errorf("wanted: %v", target.wanted)
		}
	}
}

func TestProgressCountsPackagesAndKeepsErrors(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, 10)
	for _, chunk := range []string{
		"k8s.io/api/core/v1\nk8s.io/a", "pi/apps/v1\n", "go: downloading k8s.io/api v0.37.2\n",
		"# k8s.io/broken\n", "broken.go:3:5: undefined: x", "\n",
	} {
		if _, err := p.Write([]byte(chunk)); err != nil {
			t.Fatal(err)
		}
	}
	p.print()
	if !strings.Contains(out.String(), "compiled 2 of at most 10 packages") {
		t.Errorf("printed %q", out.String())
	}
	if got, want := p.tail(), "# k8s.io/broken\nbroken.go:3:5: undefined: x"; got != want {
		t.Errorf("tail %q, want %q", got, want)
	}
}

func TestFailedBuildSaysWhatTheCompilerSaid(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":  "module broken\n",
		"main.go": "package main\n\nfunc main() { nonsense() }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := goCommand(t.Context(), dir, "build", ".")
	if err == nil || !strings.HasPrefix(err.Error(), "go build . failed") || !strings.Contains(err.Error(), "undefined: nonsense") {
		t.Errorf("got %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := goCommand(ended, dir, "build", "."); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("got %v", err)
	}
}

func TestOnlyWhatTheStampSaysCounts(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "etcd"), []byte("whole"), 0o600); err != nil {
		t.Fatal(err)
	}
	stamp, err := layout.ReadStamp(dir)
	if err != nil {
		t.Fatal(err)
	}
	if stamp.Has(dir, "etcd") {
		t.Error("a binary without a stamp counts")
	}
	stamp.Binaries["etcd"] = 5
	if err := stamp.Write(dir); err != nil {
		t.Fatal(err)
	}
	if stamp, err = layout.ReadStamp(dir); err != nil || !stamp.Has(dir, "etcd") {
		t.Errorf("a finished binary does not count (%v)", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "etcd"), []byte("ha"), 0o600); err != nil {
		t.Fatal(err)
	}
	if stamp.Has(dir, "etcd") {
		t.Error("half a binary counts")
	}
}

func TestSecondBuildWaitsForTheFirst(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lock(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lock(ended, dir); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("the second got the lock (%v)", err)
	}
	unlock()
	unlock, err = lock(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}
