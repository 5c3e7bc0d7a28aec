package controller

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// scraped returns all metrics of a controller in a cluster that has each thing
// that is counted, by name.
func scraped(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewRegistry()
	options := Options{Names: names, Instance: "mooring-system/mooring", Version: "v1", Metrics: registry}
	m, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	m.reference.WithLabelValues(referenceKept).Set(1)
	unproven := &nameSet{}
	unproven.add("pv")
	if err := registry.Register(newMirrorsCollector(populated(t), options, unproven)); err != nil {
		t.Fatal(err)
	}
	elected := make(chan struct{})
	if err := registerIdentity(options, elected); err != nil {
		t.Fatal(err)
	}
	close(elected)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]*dto.MetricFamily{}
	for _, family := range families {
		by[family.GetName()] = family
	}
	return by
}

// populated returns a cluster with mirrors 1 to 6 of one origin, which is being
// deleted: 1 is as it should be, 2 and 3 have lost their grant (3 first), 4 names
// another origin than it mirrors, 5 and 6 are refused, 6 for no reason of the list,
// and have no volume.
func populated(t *testing.T) client.Client {
	t.Helper()
	origin, volume := shared()
	origin.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "pvc-mirror"}, Provisioner: names.Provisioner()}
	objects := []client.Object{origin, volume, class}
	for i := range 6 {
		claim, pv := mirrorOf(i+1, origin, volume)
		claim.Spec.StorageClassName = ptr.To(class.Name)
		pv.Annotations[names.ServedBy()] = "mooring-system/mooring"
		switch i + 1 {
		case 2, 3:
			claim.Status.Conditions = saying{corev1.ConditionFalse, string(mirror.NotShared), ""}.conditions()
			pv.Annotations[names.RevokedAt()] = time.Unix(int64(5000-1000*(i+1)), 0).UTC().Format(time.RFC3339Nano)
		case 4:
			claim.Annotations[names.Origin()] = "drives/another"
			pv.Annotations[names.ServedBy()] = "gone/mooring"
		case 5:
			claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending, Conditions: saying{corev1.ConditionFalse, string(mirror.TooLarge), ""}.conditions()}
		case 6:
			claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending, Conditions: saying{corev1.ConditionFalse, "Invented", ""}.conditions()}
		}
		if objects = append(objects, claim); i < 4 {
			objects = append(objects, pv)
		}
	}
	return cluster(t, objects...)
}

func (s saying) conditions() []corev1.PersistentVolumeClaimCondition {
	return []corev1.PersistentVolumeClaimCondition{{
		Type: corev1.PersistentVolumeClaimConditionType(names.Condition()), Status: s.status, Reason: s.reason, Message: s.message,
	}}
}

