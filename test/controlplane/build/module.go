package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/mooring-k8s/mooring/test/controlplane/internal/layout"
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	etcdModule       = "go.etcd.io/etcd/server/v3"
	etcdAPIModule    = "go.etcd.io/etcd/api/v3"
)

// module gives the directory of a Go module in which the binaries can be
// built: the committed one for the default release, a generated one for every
// other.
func (t *target) module(ctx context.Context) (string, error) {
	if t.version == layout.DefaultVersion {
		return filepath.Join(t.root, "test", "controlplane", "binaries"), nil
	}
	dir := filepath.Join(t.dir, "module")
	_, err := os.Stat(filepath.Join(dir, "go.sum"))
	if err == nil {
		return dir, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("look for the module of %s: %w", t.version, err)
	}
	if err := t.generateModule(ctx, dir); err != nil {
		return "", fmt.Errorf("make a module for %s: %w", t.version, err)
	}
	return dir, nil
}

// generateModule writes a module next to its final place and moves it there
// when it is complete.
func (t *target) generateModule(ctx context.Context, dir string) error {
	fmt.Printf("writing a Go module that builds Kubernetes %s\n", t.version)
	upstream, err := upstreamGoMod(ctx, t.version)
	if err != nil {
		return err
	}
	content, err := binariesGoMod(upstream, t.version)
	if err != nil {
		return err
	}
	work := dir + ".new"
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, "go.mod"), content, 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, "tools.go"), toolsFile(t.wanted), 0o644); err != nil {
		return err
	}
	if _, err := goCommand(ctx, work, "mod", "tidy"); err != nil {
		return err
	}
	return os.Rename(work, dir)
}

// upstreamGoMod is the go.mod of k8s.io/kubernetes at a version.
func upstreamGoMod(ctx context.Context, version string) (*modfile.File, error) {
	out, err := goCommand(ctx, os.TempDir(), "mod", "download", "-json", kubernetesModule+"@"+version)
	if err != nil {
		return nil, err
	}
	var info struct{ GoMod string }
	if err := json.Unmarshal(out, &info); err != nil {
		return nil, fmt.Errorf("read what go mod download printed: %w", err)
	}
	data, err := os.ReadFile(info.GoMod)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(info.GoMod, data, nil)
}

// binariesGoMod writes the go.mod that builds the release: Kubernetes itself,
// etcd's server at the version of etcd's client in it, and every staging
// module, which k8s.io/kubernetes requires at v0.0.0, at the version that was
// published with the release (v1.N.P publishes v0.N.P).
func binariesGoMod(upstream *modfile.File, version string) ([]byte, error) {
	file := new(modfile.File)
	if err := file.AddModuleStmt("github.com/mooring-k8s/mooring/test/controlplane/binaries"); err != nil {
		return nil, err
	}
	if upstream.Go != nil {
		if err := file.AddGoStmt(upstream.Go.Version); err != nil {
			return nil, err
		}
	}
	staging := "v0" + strings.TrimPrefix(version, "v1")
	etcd := ""
	for _, r := range upstream.Require {
		switch {
		case r.Mod.Path == etcdAPIModule:
			etcd = r.Mod.Version
		case strings.HasPrefix(r.Mod.Path, "k8s.io/") && r.Mod.Version == "v0.0.0":
			if err := file.AddReplace(r.Mod.Path, "", r.Mod.Path, staging); err != nil {
				return nil, err
			}
		}
	}
	if etcd == "" {
		return nil, fmt.Errorf("its go.mod does not require %s, so the version of etcd is unknown", etcdAPIModule)
	}
	file.AddNewRequire(kubernetesModule, version, false)
	file.AddNewRequire(etcdModule, etcd, false)
	file.Cleanup()
	return file.Format()
}

// toolsFile imports what is built, so that go.sum covers it. It names kubelet
// and kube-scheduler always: asking for them later must not need a new module.
func toolsFile(wanted map[string]string) []byte {
	pkgs := []string{kubernetesModule + "/cmd/kubelet", kubernetesModule + "/cmd/kube-scheduler"}
	for _, pkg := range wanted {
		pkgs = append(pkgs, pkg)
	}
	sort.Strings(pkgs)
	var b strings.Builder
	b.WriteString("//go:build tools\n\npackage binaries\n\nimport (\n")
	for i, pkg := range pkgs {
		if i == 0 || pkg != pkgs[i-1] {
			fmt.Fprintf(&b, "\t_ %q\n", pkg)
		}
	}
	b.WriteString(")\n")
	return []byte(b.String())
}

// inputs names everything that could make a new build differ from the last.
func (t *target) inputs(moduleDir string) (string, error) {
	hash := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(moduleDir, name))
		if err != nil {
			return "", fmt.Errorf("read the module of %s: %w", t.version, err)
		}
		fmt.Fprintf(hash, "%s %d\n", name, len(data))
		hash.Write(data)
	}
	return fmt.Sprintf("%s %s %s/%s module=%x format=%s", t.version, runtime.Version(),
		runtime.GOOS, runtime.GOARCH, hash.Sum(nil), buildFormat), nil
}

// kubernetesInfo reads the facts for the version stamp from the module that is
// built: its checksum and its time, which are the same for everyone.
func kubernetesInfo(ctx context.Context, moduleDir string) (sum, built string, err error) {
	out, err := goCommand(ctx, moduleDir, "list", "-mod=readonly", "-m", "-json", kubernetesModule)
	if err != nil {
		return "", "", err
	}
	var info struct {
		module.Version
		Sum, Time string
	}
	if err := json.Unmarshal(out, &info); err != nil {
		return "", "", fmt.Errorf("read what go list printed: %w", err)
	}
	return info.Sum, info.Time, nil
}
