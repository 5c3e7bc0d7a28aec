package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mooring-k8s/mooring/internal/recipe"
)

func TestThePageIsUpToDate(t *testing.T) {
	got, err := os.ReadFile("../../../docs/drivers.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != page() {
		t.Error("docs/drivers.md is stale: run make generate")
	}
}

// No recipe may rest on something that nobody has verified without the page
// saying so next to the driver.
func TestThePageSaysWhatIsNotVerified(t *testing.T) {
	text := page()
	for _, d := range recipe.Drivers().Describe() {
		for _, want := range append(append([]string{d.Basis, d.Refused}, d.Unverified...), d.Refuses...) {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the page does not say %q", d.Driver, want)
			}
		}
	}
}

func TestTablesAreWhole(t *testing.T) {
	cells := 0
	for line := range strings.Lines(page()) {
		if !strings.HasPrefix(line, "|") {
			cells = 0
			continue
		}
		if n := strings.Count(line, "|"); cells == 0 {
			cells = n
		} else if n != cells {
			t.Errorf("%d cells, want %d: %s", n-1, cells-1, line)
		}
	}
}

func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "drivers.md")
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
