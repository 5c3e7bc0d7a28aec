package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mooring-k8s/mooring/internal/controller"
)

func TestThePageIsUpToDate(t *testing.T) {
	got, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != page() {
		t.Error("docs/metrics.md is stale: run make generate")
	}
}

func TestThePageHasEveryMetricOnce(t *testing.T) {
	text := page()
	for _, m := range controller.Metrics() {
		if n := strings.Count(text, "\n| `"+m.Name+"` |"); n != 1 {
			t.Errorf("%s has %d rows", m.Name, n)
		}
	}
	own, _, _ := strings.Cut(text, "## Metrics of the libraries")
	for line := range strings.Lines(own) {
		if strings.HasPrefix(line, "|") && strings.Count(line, "|") != 6 {
			t.Errorf("not a row of five cells: %s", line)
		}
	}
}

func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "metrics.md")
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
