package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// metrics are the controller's own; controller-runtime adds those of queues,
// clients and the lease.
type metrics struct {
	decisions    *prometheus.CounterVec
	provisioning prometheus.Histogram
	deleted      prometheus.Counter
	reference    *prometheus.GaugeVec
	revocations  *prometheus.CounterVec
	ended        prometheus.Counter
	brake        prometheus.Gauge
	drift        *prometheus.CounterVec
	adopted      prometheus.Counter
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
		revocations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mooring_revocations_total",
			Help: "Bound mirrors that lost their grant, by reason.",
		}, []string{"reason"}),
		ended: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mooring_claims_deleted_total",
			Help: "Mirror claims deleted because their grant had ended and their class says so; data is never deleted.",
		}),
		brake: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "mooring_deletions_stopped",
			Help: "1 while no mirror claim is deleted because too many lost their grant at once.",
		}),
		drift: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mooring_drift_total",
			Help: "Edits of mirrors by others: repaired, or of the reference, which is left.",
		}, []string{"kind"}),
		adopted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mooring_volumes_adopted_total",
			Help: "Mirror volumes of another provisioner of this name whose origin was proven and recorded.",
		}),
	}
	for _, collector := range []prometheus.Collector{m.decisions, m.provisioning, m.deleted, m.reference,
		m.revocations, m.ended, m.brake, m.drift, m.adopted} {
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
