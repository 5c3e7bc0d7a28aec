package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

func TestThePageIsUpToDate(t *testing.T) {
	got, err := os.ReadFile("../../../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != page() {
		t.Error("docs/reasons.md is stale: run make generate")
	}
}

func TestThePageHasEveryReasonOnce(t *testing.T) {
	text := page()
	for _, doc := range mirror.Reasons() {
		if n := strings.Count(text, "\n| `"+string(doc.Reason)+"` |"); n != 1 {
			t.Errorf("%s has %d rows", doc.Reason, n)
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") && strings.Count(line, "|") != 7 {
			t.Errorf("not a row of six cells: %s", line)
		}
	}
}

func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reasons.md")
	if err := run([]string{file}); err != nil {
		t.Fatal(err)
	}
	if written, err := os.ReadFile(file); err != nil || string(written) != page() {
		t.Errorf("wrote %d bytes, %v", len(written), err)
	}
	if err := run(nil); err == nil {
		t.Error("without a file to write: no error")
	}
}
