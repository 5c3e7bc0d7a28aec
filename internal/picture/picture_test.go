package picture_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mooring-k8s/mooring/internal/layered"
	"github.com/mooring-k8s/mooring/internal/picture"
)

var (
	update = flag.Bool("update", false, "write the golden files anew")
	keep   = flag.String("keep", "", "a directory for the pictures that the tests draw, which are then laid out as users get them")
)

// example is the graph of docs/map.svg.
func example() picture.Graph {
	var g picture.Graph
	add := func(origin, namespace, name, access, state, reason string) {
		g.Add(origin, picture.Mirror{Namespace: namespace, Name: name, Access: access, State: state, Reason: reason})
	}
	add("storage/datasets", "team-red", "datasets", "ReadOnly", "Bound", "")
	add("storage/datasets", "team-blue", "datasets", "ReadOnly", "Bound", "")
	add("storage/datasets", "guests", "datasets", "ReadWrite", "Refused", "NotShared")
	add("storage/projects", "team-red", "projects", "ReadWrite", "Bound", "")
	add("storage/projects", "team-blue", "projects", "ReadWrite", "Revoked", "GrantReadOnly")
	add("courses/intro", "students", "intro", "ReadOnly", "Bound", "")
	add("courses/solutions", "students", "solutions", "ReadOnly", "Waiting", "OriginPending")
	return g
}

// tenants is n mirrors as a university has them: shared volumes that most
// tenants mirror, a few of one's own, some refused.
func tenants(n int) picture.Graph {
	var g picture.Graph
	for i := range n {
		origin, access, state, reason := "storage/datasets", "ReadOnly", "Bound", ""
		switch {
		case i%7 == 3:
			origin, access = fmt.Sprintf("course-%02d/material", i%5), "ReadWrite"
		case i%31 == 5:
			state, reason = "Refused", "NotShared"
		case i%50 == 9:
			state, reason = "Revoked", "NotShared"
		}
		g.Add(origin, picture.Mirror{Namespace: fmt.Sprintf("tenant-%03d", i*3/4), Name: fmt.Sprintf("data-%d", i), Access: access, State: state, Reason: reason})
	}
	return g
}

// tangle is n mirrors that have little in common.
func tangle(n int) picture.Graph {
	var g picture.Graph
	for i := range n {
		access, state := "ReadWrite", "Bound"
		if i%3 == 0 {
			access = "ReadOnly"
		}
		if i%11 == 0 {
			state = "Refused"
		}
		g.Add(fmt.Sprintf("owner-%d/volume-%d", i*7%10, i*13%40), picture.Mirror{Namespace: fmt.Sprintf("team-%02d", i*17%50), Name: fmt.Sprintf("m-%d", i), Access: access, State: state})
	}
	return g
}

// hostile has names that would break out of every language.
func hostile() picture.Graph {
	var g picture.Graph
	for _, name := range []string{
		`"]; evil [label="`, `</text><script>alert(1)</script>`, "a\nb\\", `\N\G\`, "%%{init: {}}%%", "`**bold**`", `#quot;&quot;&lt;`,
		"\x00\x1b[31m\xff", `"/><image href="x"/>`, "end", "--> x", strings.Repeat("long-", 60),
	} {
		g.Add("storage/"+name, picture.Mirror{Namespace: name, Name: name, Access: name, State: name, Reason: name})
	}
	return g
}

// strangers is n mirrors each of which has its own owner and its own tenant.
func strangers(n int) picture.Graph {
	var g picture.Graph
	for i := range n {
		g.Add(fmt.Sprintf("owner-%d/data", i), picture.Mirror{Namespace: fmt.Sprintf("tenant-%d", i), Name: "data", Access: "ReadWrite", State: "Bound"})
	}
	return g
}

func graphs() map[string]picture.Graph {
	return map[string]picture.Graph{
		"none": {}, "1": tenants(1), "12": tenants(12), "80": tenants(80), "500": tenants(500), "80-tangled": tangle(80), "500-tangled": tangle(500), "500-strangers": strangers(500),
		"example": example(), "hostile": hostile(),
	}
}