// Every metric is what the list, and so the documentation, says of it, and there
// is none besides.
func TestMetricsAreWhatTheListSays(t *testing.T) {
	families, listed := scraped(t), map[string]bool{}
	for _, m := range Metrics() {
		if listed[m.Name] {
			t.Errorf("%s stands twice in the list", m.Name)
		}
		listed[m.Name] = true
		family := families[m.Name]
		if family == nil {
			t.Errorf("%s is in the list and not scraped", m.Name)
			continue
		}
		if got := strings.ToLower(family.GetType().String()); got != string(m.Kind) || family.GetHelp() != m.Help {
			t.Errorf("%s is a %s with the help %q, the list says %s and %q", m.Name, got, family.GetHelp(), m.Kind, m.Help)
		}
		want := m.labels()
		slices.Sort(want)
		for _, one := range family.GetMetric() {
			var got []string
			for _, label := range one.GetLabel() {
				got = append(got, label.GetName())
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s has the labels %q, the list says %q", m.Name, got, want)
			}
		}
		if m.Help == "" || m.Remedy == "" {
			t.Errorf("%s: neither help nor remedy may be missing", m.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if !listed[name] {
			t.Errorf("%s is scraped and not in the list", name)
		}
	}
}

// A target's own labels would be taken from a metric that has one of these: with
// them, Prometheus says where it was scraped.
var targetLabels = []string{"job", "instance", "namespace", "pod", "service", "container", "endpoint", "node"}

func TestMetricsKeepToConventions(t *testing.T) {
	families := slices.Collect(maps.Values(scraped(t)))
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
	for _, m := range Metrics() {
		for _, label := range m.labels() {
			if slices.Contains(targetLabels, label) {
				t.Errorf("%s: Prometheus would rename the label %s to exported_%s", m.Name, label, label)
			}
		}
	}
}

// values returns the samples of a metric by the values of its labels.
func values(family *dto.MetricFamily) map[string]float64 {
	by := map[string]float64{}
	for _, one := range family.GetMetric() {
		var labels []string
		for _, label := range one.GetLabel() {
			labels = append(labels, label.GetValue())
		}
		by[strings.Join(labels, ",")] = one.GetGauge().GetValue() + one.GetCounter().GetValue()
	}
	return by
}

func TestMetricsCount(t *testing.T) {
	families := scraped(t)
	for name, want := range map[string]map[string]float64{
		nameMirrors:     {"bound": 2, "revoked": 2, "refused": 2, "pending": 0, "lost": 0},
		nameOldest:      {"": 2000},
		nameOriginsHeld: {"": 1},
		nameReferences:  {"": 1},
		nameUnproven:    {"": 1},
		nameLeading:     {"mooring-system/mooring": 1},
		nameServed:      {"true,mooring-system/mooring": 3, "true,gone/mooring": 1},
		nameDrift:       {"repaired": 0, "reference": 0},
		nameRevocations: {"NotShared": 0, "OriginTerminating": 0, "GrantReadOnly": 0, "OriginReplaced": 0},
	} {
		if got := values(families[name]); !maps.Equal(got, want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	refused := values(families[nameRefused])
	if refused[string(mirror.TooLarge)] != 1 || refused[otherReason] != 1 || len(refused) != len(refusals()) || len(refused) < 30 {
		t.Errorf("%s is %v", nameRefused, refused)
	}
}

// Who stands by says so, and where nothing is revoked there is no time of it.
func TestMetricsOfAStandby(t *testing.T) {
	registry := prometheus.NewRegistry()
	options := Options{Names: names, Instance: "a/b", Metrics: registry}
	if err := registerIdentity(options, make(chan struct{})); err != nil {
		t.Fatal(err)
	}
	if err := registry.Register(newMirrorsCollector(cluster(t), options, &nameSet{})); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if got := values(family); family.GetName() == nameLeading && got["a/b"] != 0 || family.GetName() == nameOldest {
			t.Errorf("%s is %v", family.GetName(), got)
		}
	}
}

// Of the first word alone, and of a claim that is not bound, it is measured how
// long its owner has waited.
func TestFirstDecision(t *testing.T) {
	now := time.Now()
	claim := func(edit func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-4 * time.Second))}}
		edit(claim)
		return claim
	}
	for _, tc := range []struct {
		name  string
		claim *corev1.PersistentVolumeClaim
		want  uint64
	}{
		{"a new claim", claim(func(*corev1.PersistentVolumeClaim) {}), 1},
		{"one that was told something", claim(func(c *corev1.PersistentVolumeClaim) {
			c.Status.Conditions = saying{corev1.ConditionFalse, string(mirror.NotShared), ""}.conditions()
		}), 0},
		{"a bound one", claim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound }), 0},
		{"one whose age is not known", claim(func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = metav1.Time{} }), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			say, _ := heard(t, cluster(t))
			say.mirrored(t.Context(), tc.claim, mirror.Decision{Verdict: mirror.Allow, Reason: mirror.Mirrored})
			var got dto.Metric
			if err := say.metrics.first.WithLabelValues("allow").(prometheus.Histogram).Write(&got); err != nil {
				t.Fatal(err)
			}
			if n := got.GetHistogram().GetSampleCount(); n != tc.want || n == 1 && got.GetHistogram().GetSampleSum() < 4 {
				t.Errorf("%d samples, %v s; want %d of 4 s", n, got.GetHistogram().GetSampleSum(), tc.want)
			}
		})
	}
}
