package observe_test

import (
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mooring-k8s/mooring/test/chart"
)

// The dashboard can be read: rows in the order in which one asks, every panel with
// a description and a place of its own in it, none that is empty.
func TestDashboardIsWellLaidOut(t *testing.T) {
	b := readBoard(t)
	if b.Title != "Mooring" || b.UID != "mooring" {
		t.Errorf("the dashboard is %q, with the uid %q", b.Title, b.UID)
	}
	var rows []string
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, panel := range b.Panels {
		if ids[panel.ID] {
			t.Errorf("panel %q: its id %d is another one's too", panel.Title, panel.ID)
		}
		ids[panel.ID] = true
		for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
			for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q lies over %q, or beyond the edge", panel.Title, other)
				}
				taken[[2]int{x, y}] = panel.Title
			}
		}
		if panel.Type == "row" {
			rows = append(rows, panel.Title)
			continue
		}
		if panel.Title == "" || panel.Description == "" || len(panel.Targets) == 0 || panel.Datasource.UID != "${datasource}" {
			t.Errorf("panel %q: expected a title, a description, targets, and the data source that is chosen", panel.Title)
		}
	}
	want := []string{"What tenants feel", "Decisions", "Revocation and brake", "Mirror volumes", "Health", "API server"}
	if !slices.Equal(rows, want) {
		t.Errorf("the rows are %q, want %q", rows, want)
	}
}

// What the chart makes for the Prometheus operator is what the operator's own types
// are, field by field.
func TestOperatorObjects(t *testing.T) {
	for _, tc := range []struct {
		name    string
		metrics map[string]any
		into    map[string]any
	}{
		{"through the Service", map[string]any{"service": map[string]any{"create": true},
			"serviceMonitor": map[string]any{"create": true, "interval": "15s", "labels": map[string]any{"release": "prometheus"}},
			"prometheusRule": map[string]any{"create": true, "labels": map[string]any{"release": "prometheus"}, "alertLabels": map[string]any{"team": "storage"}}},
			map[string]any{"ServiceMonitor": &monitoringv1.ServiceMonitor{}, "PrometheusRule": &monitoringv1.PrometheusRule{}}},
		{"through the Pods", map[string]any{"podMonitor": map[string]any{"create": true, "interval": "1m"}},
			map[string]any{"PodMonitor": &monitoringv1.PodMonitor{}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			objects, err := chart.Render(chart.Options{Values: map[string]any{
				"image": map[string]any{"repository": "registry.example.com/mooring"}, "metrics": tc.metrics,
			}})
			noError(t, err, "render the chart")
			for kind, into := range tc.into {
				at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
				if at < 0 {
					t.Errorf("no %s is rendered", kind)
					continue
				}
				if !strings.HasPrefix(objects[at].GetAPIVersion(), "monitoring.coreos.com/v1") {
					t.Errorf("%s is of %s", kind, objects[at].GetAPIVersion())
				}
				noError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(objects[at].Object, into, true), "read the "+kind)
			}
		})
	}
}
