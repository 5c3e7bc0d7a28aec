package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mooring-k8s/mooring/internal/retain"
	"github.com/mooring-k8s/mooring/internal/strictyaml"
)

// readFile reads a file of at most limit bytes.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer func() { _ = f.Close() }() // opened for reading
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil // what is too long is refused by whoever parses it
}

// manifests reads and checks the manifest files, and returns the policy's
// judgement as well.
type manifestFlags struct {
	policy  string
	overlap []string
}

func (m *manifestFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.policy, "policy", "", "a RetainPolicy `FILE` that narrows what a manifest may say")
	cmd.Flags().StringSliceVar(&m.overlap, "allow-overlap", nil, "accept that this volume, `pv/NAME`, reaches a directory above or below; recorded")
}

// overlaps returns the names of --allow-overlap.
func (m *manifestFlags) overlaps() ([]string, error) {
	names := make([]string, len(m.overlap))
	for i, value := range m.overlap {
		name, isVolume := strings.CutPrefix(value, "pv/")
		if !isVolume || name == "" {
			return nil, usageError("--allow-overlap: is %q; expected pv/NAME", value)
		}
		names[i] = name
	}
	return names, nil
}

// checkedFile is one manifest file after all checks that need no cluster.
type checkedFile struct {
	File     string              `json:"file"`
	OK       bool                `json:"ok"`
	Name     string              `json:"name,omitempty"`
	Digest   string              `json:"manifestDigest,omitempty"`
	Backends []string            `json:"backends,omitempty"`
	Problems strictyaml.Problems `json:"problems,omitempty"`

	manifest retain.Manifest
	reason   retain.Reason
}

func (m *manifestFlags) read(files []string) ([]checkedFile, error) {
	policy, err := m.readPolicy()
	if err != nil {
		return nil, err
	}
	checked := make([]checkedFile, 0, len(files))
	for _, file := range files {
		data, err := readFile(file, retain.MaxManifestBytes)
		if err != nil {
			checked = append(checked, checkedFile{File: file, reason: retain.ManifestInvalid, Problems: strictyaml.Problems{{Detail: err.Error()}}})
			continue
		}
		checked = append(checked, checkManifest(file, data, policy))
	}
	return checked, nil
}

func (m *manifestFlags) readPolicy() (*retain.Policy, error) {
	if m.policy == "" {
		return nil, nil //nolint:nilnil // no policy is no error
	}
	data, err := readFile(m.policy, retain.MaxManifestBytes)
	if err != nil {
		return nil, &retain.Error{Reason: retain.PolicyInvalid, Message: err.Error(), Cause: err}
	}
	policy, problems := retain.ParsePolicy(data)
	if len(problems) > 0 {
		return nil, &retain.Error{Reason: retain.PolicyInvalid, Message: prefixed(m.policy, problems), Cause: problems}
	}
	return &policy, nil
}

func checkManifest(file string, data []byte, policy *retain.Policy) checkedFile {
	c := checkedFile{File: file}
	manifest, problems := retain.ParseManifest(data)
	c.reason = retain.ManifestInvalid
	if len(problems) == 0 && policy != nil {
		problems, c.reason = policy.Check(manifest), retain.PolicyDenied
	}
	if len(problems) > 0 {
		c.Problems = problems
		return c
	}
	c.OK, c.manifest = true, manifest
	c.Name, c.Digest = manifest.Name(), manifest.Digest
	for _, location := range manifest.Locations {
		c.Backends = append(c.Backends, location.String())
	}
	return c
}

// refusal returns one error for all files that are not acceptable, or nil.
func refusal(files []checkedFile) error {
	var messages []string
	reason := retain.PolicyDenied
	for _, c := range files {
		if c.OK {
			continue
		}
		if c.reason == retain.ManifestInvalid {
			reason = retain.ManifestInvalid
		}
		messages = append(messages, prefixed(c.File, c.Problems))
	}
	if len(messages) == 0 {
		return nil
	}
	return &retain.Error{Reason: reason, Message: strings.Join(messages, "\n")}
}

func prefixed(file string, problems strictyaml.Problems) string {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = file + ": " + p.String()
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func manifestsOf(files []checkedFile) []retain.Manifest {
	manifests := make([]retain.Manifest, len(files))
	for i, c := range files {
		manifests[i] = c.manifest
	}
	return manifests
}
