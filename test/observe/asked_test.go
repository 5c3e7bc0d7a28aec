package observe_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"

	"github.com/mooring-k8s/mooring/internal/controller"
)

// ofTarget are labels that Prometheus gives to what it scrapes.
var ofTarget = []string{"namespace", "job", "instance", "pod"}

// question is one expression of PromQL, and who asks it.
type question struct {
	where, expr string
	// shown are the labels that the answer's legend or text shows.
	shown []string
}

// isIn reports what an expression names and a scrape has not.
func (q question) isIn(t *testing.T, s scrape) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(q.expr)
	if err != nil {
		t.Errorf("%s: %s: %v", q.where, q.expr, err)
		return
	}
	known := slices.Clone(ofTarget)
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			known = append(known, q.selects(t, s, selector)...)
		}
		return nil
	})
	named := q.shown
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.AggregateExpr:
			named = append(named, node.Grouping...)
		case *parser.BinaryExpr:
			if node.VectorMatching != nil {
				named = append(named, node.VectorMatching.MatchingLabels...)
			}
		}
		return nil
	})
	for _, name := range named {
		if !slices.Contains(known, name) {
			t.Errorf("%s: names the label %s, which none of its metrics has: %s", q.where, name, q.expr)
		}
	}
}

// selects looks at one selector, and returns the labels of its metric.
func (q question) selects(t *testing.T, s scrape, selector *parser.VectorSelector) []string {
	t.Helper()
	series, found := s.series[selector.Name]
	if !found {
		t.Errorf("%s: asks for %s, which is not scraped", q.where, selector.Name)
		return nil
	}
	var known []string
	for label := range series {
		known = append(known, label)
	}
	for _, matcher := range selector.LabelMatchers {
		switch {
		case matcher.Name == model.MetricNameLabel, slices.Contains(ofTarget, matcher.Name):
		case series[matcher.Name] == nil:
			t.Errorf("%s: asks %s for the label %s, which it does not have", q.where, selector.Name, matcher.Name)
		case matcher.Type == labels.MatchEqual && !series[matcher.Name][matcher.Value] && !canBe(selector.Name, matcher):
			t.Errorf("%s: asks %s for %s, which is neither scraped nor documented", q.where, selector.Name, matcher)
		}
	}
	return known
}

// canBe reports whether the documentation names a label's value, or who knows what
// it can be is not Mooring.
func canBe(metric string, matcher *labels.Matcher) bool {
	for _, m := range controller.Metrics() {
		if m.Name != metric {
			continue
		}
		return slices.ContainsFunc(m.Labels, func(label controller.Label) bool {
			return label.Name == matcher.Name && strings.Contains(label.Values, "`"+matcher.Value+"`")
		})
	}
	return true
}

var (
	inLegend = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)
	inText   = regexp.MustCompile(`\$labels\.(\w+)`)
)

func matches(pattern *regexp.Regexp, text string) []string {
	var all []string
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all
}

// alerts are the questions of the chart's rules.
func alerts(t *testing.T) []question {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	noError(t, yaml.Unmarshal(readFile(t, "alerts/alerts.yaml"), &file), "read the rules")
	var all []question
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			all = append(all, question{"alert " + rule.Alert, rule.Expr, matches(inText, rule.Annotations["description"])})
		}
	}
	if len(all) < 9 {
		t.Fatalf("found %d alerts", len(all))
	}
	return all
}

// panel is what the tests read of a dashboard's panel.
type panel struct {
	ID          int
	Type, Title string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Datasource  struct{ UID string }
	Targets     []struct{ Expr, LegendFormat string }
}

type board struct {
	Title, UID string
	Panels     []panel
	Templating struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
}

func readBoard(t *testing.T) board {
	t.Helper()
	var b board
	noError(t, json.Unmarshal(readFile(t, "dashboards/mooring.json"), &b), "read the dashboard")
	return b
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "charts", "mooring", path))
	noError(t, err, "read "+path)
	return data
}

// dashboard are the questions of the panels and variables, with what Grafana puts in
// place of its own variables.
func dashboard(t *testing.T) []question {
	t.Helper()
	replaced := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$namespace", ".*", "$job", ".*")
	b, all := readBoard(t), []question(nil)
	for _, panel := range b.Panels {
		for _, target := range panel.Targets {
			all = append(all, question{"panel " + panel.Title, replaced.Replace(target.Expr), matches(inLegend, target.LegendFormat)})
		}
	}
	for _, variable := range b.Templating.List {
		query, ok := variable.Query.(map[string]any)
		if !ok {
			continue
		}
		text, _ := query["query"].(string)
		inner, isValues := strings.CutPrefix(text, "label_values(")
		at := strings.LastIndex(inner, ",")
		if !isValues || at < 0 {
			t.Errorf("variable %s: expected label_values(metric, label), got %q", variable.Name, text)
			continue
		}
		label := strings.TrimSpace(strings.TrimSuffix(inner[at+1:], ")"))
		all = append(all, question{"variable " + variable.Name, replaced.Replace(inner[:at]), []string{label}})
	}
	if len(all) < 20 {
		t.Fatalf("found %d questions in the dashboard", len(all))
	}
	return all
}
