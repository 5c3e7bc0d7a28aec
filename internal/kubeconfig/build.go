package kubeconfig

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// BuildOptions say what Build writes.
type BuildOptions struct {
	Server        string
	TLSServerName string // optional
	CA            []byte // PEM
	Token         string // surrounding white space is dropped
	Now           time.Time
}

// Build returns a kubeconfig that satisfies the contract, or every problem that
// keeps its parts from doing so.
func Build(o BuildOptions) ([]byte, error) {
	cluster := map[string]any{
		"server":                     o.Server,
		"certificate-authority-data": base64.StdEncoding.EncodeToString(o.CA),
	}
	if o.TLSServerName != "" {
		cluster["tls-server-name"] = o.TLSServerName
	}
	const name = "mooring"
	data, err := yaml.Marshal(map[string]any{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": name,
		"clusters":        []any{map[string]any{"name": name, "cluster": cluster}},
		"contexts":        []any{map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": name}}},
		"users":           []any{map[string]any{"name": name, "user": map[string]any{"token": strings.TrimSpace(o.Token)}}},
	})
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig: %w", err)
	}
	if _, err := Parse(data, o.Now); err != nil {
		return nil, err
	}
	return data, nil
}
