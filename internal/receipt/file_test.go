package receipt_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mooring-k8s/mooring/internal/receipt"
)

func TestReserve(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	if err := os.WriteFile(taken, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), link); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"a file is there":         taken,
		"a link leads nowhere":    link,
		"a directory":             dir,
		"no such directory":       filepath.Join(dir, "no", "r.json"),
		"a file as a directory":   filepath.Join(taken, "r.json"),
		"a name that is too long": filepath.Join(dir, strings.Repeat("x", 300)),
	} {
		if _, err := receipt.Reserve(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestWriteReplacesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("r", 255)) // the longest name there can be
	file, err := receipt.Reserve(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, outcome := range []receipt.Outcome{receipt.Intended, receipt.Created} {
		if err := file.Write(full("create", outcome)); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := receipt.Decode(data); err != nil || got.Outcome != outcome {
			t.Fatalf("got %s, %v", got.Outcome, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestWriteRefusesWhatItsSchemaRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	file, err := receipt.Reserve(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Write(full("create", "fine")); err == nil {
		t.Error("an unknown outcome was written")
	}
	if data, err := os.ReadFile(path); err != nil || len(data) > 0 {
		t.Errorf("a part was written: %q, %v", data, err)
	}
}

func TestWriteFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := receipt.Reserve(filepath.Join(dir, "r.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := file.Write(full("create", receipt.Created)); err == nil || !strings.Contains(err.Error(), "r.json") {
		t.Errorf("got %v", err)
	}
}
