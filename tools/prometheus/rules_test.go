package rules_test

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	rulesFile = "../../charts/mooring/alerts/alerts.yaml"
	page      = "../../docs/alerts.md"
	operating = "../../docs/operating.md"
	runbook   = "https://github.com/mooring-k8s/mooring/blob/main/docs/alerts.md"
)

type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	decode(t, rulesFile, &file)
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

func decode(t *testing.T, path string, into any) {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(read(t, path))))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func namesOf(all []rule) []string {
	var names []string
	for _, one := range all {
		names = append(names, one.Alert)
	}
	return names
}

// Each alert says what is wrong, what that means, and where that is explained; and
// it narrows what it asks for to a namespace, by the text that the chart replaces.
func TestAlertsAreComplete(t *testing.T) {
	for _, one := range rules(t) {
		if !strings.HasPrefix(one.Alert, "Mooring") || one.For == "" || one.Annotations["summary"] == "" || one.Annotations["description"] == "" {
			t.Errorf("%s: expected a name that begins with Mooring, how long, a summary and a description", one.Alert)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, one.Labels["severity"]) {
			t.Errorf("%s: its severity is %q", one.Alert, one.Labels["severity"])
		}
		if want := runbook + "#" + strings.ToLower(one.Alert); one.Annotations["runbook_url"] != want {
			t.Errorf("%s: links to %s, want %s", one.Alert, one.Annotations["runbook_url"], want)
		}
		if !strings.Contains(one.Expr, `{namespace=~".*"`) {
			t.Errorf(`%s: asks for no namespace=~".*", which the chart replaces by the release's`, one.Alert)
		}
	}
}

// The page has a section for each alert, in the same order, and no other; each says
// what it means, how to look and how to mend it; and the table says how severe it is.
func TestEachAlertHasItsSection(t *testing.T) {
	text, all := read(t, page), rules(t)
	var sections []string
	for _, match := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(text, -1) {
		sections = append(sections, match[1])
	}
	if want := namesOf(all); !slices.Equal(sections, want) {
		t.Fatalf("the sections are %q, the alerts %q", sections, want)
	}
	for i, one := range all {
		_, section, _ := strings.Cut(text, "\n## "+one.Alert+"\n")
		if i+1 < len(all) {
			section, _, _ = strings.Cut(section, "\n## ")
		}
		for _, part := range []string{"**It means**", "**Look**", "**Mend it**", "```sh\n"} {
			if !strings.Contains(section, part) {
				t.Errorf("%s: its section has no %q", one.Alert, part)
			}
		}
		if row := "| [" + one.Alert + "](#" + strings.ToLower(one.Alert) + ") | " + one.Labels["severity"] + " | "; strings.Count(text, row) != 1 {
			t.Errorf("%s: the table has no row %q", one.Alert, row)
		}
		if link := "](alerts.md#" + strings.ToLower(one.Alert) + ")"; !strings.Contains(read(t, operating), link) {
			t.Errorf("%s: docs/operating.md does not link to its section", one.Alert)
		}
	}
}

// promtool runs alerts_test.yaml; this sees that it asks of each alert that it fires,
// and, in another case, that it does not.
func TestEachAlertFiresAndDoesNot(t *testing.T) {
	var file struct {
		Files    []string `yaml:"rule_files"`
		Interval string   `yaml:"evaluation_interval"`
		Tests    []struct {
			Name, Interval string
			Series         []map[string]string `yaml:"input_series"`
			Checks         []struct {
				Time   string           `yaml:"eval_time"`
				Name   string           `yaml:"alertname"`
				Alerts []map[string]any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	decode(t, "alerts_test.yaml", &file)
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		firesHere := map[string]bool{}
		for _, check := range test.Checks {
			firesHere[check.Name] = firesHere[check.Name] || len(check.Alerts) > 0
		}
		for name, yes := range firesHere {
			fires[name], quiet[name] = fires[name] || yes, quiet[name] || !yes
		}
	}
	for _, name := range namesOf(rules(t)) {
		if !fires[name] || !quiet[name] {
			t.Errorf("%s: alerts_test.yaml has a case in which it fires: %t, and one in which it does not: %t", name, fires[name], quiet[name])
		}
	}
}
