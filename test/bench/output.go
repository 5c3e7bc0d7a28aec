package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/mooring-k8s/mooring/test/bench/report"
)

// output is where results go: docs/ in the modes that give figures, .cache/ in
// the one that only sees whether it runs.
type output struct{ root, page, dir string }

func newOutput(mode string) (output, error) {
	root, err := repositoryRoot()
	if err != nil {
		return output{}, err
	}
	docs := filepath.Join(root, "docs")
	if mode == "small" {
		docs = filepath.Join(root, ".cache", "bench")
	}
	dir := filepath.Join(docs, "benchmarks")
	return output{root, filepath.Join(docs, "benchmarks.md"), dir}, os.MkdirAll(dir, 0o755)
}

func repositoryRoot() (string, error) {
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := at; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "charts", "mooring", "Chart.yaml")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("found no charts/mooring in %s or above it", at)
		}
	}
}

func (o output) results() string { return filepath.Join(o.dir, "results.json") }

// read returns the last results of a mode; none are no results.
func (o output) read(mode string) (*report.Run, error) {
	run := &report.Run{Mode: mode}
	text, err := os.ReadFile(o.results())
	if errors.Is(err, fs.ErrNotExist) {
		return run, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, run); err != nil {
		return nil, fmt.Errorf("read %s: %w", o.results(), err)
	}
	if run.Mode == "default" && mode == "full" {
		run.Mode = mode // which begins with the same
	}
	if run.Mode != mode {
		return nil, fmt.Errorf("%s is of -mode %s, not %s: run without -resume and -run first", o.results(), run.Mode, mode)
	}
	return run, nil
}

// save keeps what was measured so far.
func (o output) save(run *report.Run) error {
	text, err := json.MarshalIndent(run, "", "  ")
	if err != nil {
		return err
	}
	return o.put(o.results(), append(text, '\n'))
}

// write makes everything of the results.
func (o output) write(run *report.Run) error {
	if err := o.save(run); err != nil {
		return err
	}
	plots, err := run.Plots()
	if err != nil {
		return err
	}
	for _, plot := range plots {
		if err := o.put(filepath.Join(o.dir, plot.File), plot.SVG); err != nil {
			return err
		}
	}
	if err := o.put(o.page, []byte(run.Page(plots))); err != nil {
		return err
	}
	for _, target := range run.Targets() {
		tell("%-12s %s: %s (target %s)", target.State, target.Figure, target.Measured, target.Goal)
	}
	tell("written: %s and %s", o.page, o.dir)
	return nil
}

func (output) put(path string, text []byte) error {
	return os.WriteFile(path, text, 0o644)
}

// tell shows progress.
func tell(format string, args ...any) {
	fmt.Printf("bench: %s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

func today() string { return time.Now().UTC().Format(time.DateOnly) }

func machine(ctx context.Context, root string) report.Machine {
	m := report.Machine{
		CPU: lineOf("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Go: runtime.Version(), Mooring: "unknown",
	}
	memory, _, _ := strings.Cut(lineOf("/proc/meminfo", "MemTotal"), " ")
	if kib, err := strconv.Atoi(memory); err == nil {
		m.MemoryMiB = kib / 1024
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += ", Linux " + strings.TrimSpace(string(release))
	}
	describe := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty")
	describe.Dir = root
	if version, err := describe.Output(); err == nil {
		m.Mooring = strings.TrimSpace(string(version))
	}
	return m
}

// lineOf returns what a file of /proc says behind a key and a colon, or "".
func lineOf(path, key string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, value, found := strings.Cut(lines.Text(), ":")
		if found && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
