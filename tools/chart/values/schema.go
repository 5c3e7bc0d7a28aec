package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// typeOfTag is what JSON schema calls YAML's types.
func typeOfTag(tag string) string {
	return map[string]string{
		"!!str": "string", "!!bool": "boolean", "!!int": "integer", "!!float": "number", "!!seq": "array", "!!map": "object",
	}[tag]
}

// schemaOf returns values.schema.json: closed, so that what is misspelt is refused.
func schemaOf(values []value) (string, error) {
	root, err := groupSchema(value{children: values})
	if err != nil {
		return "", err
	}
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "Values of the Mooring chart"
	root["$comment"] = "Made from values.yaml by `make generate`."
	properties, _ := root["properties"].(map[string]any)
	properties["global"] = map[string]any{
		"description": "Helm's own: present where the chart is a dependency of another, and whatever that one needs.",
		"type":        "object", "additionalProperties": true,
	}
	text, err := json.MarshalIndent(root, "", "  ")
	return string(text) + "\n", err
}

func groupSchema(group value) (map[string]any, error) {
	properties := map[string]any{}
	var problems []error
	for _, v := range group.children {
		var err error
		properties[v.name()], err = schemaOfOne(v)
		problems = append(problems, err)
	}
	schema := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if required := neededOf(group.children); len(required) > 0 {
		schema["required"] = required
	}
	if group.about != "" {
		schema["description"] = group.about
	}
	return schema, errors.Join(problems...)
}

// neededOf returns the names of those values that have to be there. Who sets one to
// null takes its default away, as Helm has it: of a list or a mapping nothing is
// left then, of others the templates would make what nobody means.
func neededOf(values []value) []string {
	var names []string
	for _, v := range values {
		if v.children != nil || v.node.Kind == yaml.ScalarNode && !mayBeNull(v) {
			names = append(names, v.name())
		}
	}
	return names
}

func mayBeNull(v value) bool {
	types, _ := v.rules["type"].([]any)
	return slices.Contains(types, any("null"))
}

func schemaOfOne(v value) (map[string]any, error) {
	if v.children != nil {
		if len(v.rules) > 0 {
			return nil, fmt.Errorf("values.yaml: %s: @schema of a group of values; expected it above the values within", v.path)
		}
		return groupSchema(v)
	}
	schema := map[string]any{"description": v.about}
	if known := typeOfTag(v.node.Tag); known != "" {
		schema["type"] = known
	}
	maps.Copy(schema, v.rules)
	if schema["type"] == nil {
		return nil, fmt.Errorf("values.yaml: %s is null by default: say of which type it is, such as `# @schema type: [integer, \"null\"]`", v.path)
	}
	if err := closeObjects(v.path, schema); err != nil {
		return nil, err
	}
	return schema, accepts(v, schema)
}

// closeObjects refuses further properties wherever the schema lists some, and
// wants to be told what a list or a mapping may hold.
func closeObjects(path string, schema map[string]any) error {
	var problems []error
	for _, key := range []string{"items", "additionalProperties", "not", "propertyNames"} {
		if inner, ok := schema[key].(map[string]any); ok {
			problems = append(problems, closeObjects(path, inner))
		}
	}
	properties, listed := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if inner, ok := properties[name].(map[string]any); ok {
			problems = append(problems, closeObjects(path+"."+name, inner))
		}
	}
	switch {
	case listed && schema["additionalProperties"] == nil:
		schema["additionalProperties"] = false
	case schema["type"] == "object" && schema["additionalProperties"] == nil:
		problems = append(problems, fmt.Errorf("values.yaml: %s: say what it may hold, with `# @schema properties:` or `# @schema additionalProperties:`", path))
	case schema["type"] == "array" && schema["items"] == nil:
		problems = append(problems, fmt.Errorf("values.yaml: %s: say what it may hold, with `# @schema items:`", path))
	}
	return errors.Join(problems...)
}

// accepts refuses a default that is none of the values listed, which Helm would
// refuse only when somebody installs the chart.
func accepts(v value, schema map[string]any) error {
	listed, _ := schema["enum"].([]any)
	if listed == nil || v.node.Kind != yaml.ScalarNode {
		return nil
	}
	for _, one := range listed {
		if fmt.Sprint(one) == v.node.Value {
			return nil
		}
	}
	return fmt.Errorf("values.yaml: %s: the default %q is none of %v", v.path, v.node.Value, listed)
}
