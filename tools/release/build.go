package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// build links one command for one platform and returns where it is.
func (r release) build(ctx context.Context, work, command string, p platform) (string, error) {
	path := filepath.Join(work, p.os+"_"+p.arch, command)
	stamp := "-s -w -X main.version=v" + r.version + " -X main.commitDate=" + r.date.Format(time.RFC3339)
	//nolint:gosec // the Go command, with names of this program's own
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags", stamp, "-o", path, "./cmd/"+command)
	build.Dir, build.Env = r.root, environment(os.Environ(), p)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("build %s: %w", command, err)
	}
	return path, nil
}

// environment drops what somebody's settings could change in a binary. GOFLAGS is
// set, since an unset one would be read from the file that `go env -w` writes.
func environment(from []string, p platform) []string {
	kept := slices.DeleteFunc(slices.Clone(from), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return strings.HasPrefix(name, "CGO_") ||
			slices.Contains([]string{"GOFLAGS", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOFIPS140", "GODEBUG", "GOWORK"}, name)
	})
	return append(kept, "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0")
}

// archive makes a platform's archive, and beside it what is linked into each
// command.
func (r release) archive(ctx context.Context, work string, p platform, completions []entry) error {
	name := fmt.Sprintf("mooring_%s_%s_%s", r.version, p.os, p.arch)
	entries := []entry{{name: name + "/kubectl-mooring", link: "mooring"}}
	for _, e := range completions {
		e.name = name + "/" + e.name
		entries = append(entries, e)
	}
	for _, page := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		content, err := os.ReadFile(filepath.Join(r.root, page))
		if err != nil {
			return err
		}
		entries = append(entries, entry{name: name + "/" + page, content: content})
	}
	for _, command := range commands {
		path, err := r.build(ctx, work, command, p)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // what was built above
		if err != nil {
			return err
		}
		entries = append(entries, entry{name: name + "/" + command, content: content, program: true})
		parts, err := r.parts(ctx, path)
		if err != nil {
			return err
		}
		if err := r.publish(fmt.Sprintf("%s.%s.cdx.json", name, command), parts); err != nil {
			return err
		}
	}
	packed, err := pack(entries, r.date)
	if err != nil {
		return err
	}
	return r.publish(name+".tar.gz", packed)
}

// parts returns the CycloneDX list of the modules in a binary, without time and
// serial number.
func (r release) parts(ctx context.Context, path string) ([]byte, error) {
	//nolint:gosec // the program that the Makefile built
	list := exec.CommandContext(ctx, r.sbom, "bin", "-json", "-std", "-noserial", "-notimestamp", "-version", "v"+r.version, path)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the parts of %s: %w", filepath.Base(path), err)
	}
	return out, nil
}

// completions returns what shells need to complete the command, by the command
// itself as it runs on this machine.
func (r release) completions(ctx context.Context, work string) ([]entry, error) {
	path, err := r.build(ctx, work, "mooring", platform{runtime.GOOS, runtime.GOARCH})
	if err != nil {
		return nil, err
	}
	// kubectl completes a plugin by a program of this name.
	entries := []entry{{name: "kubectl_complete-mooring", content: []byte("#!/bin/sh\nexec kubectl-mooring __complete \"$@\"\n"), program: true}}
	for shell, name := range map[string]string{"bash": "mooring.bash", "zsh": "_mooring", "fish": "mooring.fish"} {
		out, err := exec.CommandContext(ctx, path, "completion", shell).Output() //nolint:gosec // the program that was built above
		if err != nil {
			return nil, fmt.Errorf("completion %s: %w", shell, err)
		}
		entries = append(entries, entry{name: "completions/" + name, content: out})
	}
	return entries, nil
}

var chartVersion = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// chart packs the chart as `helm package` lays it out, with this version.
func (r release) chart() error {
	const dir = "charts/mooring"
	var entries []entry
	root := os.DirFS(filepath.Join(r.root, dir))
	err := fs.WalkDir(root, ".", func(path string, found fs.DirEntry, err error) error {
		if path == "tests" { // as .helmignore says
			return fs.SkipDir
		}
		if err != nil || found.IsDir() {
			return err
		}
		if !found.Type().IsRegular() {
			return fmt.Errorf("%s/%s is not a regular file", dir, path)
		}
		content, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		if path == "Chart.yaml" {
			if content, err = stamped(content, r.version); err != nil {
				return err
			}
		}
		entries = append(entries, entry{name: "mooring/" + path, content: content})
		return nil
	})
	if err != nil {
		return err
	}
	packed, err := pack(entries, r.date)
	if err != nil {
		return err
	}
	return r.publish("mooring-"+r.version+".tgz", packed)
}

// stamped returns Chart.yaml with the release's version.
func stamped(content []byte, version string) ([]byte, error) {
	if len(chartVersion.FindAll(content, -1)) != 2 {
		return nil, errors.New("the chart's Chart.yaml: expected one line `version:` and one `appVersion:`")
	}
	return chartVersion.ReplaceAll(content, []byte("$1: "+version)), nil
}
