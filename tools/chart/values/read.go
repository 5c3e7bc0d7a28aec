package main

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// rulePrefix begins the lines of a comment that are JSON schema, not prose.
const rulePrefix = "@schema "

// value is one value, or one group of values, of values.yaml.
type value struct {
	path     string         // as --set has it
	about    string         // the comment's prose, in one line
	rules    map[string]any // the comment's JSON schema
	node     *yaml.Node     // the default
	children []value        // of a group
}

// name is the last part of the path.
func (v value) name() string { return v.path[strings.LastIndex(v.path, ".")+1:] }

// read returns the values of a values.yaml, in its order, and says everything that
// is wrong with it at once.
func read(source string) ([]value, error) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(source), &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("values.yaml: expected a mapping")
	}
	return readGroup(strings.Split(source, "\n"), "", document.Content[0])
}

func readGroup(lines []string, prefix string, group *yaml.Node) ([]value, error) {
	var values []value
	var problems []error
	for i := 0; i < len(group.Content); i += 2 {
		v, err := readValue(lines, prefix, group.Content[i], group.Content[i+1])
		values, problems = append(values, v), append(problems, err)
	}
	return values, errors.Join(problems...)
}

func readValue(lines []string, prefix string, key, node *yaml.Node) (value, error) {
	prose, rules := commentAbove(lines, key.Line)
	v := value{path: prefix + key.Value, about: strings.Join(prose, " "), node: node}
	if err := yaml.Unmarshal([]byte(strings.Join(rules, "\n")), &v.rules); err != nil {
		return v, fmt.Errorf("values.yaml: %s: its @schema lines are no YAML mapping: %w", v.path, err)
	}
	if isGroup(v) {
		var err error
		v.children, err = readGroup(lines, v.path+".", node)
		return v, err
	}
	if v.about == "" {
		return v, fmt.Errorf("values.yaml: %s has no comment: say in the lines above it what it is for", v.path)
	}
	return v, nil
}

// isGroup reports whether the values within are values of their own. A mapping
// whose @schema says what it may hold is one value.
func isGroup(v value) bool {
	if v.node.Kind != yaml.MappingNode || len(v.node.Content) == 0 {
		return false
	}
	return v.rules["properties"] == nil && v.rules["additionalProperties"] == nil
}

// commentAbove returns the comment that ends directly above a line: its prose, and
// the lines that are JSON schema.
func commentAbove(lines []string, line int) (prose, rules []string) {
	begin := line - 1 // lines count from 1
	for begin > 0 && strings.HasPrefix(strings.TrimSpace(lines[begin-1]), "#") {
		begin--
	}
	for _, text := range lines[begin : line-1] {
		text = strings.TrimPrefix(strings.TrimSpace(text), "#")
		if rule, ok := strings.CutPrefix(strings.TrimLeft(text, " "), rulePrefix); ok {
			rules = append(rules, rule)
			continue
		}
		if text = strings.TrimSpace(text); text != "" {
			prose = append(prose, text)
		}
	}
	return prose, rules
}
