package controller

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// metrics are the controller's own; controller-runtime adds those of queues,
// clients and the lease.
type metrics struct {
	decisions    *prometheus.CounterVec
	provisioning prometheus.Histogram
	deleted      prometheus.Counter
	reference    *prometheus.GaugeVec
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mooring_decisions_total",
			Help: "Decisions about mirror claims that were news, by verdict (allow, wait, refuse) and reason.",
		}, []string{"verdict", "reason"}),
		provisioning: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "mooring_provisioning_duration_seconds",
			Help:    "Time from a yes of the cache until the mirror volume was created.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14), // 1 ms to 8 s
		}),
		deleted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mooring_volumes_deleted_total",
			Help: "Mirror volume objects deleted because their claim no longer needs them; data is never deleted.",
		}),
		reference: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mooring_cross_namespace_reference",
			Help: "1 for what the cluster does with a dataSourceRef to another namespace: kept, dropped, or unknown.",
		}, []string{"state"}),
	}
	for _, collector := range []prometheus.Collector{m.decisions, m.provisioning, m.deleted, m.reference} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) decided(decision mirror.Decision) {
	m.decisions.WithLabelValues(decision.Verdict.String(), string(decision.Reason)).Inc()
}

func (m *metrics) provisioned(took time.Duration) { m.provisioning.Observe(took.Seconds()) }

// mirrorsCollector counts mirror claims by state from the cache, when scraped.
type mirrorsCollector struct {
	cache client.Reader
	names mooringapi.Names
	desc  *prometheus.Desc
}

func newMirrorsCollector(cache client.Reader, names mooringapi.Names) *mirrorsCollector {
	return &mirrorsCollector{cache: cache, names: names, desc: prometheus.NewDesc("mooring_mirrors",
		"Claims of Mooring's classes, by state (bound, lost, pending, refused).", []string{"state"}, nil)}
}

// Describe implements prometheus.Collector.
func (c *mirrorsCollector) Describe(descs chan<- *prometheus.Desc) { descs <- c.desc }

// Collect implements prometheus.Collector. Where the cache cannot answer yet
// there is no figure, rather than zeroes, or no metrics at all.
func (c *mirrorsCollector) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	counts, err := c.count(ctx)
	if err != nil {
		return
	}
	for state, count := range counts {
		metrics <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(count), state)
	}
}

func (c *mirrorsCollector) count(ctx context.Context) (map[string]int, error) {
	var classes storagev1.StorageClassList
	if err := c.cache.List(ctx, &classes); err != nil {
		return nil, err
	}
	counts := map[string]int{"bound": 0, "lost": 0, "pending": 0, "refused": 0}
	for _, class := range classes.Items {
		if class.Provisioner != c.names.Provisioner() {
			continue
		}
		claims, err := claimsWhere(ctx, c.cache, claimsByClass, class.Name)
		if err != nil {
			return nil, err
		}
		for i := range claims {
			counts[c.state(&claims[i])]++
		}
	}
	return counts, nil
}

func (c *mirrorsCollector) state(claim *corev1.PersistentVolumeClaim) string {
	condition := conditionOf(c.names, claim)
	switch {
	case claim.Status.Phase == corev1.ClaimBound:
		return "bound"
	case claim.Status.Phase == corev1.ClaimLost:
		return "lost"
	case condition != nil && condition.Status == corev1.ConditionFalse && condition.Reason != string(mirror.OriginPending):
		return "refused"
	default:
		return "pending"
	}
}
