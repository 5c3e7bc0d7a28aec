package retain

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"testing"
)

// The list is closed: every constant is described, once, with an exit code of
// its own that the shell and Go leave free.
func TestReasonsAreClosed(t *testing.T) {
	listed := map[Reason]bool{}
	codes := map[int]Reason{}
	name := regexp.MustCompile(`^[a-z][a-z-]*[a-z]$`)
	for _, info := range Reasons() {
		if listed[info.Reason] || codes[info.ExitCode] != "" {
			t.Errorf("%s or exit code %d is there twice", info.Reason, info.ExitCode)
		}
		if !name.MatchString(string(info.Reason)) || info.ExitCode < 1 || info.ExitCode > 125 || info.Meaning == "" || info.Next == "" {
			t.Errorf("incomplete: %+v", info)
		}
		listed[info.Reason], codes[info.ExitCode] = true, info.Reason
	}
	for _, constant := range reasonConstants(t) {
		if !listed[constant] {
			t.Errorf("%s has no description and no exit code", constant)
		}
		delete(listed, constant)
	}
	if len(listed) > 0 {
		t.Errorf("described, but no constant: %v", listed)
	}
}

func reasonConstants(t *testing.T) []Reason {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "reasons.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var constants []Reason
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Reason" {
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok {
				t.Fatalf("%s is no literal", spec.Names[0])
			}
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			constants = append(constants, Reason(value))
		}
		return true
	})
	return constants
}

func TestReasonOf(t *testing.T) {
	cause := errors.New("cause")
	wrapped := refusef(ReadFailed, "read: %w", cause)
	if ReasonOf(errors.Join(errors.New("x"), wrapped)) != ReadFailed || ReasonOf(cause) != Unexpected || !errors.Is(wrapped, cause) {
		t.Error("reasons get lost on the way up")
	}
	if InfoOf("no such reason").Reason != Unexpected {
		t.Error("an unknown reason has an exit code")
	}
}
