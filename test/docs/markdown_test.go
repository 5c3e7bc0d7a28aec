package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// root is the checkout, from this directory.
const root = "../.."

// tested are the pages whose every example is run. Whatever they show has to be
// in a fence that says what it is.
var tested = []string{"README.md", "docs/concepts.md", "docs/installing.md", migrating, operating, security, alerts}

// block is the content of one fence of a page.
type block struct {
	page string
	line int
	lang string
	text string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// read returns a file of the checkout.
func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// blocks returns the fences of a page, in their order.
func blocks(t *testing.T, page string) []block {
	t.Helper()
	var found []block
	var current *block
	number, indent := 0, 0
	for line := range strings.Lines(read(t, page)) {
		number++
		bare := strings.TrimSpace(line)
		switch {
		case current == nil && strings.HasPrefix(bare, "```"):
			current = &block{page: page, line: number, lang: strings.TrimPrefix(bare, "```")}
			indent = strings.Index(line, "`")
		case current != nil && bare == "```":
			found = append(found, *current)
			current = nil
		case current != nil:
			current.text += line[min(indent, len(line)-len(strings.TrimLeft(line, " "))):]
		}
	}
	if current != nil {
		t.Fatalf("%v: the fence has no end", *current)
	}
	return found
}

// objects reads YAML documents as strictly as the API server would, and no key
// may stand twice.
func objects(text string) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for document := range strings.SplitSeq("\n"+text, "\n---") {
		content, err := yaml.YAMLToJSONStrict([]byte(document))
		if err != nil {
			return nil, err
		}
		if string(content) == "null" {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			return nil, err
		}
		found = append(found, object)
	}
	return found, nil
}

// command is one command of a shell block, with its here-document.
type command struct {
	words []string
	input string
}

// commands reads what the pages use of the shell's language: comments, lines
// that go on after a backslash, quotes, here-documents, variables in front.
func commands(text string) ([]command, error) {
	var found []command
	lines := strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n")
	for i := 0; i < len(lines); i++ {
		words, err := split(lines[i])
		if err != nil {
			return nil, err
		}
		if len(words) == 0 {
			continue
		}
		c := command{words: words}
		if end, isHere := strings.CutPrefix(words[len(words)-1], "<<"); isHere {
			c.words = words[:len(words)-1]
			for i++; i < len(lines) && lines[i] != end; i++ {
				c.input += lines[i] + "\n"
			}
			if i == len(lines) {
				return nil, fmt.Errorf("the here-document has no line %q at its end", end)
			}
		}
		found = append(found, c)
	}
	return found, nil
}

// split divides a line into words; whatever else a shell would do with it is an
// error.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	quote, inWord := rune(0), false
	end := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t':
			end()
		case r == '#' && !inWord:
			return words, nil
		case strings.ContainsRune("|&;$`()*?\\", r):
			return nil, fmt.Errorf("%q is more of a shell than this test knows: %s", r, line)
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote is not closed: %s", line)
	}
	end()
	return words, nil
}

func TestPagesSayWhatTheirFencesAre(t *testing.T) {
	for _, page := range tested {
		for _, block := range blocks(t, page) {
			switch block.lang {
			case "yaml":
				if parsed, err := objects(block.text); err != nil || len(parsed) == 0 {
					t.Errorf("%v: a yaml block holds whole objects, which can be applied: %v", block, err)
				}
			case "sh":
				if _, err := commands(block.text); err != nil {
					t.Errorf("%v: %v", block, err)
				}
			default:
				t.Errorf("%v: a fence is yaml or sh, not %q: anything else is not tested", block, block.lang)
			}
		}
	}
}
