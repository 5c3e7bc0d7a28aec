package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a failed test shows of the servers' logs are complaints only: the end of
// the test's output is to say what the test found.
func TestComplaints(t *testing.T) {
	long := "E0102 15:04:06.000001       1 server.go:2] " + strings.Repeat("x", 2*complaintWidth)
	log := strings.Join([]string{
		`W0102 15:04:05.000001       1 server.go:1] an early one`,
		`I0102 15:04:05.000001       1 server.go:1] ready`,
		`{"level":"info","ts":"2026-01-02T15:04:05Z","msg":"ready to serve"}`,
		`{"level":"warn","ts":"2026-01-02T15:04:05Z","msg":"slow"}`,
		``,
		`panic: lost`,
		long,
	}, "\n") + "\n"
	dir := t.TempDir()
	p := &Process{name: "server", plane: &ControlPlane{dir: dir}}
	if got := p.complaints(3); got != "" {
		t.Errorf("complaints of no log: %q, want none", got)
	}
	if err := os.MkdirAll(filepath.Dir(p.LogFile()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.LogFile(), []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	want := `{"level":"warn","ts":"2026-01-02T15:04:05Z","msg":"slow"}` + "\npanic: lost\n" + long[:complaintWidth]
	if got := p.complaints(3); got != want {
		t.Errorf("complaints:\n%s\nwant:\n%s", got, want)
	}

	path, err := p.copyLog(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if copied, err := os.ReadFile(path); err != nil || string(copied) != log {
		t.Errorf("the copy %s is %q (%v), want the whole log", path, copied, err)
	}
}
