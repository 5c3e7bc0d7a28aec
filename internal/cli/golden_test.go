package cli

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "write the golden files of testdata/golden anew, and remove those of no scene")

// scene is a command in a state. Its golden file has what the command prints for
// people and for machines, and how it ends.
type scene struct {
	command, state string
	// args are the command's; it is run once as they are, and once more with
	// each of these outputs.
	args    string
	outputs []string
	// answer is what the person types who is asked.
	answer string
	// arrange puts objects into the cluster; nil for a command that asks none.
	arrange func(f *fakeAPI)
	// show prints what no command line prints at once, instead of args: a change
	// that is watched, which is of a part of the schema.
	show func(out io.Writer, output string) error
	part string
}

var people = []string{"", "json"}

func scenes() []scene {
	return slices.Concat(explainScenes(), listScenes(), mapScenes(), accessScenes(), shareScenes(), mirrorScenes(), doctorScenes(), offlineScenes())
}

func (s scene) file() string {
	return filepath.Join("testdata", "golden", strings.ReplaceAll(s.command, " ", "-"), s.state+".txt")
}

// Every command in every state prints what its golden file says, and what it
// prints for machines satisfies its schema.
func TestGolden(t *testing.T) {
	t.Setenv("COLUMNS", "")
	t.Setenv("NO_COLOR", "")
	t.Setenv(provisionerVariable, "")
	schemas := schemasByCommand(t)
	schemas["list#/$defs/mirror"] = compileSchema(t, "../../docs/list.schema.json#/$defs/mirror")
	for _, s := range scenes() {
		t.Run(s.command+"/"+s.state, func(t *testing.T) {
			t.Parallel()
			got := s.printed(t, schemas[s.command+s.part])
			if *update {
				write(t, s.file(), got)
			}
			want, err := os.ReadFile(s.file())
			if err != nil {
				t.Fatalf("%v; write it with: go test ./internal/cli -run TestGolden -update", err)
			}
			if got != string(want) {
				t.Errorf("%s: got\n%s\nwant\n%s", s.file(), got, want)
			}
		})
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// created is when the claims of all scenes were made: a little more than three
// hours ago.
var created = time.Now().UTC().Add(-3*time.Hour - 5*time.Second).Truncate(time.Second)

// printed returns the text of the golden file.
func (s scene) printed(t *testing.T, schema *jsonschema.Schema) string {
	t.Helper()
	var text strings.Builder
	for _, output := range s.outputs {
		line := strings.TrimSpace(s.command + " " + s.args)
		if output != "" {
			line += " -o " + output
		}
		var out, errs bytes.Buffer
		code := s.run(t, line, output, Env{Out: &out, Err: &errs, In: strings.NewReader(s.answer), Version: "v1.2.3", CommitDate: "2026-01-02T03:04:05Z"})
		if output == "json" && out.Len() > 0 {
			if schema == nil {
				t.Fatalf("mooring %s prints JSON and has no schema", s.command)
			}
			satisfies(t, schema, out.String())
		}
		fmt.Fprintf(&text, "$ mooring %s\n", line)
		if s.answer != "" {
			fmt.Fprintf(&text, "(somebody answers %q)\n", s.answer)
		}
		fmt.Fprintf(&text, "%s(exit code %d)\n%s\n", out.String(), code, prefixEach("stderr: ", errs.String()))
	}
	return masked(text.String())
}

func (s scene) run(t *testing.T, line, output string, e Env) int {
	t.Helper()
	if s.show != nil {
		if err := s.show(e.Out, output); err != nil {
			t.Fatal(err)
		}
		return 0
	}
	args := strings.Fields(line)
	if s.arrange != nil {
		f := newFakeAPI(t)
		s.arrange(f)
		args = append(args, "--kubeconfig="+f.kubeconfig())
	}
	return Run(t.Context(), args, e)
}

func satisfies(t *testing.T, schema *jsonschema.Schema, text string) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

func prefixEach(prefix, text string) string {
	var all strings.Builder
	for line := range strings.Lines(text) {
		all.WriteString(prefix + line)
	}
	return all.String()
}

var (
	ports  = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	builds = regexp.MustCompile(`go\d+\.\d+(\.\d+)?|(linux|darwin)/(amd64|arm64)`)
)

// masked leaves out what is another thing each time, or on each machine.
func masked(text string) string {
	text = strings.ReplaceAll(text, created.Format(time.RFC3339), "(3 hours ago)")
	return builds.ReplaceAllString(ports.ReplaceAllString(text, "127.0.0.1:PORT"), "(of this build)")
}

// Every state that there is has a scene, every scene a golden file, and every
// golden file a scene. The states are those of the code: a reason, a state, an
// ending, a check that is added there is missing here at once.
func TestGoldenIsComplete(t *testing.T) {
	files, codes := map[string]bool{}, map[string][]int{}
	for _, s := range scenes() {
		if files[s.file()] {
			t.Errorf("%s has two scenes", s.file())
		}
		files[s.file()] = true
		text, err := os.ReadFile(s.file())
		if err != nil {
			t.Errorf("no golden file: %v", err)
		}
		for _, found := range regexp.MustCompile(`(?m)^\(exit code (\d+)\)$`).FindAllStringSubmatch(string(text), -1) {
			code, _ := strconv.Atoi(found[1]) // digits
			codes[s.command] = append(codes[s.command], code)
		}
	}
	for command, states := range statesByCommand(t) {
		for _, state := range states {
			if file := (scene{command: command, state: state}).file(); !files[file] {
				t.Errorf("mooring %s has no scene for the state %s", command, state)
			}
		}
	}
	for command, endings := range endingsByCommand() {
		for _, ending := range endings {
			if !slices.Contains(codes[command], ending.code) {
				t.Errorf("no golden file of mooring %s ends with %d, %s", command, ending.code, ending.reason)
			}
		}
	}
	there, err := filepath.Glob("testdata/golden/*/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range there {
		if files[file] {
			continue
		}
		if !*update {
			t.Errorf("%s is of no scene", file)
		} else if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	}
}

// constantsOf returns the values of a file's constants of one type.
func constantsOf(t *testing.T, file, typeName string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		spec, is := node.(*ast.ValueSpec)
		if !is || len(spec.Values) != 1 {
			return true
		}
		named, _ := spec.Type.(*ast.Ident)
		literal, _ := spec.Values[0].(*ast.BasicLit)
		if named == nil || literal == nil || named.Name != typeName {
			return true
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
		return true
	})
	if len(values) == 0 {
		t.Fatalf("%s has no constants of the type %s", file, typeName)
	}
	return values
}
