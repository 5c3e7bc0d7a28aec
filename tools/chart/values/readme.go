package main

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// tableOf returns the values as a Markdown table.
func tableOf(values []value) string {
	var rows strings.Builder
	rows.WriteString("| value | what for | may be | default |\n| --- | --- | --- | --- |\n")
	writeRows(&rows, values)
	return strings.TrimSuffix(rows.String(), "\n")
}

func writeRows(rows *strings.Builder, values []value) {
	for _, v := range values {
		if v.children == nil {
			fmt.Fprintf(rows, "| `%s` | %s | %s | `%s` |\n", v.path, cell(v.about), cell(mayBe(v)), cell(defaultOf(v.node)))
			continue
		}
		if v.about != "" {
			fmt.Fprintf(rows, "| **`%s`** | %s | | |\n", v.path, cell(v.about))
		}
		writeRows(rows, v.children)
	}
}

// cell is text that does not end the cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text)
}

// defaultOf returns a default as one line of YAML.
func defaultOf(node *yaml.Node) string {
	if node.Kind == yaml.ScalarNode && node.Tag == "!!str" && node.Value == "" {
		return `""`
	}
	flat := *node
	if flat.Kind != yaml.ScalarNode {
		flat.Style = yaml.FlowStyle
	}
	flat.HeadComment, flat.LineComment, flat.FootComment = "", "", ""
	text, err := yaml.Marshal(&flat)
	if err != nil {
		return node.Value
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// mayBe says in words what the schema says of a value.
func mayBe(v value) string {
	if listed, ok := v.rules["enum"].([]any); ok {
		var names []string
		for _, one := range listed {
			names = append(names, fmt.Sprintf("`%v`", one))
		}
		return strings.Join(names, ", ")
	}
	words := typeWords(v)
	if least, ok := v.rules["minimum"]; ok {
		words += fmt.Sprintf(", at least %v", least)
	}
	if most, ok := v.rules["maxLength"]; ok {
		words += fmt.Sprintf(", at most %v characters", most)
	}
	return words
}

func typeWords(v value) string {
	words := map[string]string{
		"string": "text", "boolean": "`true`, `false`", "integer": "a whole number", "number": "a number",
		"array": "a list", "object": "a mapping", "null": "`null`",
	}
	types, several := v.rules["type"].([]any)
	if !several {
		if named, ok := v.rules["type"].(string); ok {
			return words[named]
		}
		return words[typeOfTag(v.node.Tag)]
	}
	var all []string
	for _, one := range types {
		all = append(all, words[fmt.Sprint(one)])
	}
	return strings.Join(all, " or ")
}
