package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const chartDir = "../../../charts/mooring"

// Every value of the chart is set by a suite, to something else than its default:
// what is a choice, to each of what may be chosen, so that a suite sees what is
// there with it and what is not there without it.
func TestSuitesSetEveryValue(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	values, err := read(string(source))
	if err != nil {
		t.Fatal(err)
	}
	set := setBySuites(t)
	for _, v := range leaves(values) {
		for _, lack := range lacking(t, v, set[v.path]) {
			t.Errorf("no suite of charts/mooring/tests sets %s to %s: assert what it does, and what is not there without it", v.path, lack)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(set)) {
		if !slices.ContainsFunc(leaves(values), func(v value) bool { return v.path == path }) && path != "provisoner" {
			t.Errorf("a suite of charts/mooring/tests sets %s, which is no value of the chart", path)
		}
	}
}

// The test's own rules, without which it could be green for any suite.
func TestLacking(t *testing.T) {
	values, err := read("# A.\na: true\n# B.\n# @schema enum: [x, y]\nb: x\n# C.\nc: 1\n# D.\n# @schema items: {type: string}\nd: []\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path string
		set  []any
		want []string
	}{
		{"a", nil, []string{"true", "false"}},
		{"a", []any{true}, []string{"false"}},
		{"a", []any{true, false}, nil},
		{"b", []any{"x"}, []string{"y"}},
		{"b", []any{"x", "y"}, nil},
		{"c", []any{1}, []string{"something else than its default"}},
		{"c", []any{2}, nil},
		{"d", []any{[]any{}}, []string{"something else than its default"}},
		{"d", []any{[]any{"x"}}, nil},
	} {
		at := slices.IndexFunc(values, func(v value) bool { return v.path == tc.path })
		if got := lacking(t, values[at], tc.set); !slices.Equal(got, tc.want) {
			t.Errorf("%s set to %v lacks %q, want %q", tc.path, tc.set, got, tc.want)
		}
	}
}

// lacking returns what no suite sets a value to.
func lacking(t *testing.T, v value, set []any) []string {
	t.Helper()
	choices, _ := v.rules["enum"].([]any)
	if v.node.Tag == "!!bool" {
		choices = []any{true, false}
	}
	var lacks []string
	for _, choice := range choices {
		if !slices.Contains(set, choice) {
			lacks = append(lacks, fmt.Sprint(choice))
		}
	}
	if choices != nil {
		return lacks
	}
	var byDefault any
	if err := v.node.Decode(&byDefault); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(set, func(one any) bool { return !reflect.DeepEqual(one, byDefault) }) {
		lacks = append(lacks, "something else than its default")
	}
	return lacks
}

func leaves(values []value) []value {
	var all []value
	for _, v := range values {
		if v.children == nil {
			all = append(all, v)
		}
		all = append(all, leaves(v.children)...)
	}
	return all
}

// setBySuites returns what the suites set values to, by path.
func setBySuites(t *testing.T) map[string][]any {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chartDir, "tests", "*_test.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d suites in %s/tests: %v", len(files), chartDir, err)
	}
	source, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	values, err := read(string(source))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]any{}
	for _, file := range files {
		for _, suite := range suitesOf(t, file) {
			for _, set := range append([]map[string]any{suite.Set}, suite.sets()...) {
				for path, to := range set {
					spread(all, values, path, to)
				}
			}
		}
	}
	return all
}

// suite is what the test reads of a helm-unittest suite.
type suite struct {
	Set   map[string]any
	Tests []struct{ Set map[string]any }
}

func (s suite) sets() []map[string]any {
	var all []map[string]any
	for _, test := range s.Tests {
		all = append(all, test.Set)
	}
	return all
}

func suitesOf(t *testing.T, file string) []suite {
	t.Helper()
	source, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	var all []suite
	for documents := yaml.NewDecoder(source); ; {
		var one suite
		err := documents.Decode(&one)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		t.Fatalf("%s holds no suite", file)
	}
	return all
}

// spread notes what a path is set to: a group as each value within.
func spread(all map[string][]any, values []value, path string, to any) {
	at := slices.IndexFunc(values, func(v value) bool { return v.path == path || strings.HasPrefix(path, v.path+".") })
	group, isMap := to.(map[string]any)
	switch {
	case at >= 0 && values[at].children != nil && values[at].path != path:
		spread(all, values[at].children, path, to)
	case at >= 0 && values[at].children != nil && isMap:
		for name, inner := range group {
			spread(all, values[at].children, path+"."+name, inner)
		}
	case at >= 0:
		all[values[at].path] = append(all[values[at].path], to)
	default:
		all[path] = append(all[path], to)
	}
}
