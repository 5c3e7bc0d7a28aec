package strictyaml

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reader turns the nodes of a document into values, and collects what it
// refuses.
type reader struct {
	problems Problems
	tags     map[position]bool // where nodes with a tag begin
}

func (r *reader) refuse(field, detail string) any {
	r.problems = append(r.problems, Problem{field, detail})
	return nil
}

func (r *reader) value(node *yaml.Node, field string, depth int) any {
	switch {
	case depth > maxDepth:
		return r.refuse(field, fmt.Sprintf("nested more than %d levels deep", maxDepth))
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		return r.refuse(field, "anchors (&) and aliases (*) are not accepted; write the value out, or quote it if it is a text")
	case node.Style&yaml.TaggedStyle != 0 || r.tags[position{node.Line, node.Column}]:
		return r.refuse(field, "a tag (!) is not accepted; write the plain value, or quote it if it is a text")
	}
	switch node.Kind {
	case yaml.MappingNode:
		return r.object(node, field, depth)
	case yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))
		for i, item := range node.Content {
			list = append(list, r.value(item, fmt.Sprintf("%s[%d]", field, i), depth+1))
		}
		return list
	case yaml.ScalarNode:
		return r.scalar(node, field)
	default:
		return r.refuse(field, "not a value")
	}
}

func (r *reader) object(node *yaml.Node, field string, depth int) any {
	object := make(map[string]any, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, isText := r.value(node.Content[i], field, depth+1).(string)
		if !isText {
			r.refuse(field, "a field's name is no text; put it in quotes")
			continue
		}
		path := join(field, key)
		if _, twice := object[key]; twice {
			r.refuse(path, "given twice; keep one")
			continue
		}
		object[key] = r.value(node.Content[i+1], path, depth+1)
	}
	return object
}

func join(field, key string) string {
	if field == "" {
		return shownName(key)
	}
	return field + "." + shownName(key)
}

// notShown stands for a name that can be something else than a field's:
// {token:x} is an object with the field "token:x".
const notShown = "(a name that is not shown)"

var fieldName = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,100}$`)

// shownName returns a name for a problem's path if it looks like that of a
// field, label or annotation.
func shownName(key string) string {
	if fieldName.MatchString(key) {
		return key
	}
	return notShown
}

var fieldPath = regexp.MustCompile(`^[A-Za-z0-9._/\[\]-]*`)

// shownPath returns a path of known fields with an unknown one at its end, which
// is left out if it does not look like one.
func shownPath(path string) string {
	known := fieldPath.FindString(path)
	switch {
	case len(path) > 120: // of which nobody knows where the name begins
		return notShown
	case known == path:
		return path
	}
	return known[:strings.LastIndex(known, ".")+1] + notShown
}

var (
	wholeNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,17})$`)
	// surprises are plain words that YAML 1.1 and 1.2 parsers, or a parser and
	// a person, read differently (https://yaml.org/type/).
	surprises = regexp.MustCompile(`^(` +
		`y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF|True|TRUE|False|FALSE` + // truth values, for some
		`|[-+]?[0-9][0-9_]*` + // 0750 is octal for some; 1_000
		`|[-+]?0[xXoObB][0-9a-fA-F_]*` +
		`|[-+]?([0-9][0-9_]*)?\.[0-9_]*([eE][-+]?[0-9]+)?` + // 1.5
		`|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+` + // 1e3
		`|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)` +
		`|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?` + // 1:30 is 90 for some
		`|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*` + // a time, for some
		`|=|<<)$`)
)

// isSurprise tells whether the parser takes a plain word for something else than
// a text. It has ways of its own to read a number: it drops every _ first, so
// that 0_x0 is one to it.
func isSurprise(node *yaml.Node) bool {
	return node.ShortTag() != "!!str" || surprises.MatchString(strings.ReplaceAll(node.Value, "_", ""))
}

func (r *reader) scalar(node *yaml.Node, field string) any {
	if node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return node.Value
	}
	switch text := node.Value; {
	case text == "" || text == "~" || text == "null" || text == "Null" || text == "NULL":
		return r.refuse(field, `no value; leave the field out, or write "" for the empty text`)
	case text == "true" || text == "false":
		return text == "true"
	case wholeNumber.MatchString(text):
		return json.Number(text)
	case surprises.MatchString(text) || isSurprise(node):
		return r.refuse(field, "YAML readers disagree about this unquoted value; put it in quotes if it is a text, or write a plain decimal number")
	default:
		return node.Value
	}
}
