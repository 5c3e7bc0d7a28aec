package strictyaml_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mooring-k8s/mooring/internal/strictyaml"
)

type sample struct {
	Text   string            `json:"text"`
	Number int               `json:"number"`
	Truth  bool              `json:"truth"`
	Map    map[string]string `json:"map"`
	List   []string          `json:"list"`
}

func TestSurprises(t *testing.T) {
	for _, value := range []string{
		"y", "n", "yes", "No", "on", "Off", "True", "FALSE", "0750", "-010", "1_000", "+1", "0x1f", "0o17", "0b1",
		"0_X0", "0_x1f", "_1", "1_e3", "._5", "-0_b1", "0_o7", "+_1", "1_.5", ".i_nf",
		"1.5", ".5", "1.", "1e3", "1.5e-3", ".inf", "-.Inf", ".NaN", "1:30", "190:20:30", "2024-01-01", "2024-01-01T00:00:00Z",
		"=", "~", "null", "NULL", "", "!!str x", "!x y", "&a b", "12345678901234567890",
	} {
		t.Run(value, func(t *testing.T) {
			var s sample
			problems := strictyaml.Decode([]byte("text: "+value+"\n"), 1000, &s)
			if len(problems) != 1 || problems[0].Field != "text" {
				t.Fatalf("got %v, %+v; want one refusal of text", problems, s)
			}
		})
	}
}

func TestAccepted(t *testing.T) {
	for _, tc := range []struct {
		text string
		want sample
	}{
		{`text: "on"`, sample{Text: "on"}},
		{`text: '0750'`, sample{Text: "0750"}},
		{"text: 10Gi", sample{Text: "10Gi"}},
		{"text: 10.0.0.1", sample{Text: "10.0.0.1"}},
		{"text: 2001:db8::1", sample{Text: "2001:db8::1"}},
		{"text: |\n  on\n", sample{Text: "on\n"}},
		{"number: 0", sample{}},
		{"number: -12", sample{Number: -12}},
		{"truth: true", sample{Truth: true}},
		{`map: {"on": a, b: c}`, sample{Map: map[string]string{"on": "a", "b": "c"}}},
		{"list:\n- a\n- b\n", sample{List: []string{"a", "b"}}},
		{`{"text": "json", "list": []}`, sample{Text: "json", List: []string{}}},
		{"# a comment\n---\ntext: x\n...\n", sample{Text: "x"}},
	} {
		t.Run(tc.text, func(t *testing.T) {
			var got sample
			if problems := strictyaml.Decode([]byte(tc.text), 1000, &got); len(problems) > 0 {
				t.Fatal(problems)
			}
			if asJSON(t, got) != asJSON(t, tc.want) {
				t.Fatalf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRefusals(t *testing.T) {
	for _, tc := range []struct{ name, text, wantField, wantDetail string }{
		{"unknown field", "txt: a", "txt", "no field of this name"},
		{"wrong capitals", "Text: a", "Text", "no field of this name"},
		{"given twice", "text: a\ntext: b", "text", "given twice"},
		{"given twice below", "map: {a: b, a: c}", "map.a", "given twice"},
		{"key on", "map: {on: b}", "map", "disagree"},
		{"key a number", "map: {1: b}", "map", "quotes"},
		{"merge", "map:\n  <<: {a: b}\n", "map", "disagree"},
		{"the tag that the parser forgets", "number: ! 0", "number", "a tag (!)"},
		{"the same after another break of line", "text: a\rnumber: ! 0", "number", "a tag (!)"},
		{"the same on a list's item", "list: [a, ! b]", "list[1]", "a tag (!)"},
		{"the same on a name", "map: {! a: b}", "map", "a tag (!)"},
		{"the same on the whole", "! {text: a}", "", "a tag (!)"},
		{"the same on a block", "map: !\n  a: b\n", "map", "a tag (!)"},
		{"the same behind a mark of byte order", "\ufefftext: ! a", "text", "a tag (!)"},
		{"number for a text", "text: 12", "text", "put it in quotes"},
		{"truth for a text", "text: true", "text", "put it in quotes"},
		{"text for a number", `number: "1"`, "number", "a string stands where a int"},
		{"item of a list", "list: [a, on]", "list[1]", "disagree"},
		{"nothing", "", "", "empty"},
		{"only a comment", "# x", "", "empty"},
		{"two documents", "text: a\n---\ntext: b\n", "", "several documents"},
		{"rubbish after", "text: a\n...\n%%%\n", "", "line 3: not valid YAML"},
		{"a scalar", "text", "", "no object"},
		{"too deep", strings.Repeat("[", 60) + strings.Repeat("]", 60), strings.Repeat("[0]", 41), "levels deep"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s sample
			problems := strictyaml.Decode([]byte(tc.text), 1000, &s)
			if len(problems) == 0 || problems[0].Field != tc.wantField || !strings.Contains(problems[0].Detail, tc.wantDetail) {
				t.Fatalf("got %v; want %q with %q", problems, tc.wantField, tc.wantDetail)
			}
		})
	}
}

// Without the blank after its colon a value is a part of the field's name.
func TestNamesThatHoldValues(t *testing.T) {
	const secret = "s3cr3t"
	for _, text := range []string{
		"{token:" + secret + "}", "{map: {a:" + secret + "}}", "'token:" + secret + "': x", "a.b:" + secret + ".c: x", "token " + secret + ": x",
		strings.Repeat("x", 120) + secret + ": x", "{token:" + secret + "}: x", "? [" + secret + "]\n: x", "'a=" + secret + "': on", "'a=" + secret + "': 1\n'a=" + secret + "': 2",
	} {
		var s sample
		problems := strictyaml.Decode([]byte(text), 10_000, &s)
		if len(problems) == 0 || strings.Contains(problems.Error(), secret) {
			t.Errorf("%s: got %v", text, problems)
		}
	}
	var s struct{ User sample }
	if problems := strictyaml.Decode([]byte("User: {'tokn:x': y}"), 1000, &s); len(problems) != 1 || problems[0].Field != "User.(a name that is not shown)" {
		t.Errorf("got %v", problems)
	}
}

// What is accepted must mean the same to the YAML reader that Kubernetes' own
// tools use.
func FuzzSameMeaningAsKubernetes(f *testing.F) {
	for _, seed := range []string{"text: a", "number: 1", "text: 010", "text: on", "map: {a: b}", `{"text":"x"}`, "text: >\n a\n b\n", "text: 'a''b'", "list: [1, a]", "map: {0_X0: 0}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got map[string]any
		if len(strictyaml.Decode(data, 10_000, &got)) > 0 {
			return
		}
		var want map[string]any
		if err := yaml.UnmarshalStrict(data, &want); err != nil {
			return // refused by one of the two is no different meaning
		}
		if asJSON(t, got) != asJSON(t, want) {
			t.Fatalf("read as %v here, as %v by others", got, want)
		}
	})
}
