package controller

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// metrics are the controller's own; controller-runtime adds those of queues,
// clients and the lease. What each means stands in Metrics.
type metrics struct {
	first        *prometheus.HistogramVec
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

// What drift_total counts.
const (
	driftRepaired  = "repaired"
	driftReference = "reference"
)

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	provisioning := metricOf(nameProvisioning)
	m := &metrics{
		// From one second, which is what creation times are exact to, to one hour.
		first:     newHistograms(nameFirstDecision, []float64{1, 2, 3, 5, 10, 30, 60, 300, 900, 3600}),
		decisions: newCounters(nameDecisions),
		provisioning: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: provisioning.Name, Help: provisioning.Help, Buckets: prometheus.ExponentialBuckets(0.001, 2, 14), // 1 ms to 8 s
		}),
		deleted:     newCounter(nameVolumesGone),
		reference:   newGauges(nameReference),
		revocations: newCounters(nameRevocations),
		ended:       newCounter(nameClaimsDeleted),
		brake:       newGauge(nameStopped),
		drift:       newCounters(nameDrift),
		adopted:     newCounter(nameAdopted),
	}
	for _, collector := range []prometheus.Collector{m.first, m.decisions, m.provisioning, m.deleted, m.reference,
		m.revocations, m.ended, m.brake, m.drift, m.adopted} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	m.begin()
	return m, nil
}

// begin lets every counter begin at 0: of one that appears with its first count,
// Prometheus sees no increase.
func (m *metrics) begin() {
	for _, doc := range mirror.Reasons() {
		m.decisions.WithLabelValues(doc.Verdict.String(), string(doc.Reason))
		if mirror.EndsGrant(doc.Reason) {
			m.revocations.WithLabelValues(string(doc.Reason))
		}
	}
	for _, verdict := range []mirror.Verdict{mirror.Allow, mirror.Wait, mirror.Refuse} {
		m.first.WithLabelValues(verdict.String())
	}
	m.drift.WithLabelValues(driftRepaired)
	m.drift.WithLabelValues(driftReference)
}

// decided counts a decision that is told. The first one about a claim says how
// long its owner has waited for an answer.
func (m *metrics) decided(decision mirror.Decision, claim *corev1.PersistentVolumeClaim, isFirst bool, now time.Time) {
	m.decisions.WithLabelValues(decision.Verdict.String(), string(decision.Reason)).Inc()
	if isFirst && !claim.CreationTimestamp.IsZero() {
		m.first.WithLabelValues(decision.Verdict.String()).Observe(max(now.Sub(claim.CreationTimestamp.Time), 0).Seconds())
	}
}

func (m *metrics) provisioned(took time.Duration) { m.provisioning.Observe(took.Seconds()) }

// registerIdentity registers what says which program runs, and whether it leads:
// once the channel is closed it does, until the process ends.
func registerIdentity(options Options, elected <-chan struct{}) error {
	build := newGauges(nameBuild)
	build.WithLabelValues(options.Version, runtime.Version()).Set(1)
	if err := options.Metrics.Register(build); err != nil {
		return err
	}
	leads := metricOf(nameLeading)
	return options.Metrics.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: leads.Name, Help: leads.Help, ConstLabels: prometheus.Labels{leads.Labels[0].Name: options.Instance},
	}, func() float64 {
		select {
		case <-elected:
			return 1
		default:
			return 0
		}
	}))
}
