package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	notWord = regexp.MustCompile("[^a-z0-9 _-]")
)

// A link of any page leads to a file of the checkout, and to a heading of it
// where it names one.
func TestLinksLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md"} {
		pages = append(pages, filepath.Join(root, name))
	}
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(data), -1) {
			if !strings.Contains(match[1], "://") {
				leadsSomewhere(t, page, match[1])
			}
		}
	}
}

func leadsSomewhere(t *testing.T, page, target string) {
	t.Helper()
	path, anchor, _ := strings.Cut(target, "#")
	file := page
	if path != "" {
		file = filepath.Join(filepath.Dir(page), path)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Errorf("%s: the link %s leads nowhere: %v", page, target, err)
		return
	}
	if anchor == "" || info.IsDir() {
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range heading.FindAllStringSubmatch(string(data), -1) {
		if anchorOf(match[1]) == anchor {
			return
		}
	}
	t.Errorf("%s: the link %s names a heading that %s has not got", page, target, file)
}

// anchorOf is the anchor that the forges make of a heading.
func anchorOf(text string) string {
	return strings.ReplaceAll(notWord.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
}
