// Package layout says where the control plane's binaries live. The build
// program writes there and package controlplane reads there; it imports the
// standard library only, so that the build program itself is compiled in a
// second.
package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// DefaultVersion is the Kubernetes release that is built and started unless
// K8S_VERSION names another.
const DefaultVersion = "v1.37.2"

// VersionEnv is the environment variable that names the Kubernetes release.
const VersionEnv = "K8S_VERSION"

// The binaries that every control plane needs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
)

const stampName = "stamp.json"

// Version is the release that the environment asks for.
func Version() string {
	if v := os.Getenv(VersionEnv); v != "" {
		return v
	}
	return DefaultVersion
}

// Root is the repository's directory, found by walking up from dir.
func Root(dir string) (string, error) {
	for at := dir; ; at = filepath.Dir(at) {
		if info, err := os.Stat(filepath.Join(at, "test", "controlplane")); err == nil && info.IsDir() {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("neither %s nor a directory above it holds test/controlplane", dir)
		}
	}
}

// Dir is where the binaries of a release are.
func Dir(root, version string) string {
	return filepath.Join(root, ".cache", "controlplane", version)
}

// Stamp records how the binaries of a directory were made. A binary counts as
// built only if the stamp says so, and the stamp is written after it.
type Stamp struct {
	// Inputs is everything that could make a new build differ: the release,
	// Go's version and platform, the module files, the flags.
	Inputs string `json:"inputs"`
	// Binaries has the size of each finished binary by its name.
	Binaries map[string]int64 `json:"binaries"`
}

// ReadStamp reads the stamp of dir. No stamp is an empty stamp; one that does
// not parse is an empty stamp too, since building again mends it.
func ReadStamp(dir string) (Stamp, error) {
	var s Stamp
	data, err := os.ReadFile(filepath.Join(dir, stampName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Stamp{}, fmt.Errorf("read the stamp of the last build: %w", err)
	}
	if json.Unmarshal(data, &s) != nil {
		s = Stamp{}
	}
	if s.Binaries == nil {
		s.Binaries = map[string]int64{}
	}
	return s, nil
}

// Write replaces the stamp of dir in one step.
func (s Stamp) Write(dir string) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the stamp: %w", err)
	}
	tmp := filepath.Join(dir, stampName+".new")
	if err := os.WriteFile(tmp, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the stamp: %w", err)
	}
	if err := os.Rename(tmp, filepath.Join(dir, stampName)); err != nil {
		return fmt.Errorf("put the stamp in place: %w", err)
	}
	return nil
}

// Has says whether the binary is in dir as the stamp recorded it.
func (s Stamp) Has(dir, binary string) bool {
	size, ok := s.Binaries[binary]
	if !ok {
		return false
	}
	info, err := os.Stat(filepath.Join(dir, binary))
	return err == nil && info.Mode().IsRegular() && info.Size() == size
}
