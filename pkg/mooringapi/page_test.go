package mooringapi_test

import (
	"os"
	"strings"
	"testing"
)

// Every block of Go on the page for operators is code that is compiled and run
// here, to the letter.
func TestPageShowsTheExample(t *testing.T) {
	const page = "../../docs/for-operators.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_operator_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```go\n")[1:]
	if len(blocks) == 0 {
		t.Fatalf("%s shows no Go", page)
	}
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "```")
		if !strings.Contains(string(example), code) {
			t.Errorf("%s shows what example_operator_test.go does not have:\n%s", page, code)
		}
	}
}
