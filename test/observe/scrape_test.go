package observe_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/mooring-k8s/mooring/internal/controller"
)

// scrape is what a replica says, by the names that PromQL knows the series by: of
// each, its labels and their values.
type scrape struct {
	series   map[string]map[string]map[string]bool
	families map[string]*dto.MetricFamily
}

func (w *world) scrape(ctx context.Context, of replica) (scrape, error) {
	text, err := fetch(ctx, of.url)
	if err != nil {
		return scrape{}, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return scrape{}, err
	}
	s := scrape{map[string]map[string]map[string]bool{}, families}
	for name, family := range families {
		for _, suffix := range suffixes(family) {
			s.add(name+suffix, family, suffix == "_bucket")
		}
	}
	return s, nil
}

// suffixes are what the series of a family are called besides its name.
func suffixes(family *dto.MetricFamily) []string {
	if family.GetType() == dto.MetricType_HISTOGRAM {
		return []string{"_bucket", "_count", "_sum"}
	}
	return []string{""}
}

func (s scrape) add(name string, family *dto.MetricFamily, isBucket bool) {
	labels := map[string]map[string]bool{}
	if isBucket {
		labels["le"] = map[string]bool{}
	}
	for _, metric := range family.GetMetric() {
		for _, pair := range metric.GetLabel() {
			if labels[pair.GetName()] == nil {
				labels[pair.GetName()] = map[string]bool{}
			}
			labels[pair.GetName()][pair.GetValue()] = true
		}
	}
	s.series[name] = labels
}

// value returns the sum of a metric's series that have these label values.
func (s scrape) value(name string, labels map[string]string) float64 {
	sum := 0.0
	for _, metric := range s.families[name].GetMetric() {
		matches := 0
		for _, pair := range metric.GetLabel() {
			if labels[pair.GetName()] == pair.GetValue() {
				matches++
			}
		}
		if matches == len(labels) {
			sum += metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

// counted is what the load is to have moved.
var counted = []struct {
	metric string
	labels map[string]string
	least  float64
}{
	{"mooring_leading", map[string]string{"served_by": "mooring-system/mooring"}, 1},
	{"mooring_build_info", nil, 1},
	{"mooring_mirrors", map[string]string{"state": "bound"}, tenants*mirrorsEach + 1},
	{"mooring_mirrors", map[string]string{"state": "revoked"}, 2}, // of the grant that ended, and of the origin that is deleted
	{"mooring_mirrors", map[string]string{"state": "refused"}, 1},
	{"mooring_mirrors_refused", map[string]string{"reason": "NotShared"}, 1},
	{"mooring_decisions_total", map[string]string{"verdict": "allow", "reason": "Mirrored"}, tenants*mirrorsEach + 4},
	{"mooring_decisions_total", map[string]string{"verdict": "refuse", "reason": "NotShared"}, 1},
	{"mooring_first_decision_duration_seconds", map[string]string{"verdict": "allow"}, tenants*mirrorsEach + 4},
	{"mooring_first_decision_duration_seconds", map[string]string{"verdict": "refuse"}, 1},
	{"mooring_provisioning_duration_seconds", nil, tenants*mirrorsEach + 4},
	{"mooring_revocations_total", nil, 2},
	{"mooring_oldest_revocation_timestamp_seconds", nil, 1},
	{"mooring_origins_held", nil, 1},
	{"mooring_volumes_deleted_total", nil, 1},
	{"mooring_volumes_unproven", nil, 1},
	{"mooring_drift_total", map[string]string{"kind": "repaired"}, 1},
	{"mooring_drift_total", map[string]string{"kind": "reference"}, 1},
	{"mooring_references_drifted", nil, 1},
	{"mooring_mirrors_served", map[string]string{"served_by": "mooring-system/mooring", "selected": "true"}, tenants * mirrorsEach},
	{"mooring_cross_namespace_reference", map[string]string{"state": "kept"}, 1},
}

// Every metric and label that the alerts and the dashboard name is in a scrape of a
// controller under load, and so is every metric of the documentation, and no other
// one of Mooring's.
func TestAskedForIsScraped(t *testing.T) {
	w := newWorld(t, 2)
	w.load()
	var leader, standby scrape
	w.until("the load is counted", func(ctx context.Context) string {
		for _, replica := range w.replicas {
			s, err := w.scrape(ctx, replica)
			if err != nil {
				return err.Error()
			}
			if s.value("mooring_leading", nil) == 1 {
				leader = s
			} else {
				standby = s
			}
		}
		for _, want := range counted {
			if got := leader.value(want.metric, want.labels); got < want.least {
				return fmt.Sprintf("%s%v is %v, want %v", want.metric, want.labels, got, want.least)
			}
		}
		return ""
	})
	for name, got := range map[string]float64{
		"mooring_mirrors": standby.value("mooring_mirrors", map[string]string{"state": "bound"}), "mooring_origins_held": standby.value("mooring_origins_held", nil),
	} {
		if got == 0 {
			t.Errorf("who stands by does not say %s, and docs/metrics.md says so", name)
		}
	}
	isDocumented(t, leader)
	for _, asked := range append(alerts(t), dashboard(t)...) {
		asked.isIn(t, leader)
	}
}

// isDocumented compares a scrape with the list that docs/metrics.md is made of.
func isDocumented(t *testing.T, s scrape) {
	t.Helper()
	documented := map[string]controller.Metric{}
	for _, metric := range controller.Metrics() {
		documented[metric.Name] = metric
		family := s.families[metric.Name]
		if family == nil {
			t.Errorf("%s is documented and not scraped", metric.Name)
			continue
		}
		if got := strings.ToLower(family.GetType().String()); got != string(metric.Kind) {
			t.Errorf("%s is a %s, the documentation says %s", metric.Name, got, metric.Kind)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.families)) {
		if _, known := documented[name]; strings.HasPrefix(name, "mooring_") && !known {
			t.Errorf("%s is scraped and not documented", name)
		}
	}
}
