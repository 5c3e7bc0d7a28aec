// Package strictyaml reads one YAML or JSON document of which every reader must
// understand the same thing. What two YAML parsers, or a parser and a person,
// could take for different things is refused: duplicate and unknown fields,
// anchors, tags, several documents, and plain words such as on, 0750 or 1e3.
//
// It is PURE: bytes in, problems out. No message ever holds a value of the
// document, only the path of its field, since documents hold secrets.
package strictyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
)

// maxDepth is far above what a volume or a kubeconfig needs.
const maxDepth = 40

// Problem is one thing that is wrong with one field.
type Problem struct {
	// Field is the path of the field, such as spec.nfs.server; empty for the
	// document as a whole.
	Field string `json:"field,omitempty"`
	// Detail says what is wrong, what was expected and what to do.
	Detail string `json:"detail"`
}

func (p Problem) String() string {
	if p.Field == "" {
		return p.Detail
	}
	return p.Field + ": " + p.Detail
}

// Problems are all that was found wrong, as one error.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Decode reads the only document of data into the struct that into points to.
// It returns every problem that it finds, or nil; on problems, into must not be
// used. Data above maxBytes are refused unread.
func Decode(data []byte, maxBytes int, into any) Problems {
	// 1. Size and syntax.
	if len(data) > maxBytes {
		return Problems{{Detail: fmt.Sprintf("the document has %d bytes; expected at most %d", len(data), maxBytes)}}
	}
	root, problems := parse(data)
	if len(problems) > 0 {
		return problems
	}
	// 2. Values that readers take differently.
	r := reader{tags: exclamations(data)}
	value := r.value(root, "", 0)
	if len(r.problems) > 0 {
		return r.problems
	}
	if _, isObject := value.(map[string]any); !isObject {
		return Problems{{Detail: "the document is no object; expected fields such as apiVersion and kind at its top"}}
	}
	// 3. Fields that the type does not have, and wrong types.
	return decodeJSON(value, into)
}

func parse(data []byte) (*yaml.Node, Problems) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, Problems{{Detail: "the document is empty"}}
	}
	if err != nil {
		return nil, Problems{{Detail: syntaxError(err)}}
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, Problems{{Detail: "several documents in one file, or text after the first; expected exactly one: put each in a file of its own"}}
	}
	return document.Content[0], nil
}

var lineOfError = regexp.MustCompile(`line [0-9]+`)

// syntaxError keeps only the line of the parser's message: the rest can quote
// the document.
func syntaxError(err error) string {
	where := lineOfError.FindString(err.Error())
	if where == "" {
		where = "the document"
	}
	return where + ": not valid YAML; check the indentation and the quotes there"
}

func decodeJSON(value any, into any) Problems {
	encoded, err := json.Marshal(value)
	if err != nil {
		return Problems{{Detail: "the document cannot be written as JSON; expected only objects, lists, texts, whole numbers, true and false"}}
	}
	strictErrors, err := kjson.UnmarshalStrict(encoded, into, kjson.DisallowUnknownFields)
	var problems Problems
	for _, strict := range strictErrors {
		problems = append(problems, unknownField(strict))
	}
	if err != nil {
		problems = append(problems, wrongType(err))
	}
	return problems
}

func unknownField(err error) Problem {
	var named kjson.FieldError
	if errors.As(err, &named) {
		return Problem{shownPath(named.FieldPath()), "no field of this name exists; correct the spelling (capitals count) or leave it out"}
	}
	return Problem{Detail: "a field that does not exist; correct its spelling or leave it out"}
}

func wrongType(err error) Problem {
	var typed *json.UnmarshalTypeError
	if !errors.As(err, &typed) {
		return Problem{Detail: "a value has a form that its field does not accept: a quantity looks like 10Gi, a time like 2006-01-02T15:04:05Z, binary data is base64"}
	}
	kind, _, _ := strings.Cut(typed.Value, " ")
	return Problem{typed.Field, fmt.Sprintf("a %s stands where a %s is expected%s", kind, typed.Type, quoteHint(kind))}
}

func quoteHint(kind string) string {
	if kind == "number" || kind == "bool" {
		return "; put it in quotes if it is a text"
	}
	return ""
}
