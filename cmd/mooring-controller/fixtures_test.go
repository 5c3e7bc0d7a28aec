package main

import (
	"os"
	"testing"
)

// writeKubeconfig writes a kubeconfig that names a server and reaches none.
func writeKubeconfig(t *testing.T, path string) {
	t.Helper()
	text := `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
"users": [{"name": "u", "user": {"token": "t"}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