// stacked is a layout that puts boxes below each other: what the drawing makes
// of it is the same, and quick.
func stacked(layers picture.Layers) (picture.Places, error) {
	return picture.Places{Left: make([]float64, len(layers.Left)), Right: make([]float64, len(layers.Right))}, nil
}

func drawn(t *testing.T, graph picture.Graph, layout picture.Layered) string {
	t.Helper()
	svg, err := picture.SVG(graph, layout)
	if err != nil {
		t.Fatal(err)
	}
	return svg
}

// Golden files: what the fixed graph is drawn as, in each language.
func TestExample(t *testing.T) {
	for file, got := range map[string]string{
		"../../docs/map.svg":   drawn(t, example(), layered.By(t.Context())),
		"testdata/example.dot": picture.DOT(example()),
		"testdata/example.mmd": picture.Mermaid(example()),
	} {
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is stale: go test ./internal/picture -update\n%s", file, got)
		}
	}
}

// Every picture is well-formed, has the elements of a drawing only, and takes no
// more room than a person scrolls.
func TestSVG(t *testing.T) {
	for name, graph := range graphs() {
		layout := picture.Layered(stacked)
		if *keep != "" {
			layout = layered.By(t.Context())
		}
		began := time.Now()
		svg := drawn(t, graph, layout)
		t.Logf("%s: %d bytes in %v", name, len(svg), time.Since(began).Round(time.Microsecond))
		if *keep != "" {
			if err := os.WriteFile(filepath.Join(*keep, name+".svg"), []byte(svg), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		height := 0.0
		decoder := xml.NewDecoder(strings.NewReader(svg))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, svg)
			}
			start, is := token.(xml.StartElement)
			if !is {
				continue
			}
			if !strings.Contains(" svg title desc rect text path ", " "+start.Name.Local+" ") {
				t.Errorf("%s: an element %s", name, start.Name.Local)
			}
			for _, attribute := range start.Attr {
				if start.Name.Local == "svg" && attribute.Name.Local == "height" {
					if _, err := fmt.Sscan(attribute.Value, &height); err != nil {
						t.Error(err)
					}
				}
				if strings.HasPrefix(attribute.Name.Local, "on") || attribute.Name.Local == "href" {
					t.Errorf("%s: an attribute %s", name, attribute.Name.Local)
				}
			}
		}
		if height > 5000 {
			t.Errorf("%s: %v pixels high", name, height)
		}
	}
}

// No name leaves its quotes: every line of the languages has one of the forms
// that this package writes.
func TestTextIsEscaped(t *testing.T) {
	for name, graph := range graphs() {
		for _, line := range strings.Split(picture.Mermaid(graph), "\n") {
			quotes := strings.Count(line, `"`)
			inside := line
			if quotes == 2 {
				inside = line[:strings.Index(line, `"`)] + line[strings.LastIndex(line, `"`)+1:]
			}
			if quotes != 0 && quotes != 2 || strings.ContainsAny(inside, "<%`") || strings.ContainsAny(line, "%`&\\") {
				t.Errorf("%s: Mermaid: %s", name, line)
			}
		}
		for _, line := range strings.Split(picture.DOT(graph), "\n") {
			bare := strings.NewReplacer(`\\`, "", `\"`, "", `\n`, "").Replace(line)
			if strings.Count(bare, `"`)%2 != 0 || strings.Contains(bare, `\`) || strings.Contains(bare, "script") && !strings.Contains(bare, `"`) {
				t.Errorf("%s: DOT: %s", name, line)
			}
		}
	}
}

// Names stay what they are in JSON and complete in the graph.
func TestGraphIsSorted(t *testing.T) {
	graph := example()
	var names []string
	for _, origin := range graph.Origins {
		names = append(names, origin.Namespace+"/"+origin.Name)
	}
	if got := strings.Join(names, " "); got != "courses/intro courses/solutions storage/datasets storage/projects" {
		t.Errorf("got %s", got)
	}
	if got := graph.Origins[2].Mirrors; len(got) != 3 || got[0].Namespace != "guests" || got[2].Namespace != "team-red" {
		t.Errorf("got %v", got)
	}
}
