package main

import (
	"strings"
	"testing"
)

const base = `# The head of the file, which is nobody's.

# What for.
# @schema enum: [a, b]
choice: a

# A group.
group:
  # How
  # many.
  # @schema minimum: 1
  number: 2
  # What it holds.
  # @schema additionalProperties: {type: string}
  open: {}
  # A list.
  # @schema items: {type: object, required: [name], properties: {name: {type: string}}}
  list: []
`

func TestSchema(t *testing.T) {
	values, err := read(base)
	if err != nil {
		t.Fatal(err)
	}
	got, err := schemaOf(values)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"choice": {
      "description": "What for.",
      "enum": [
        "a",
        "b"
      ],
      "type": "string"
    },`,
		`"group": {
      "additionalProperties": false,
      "description": "A group.",`,
		`"number": {
          "description": "How many.",
          "minimum": 1,
          "type": "integer"
        },`,
		`"items": {
            "additionalProperties": false,`,
		`"open": {
          "additionalProperties": {
            "type": "string"
          },`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the schema lacks\n%s\nit is\n%s", want, got)
		}
	}
}

func TestTable(t *testing.T) {
	values, err := read(base)
	if err != nil {
		t.Fatal(err)
	}
	const want = "| value | what for | may be | default |\n" +
		"| --- | --- | --- | --- |\n" +
		"| `choice` | What for. | `a`, `b` | `a` |\n" +
		"| **`group`** | A group. | | |\n" +
		"| `group.number` | How many. | a whole number, at least 1 | `2` |\n" +
		"| `group.open` | What it holds. | a mapping | `{}` |\n" +
		"| `group.list` | A list. | a list | `[]` |"
	if got := tableOf(values); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What would leave the schema open or a value unexplained is refused.
func TestRefusals(t *testing.T) {
	for _, tc := range []struct{ name, source, want string }{
		{"no comment", "\nname: a\n", "values.yaml: name has no comment: say in the lines above it what it is for"},
		{"a comment further up", "# Far away.\n\nname: a\n", "values.yaml: name has no comment: say in the lines above it what it is for"},
		{"no comment further in", "group:\n  name: a\n", "values.yaml: group.name has no comment: say in the lines above it what it is for"},
		{"an open mapping", "# A.\na: {}\n", "values.yaml: a: say what it may hold, with `# @schema properties:` or `# @schema additionalProperties:`"},
		{"an open list", "# A.\na: []\n", "values.yaml: a: say what it may hold, with `# @schema items:`"},
		{"an open mapping in a list", "# A.\n# @schema items: {type: object}\na: []\n", "values.yaml: a: say what it may hold, with `# @schema properties:` or `# @schema additionalProperties:`"},
		{"null", "# A.\na: null\n", "values.yaml: a is null by default: say of which type it is, such as `# @schema type: [integer, \"null\"]`"},
		{"a default that is refused", "# A.\n# @schema enum: [b]\na: c\n", "values.yaml: a: the default \"c\" is none of [b]"},
		{"rules that are none", "# A.\n# @schema enum\na: c\n", "values.yaml: a: its @schema lines are no YAML mapping: yaml: unmarshal errors:\n  line 1: cannot unmarshal !!str `enum` into map[string]interface {}"},
		{"rules of a group", "# A.\n# @schema minimum: 1\na:\n  # B.\n  b: 1\n", "values.yaml: a: @schema of a group of values; expected it above the values within"},
		{"a list", "- a\n", "values.yaml: expected a mapping"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			values, err := read(tc.source)
			if err == nil {
				_, err = schemaOf(values)
			}
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v\nwant %s", err, tc.want)
			}
		})
	}
}
