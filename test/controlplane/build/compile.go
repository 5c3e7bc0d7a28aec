package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/mooring-k8s/mooring/test/controlplane/internal/layout"
)

// buildFormat is part of the inputs: raise it when the flags below change.
const buildFormat = "1: CGO_ENABLED=0 -s -w version-stamp"

// build compiles the missing binaries beside their place and moves each there
// whole; the stamp, written last, is what makes them count.
func (t *target) build(ctx context.Context, moduleDir string, missing map[string]string, stamp layout.Stamp) error {
	names := make([]string, 0, len(missing))
	packages := make([]string, 0, len(missing))
	for name := range missing {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		packages = append(packages, missing[name])
	}
	fmt.Printf("building %s of Kubernetes %s from source; the first time this takes 5 to 15 minutes on two cores, later about one\n",
		strings.Join(names, ", "), t.version)

	work := filepath.Join(t.dir, "work")
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("clear what an interrupted build left: %w", err)
	}
	if err := os.MkdirAll(work, 0o755); err != nil {
		return fmt.Errorf("make a directory for the build: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()

	if err := t.compile(ctx, moduleDir, work, packages); err != nil {
		return err
	}
	if err := stamp.Write(t.dir); err != nil {
		return err
	}
	for _, name := range names {
		size, err := t.install(work, name)
		if err != nil {
			return err
		}
		stamp.Binaries[name] = size
	}
	return stamp.Write(t.dir)
}

// install moves one finished binary to its place and gives its size.
func (t *target) install(work, name string) (int64, error) {
	from := filepath.Join(work, name)
	if name == layout.Etcd {
		from = filepath.Join(work, "server") // the last element of its import path before the major version
	}
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("the build of %s ended well but left no binary", name)
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), os.Rename(from, filepath.Join(t.dir, name))
}

// compile runs go build and shows how far it is.
func (t *target) compile(ctx context.Context, moduleDir, work string, packages []string) error {
	flags, err := t.linkerFlags(ctx, moduleDir)
	if err != nil {
		return err
	}
	deps, err := goCommand(ctx, moduleDir, append([]string{"list", "-mod=readonly", "-deps"}, packages...)...)
	if err != nil {
		return err
	}
	args := append([]string{"build", "-mod=readonly", "-v", "-ldflags", flags, "-o", work + string(filepath.Separator)}, packages...)
	output := newProgress(os.Stdout, bytes.Count(deps, []byte("\n")))
	stop := output.tick(5 * time.Second)
	defer stop()
	cmd := goCmd(ctx, moduleDir, args...)
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Run(); err != nil {
		return explain(ctx, err, "go build of Kubernetes "+t.version, output.tail())
	}
	return nil
}

// linkerFlags strips the binaries and stamps the version. Without the stamp
// the server calls itself v0.0.0-master+$Format:%H$, which clients cannot
// parse. The module proxy does not tell the commit, so the checksum of the
// source stands in for it.
func (t *target) linkerFlags(ctx context.Context, moduleDir string) (string, error) {
	sum, built, err := kubernetesInfo(ctx, moduleDir)
	if err != nil {
		return "", err
	}
	const variables = "k8s.io/component-base/version."
	flags := []string{"-s", "-w"}
	for _, v := range [][2]string{
		{"gitVersion", t.version},
		{"gitMajor", "1"},
		{"gitMinor", t.minor},
		{"gitCommit", sum},
		{"gitTreeState", "archive"},
		{"buildDate", built},
	} {
		if v[1] != "" {
			flags = append(flags, "-X", variables+v[0]+"="+v[1])
		}
	}
	return strings.Join(flags, " "), nil
}

// goCommand runs the go command and gives what it printed.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := goCmd(ctx, dir, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, explain(ctx, err, "go "+strings.Join(args[:min(2, len(args))], " "), lastLines(stderr.String(), 20))
	}
	return stdout.Bytes(), nil
}

func goCmd(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(slices.Clone(os.Environ()), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-buildvcs=false")
	// An interrupt lets go build end its compilers; a kill would leave them.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// explain makes one sentence of a failed command, and the end of its output.
func explain(ctx context.Context, err error, what, tail string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s was interrupted; nothing half built counts, run it again to go on", what)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("the go command is not in PATH")
	}
	if tail == "" {
		return fmt.Errorf("%s failed: %w", what, err)
	}
	return fmt.Errorf("%s failed (%w); its output ends with:\n%s", what, err, tail)
}
