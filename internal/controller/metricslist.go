package controller

//go:generate go run ../gen/metrics ../../docs/metrics.md

import (
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric is what a metric of the controller's own is and means: its help text is
// made of it, and docs/metrics.md.
type Metric struct {
	Name string
	Kind Kind
	Help string
	// Labels are what its series are told apart by, in their order.
	Labels []Label
	// Remedy is what to do about it.
	Remedy string
}

// Kind is what Prometheus calls a metric's type.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Label is a label, and what it can be.
type Label struct{ Name, Values string }

// The names of the controller's own metrics.
const (
	nameFirstDecision = "mooring_first_decision_duration_seconds"
	nameProvisioning  = "mooring_provisioning_duration_seconds"
	nameMirrors       = "mooring_mirrors"
	nameRefused       = "mooring_mirrors_refused"
	nameDecisions     = "mooring_decisions_total"
	nameRevocations   = "mooring_revocations_total"
	nameOldest        = "mooring_oldest_revocation_timestamp_seconds"
	nameClaimsDeleted = "mooring_claims_deleted_total"
	nameStopped       = "mooring_deletions_stopped"
	nameOriginsHeld   = "mooring_origins_held"
	nameVolumesGone   = "mooring_volumes_deleted_total"
	nameDrift         = "mooring_drift_total"
	nameReferences    = "mooring_references_drifted"
	nameUnproven      = "mooring_volumes_unproven"
	nameAdopted       = "mooring_volumes_adopted_total"
	nameServed        = "mooring_mirrors_served"
	nameLeading       = "mooring_leading"
	nameReference     = "mooring_cross_namespace_reference"
	nameBuild         = "mooring_build_info"
)

const (
	anyReason   = "one of [reasons.md](reasons.md)"
	instanceIs  = "the instance as records name it, `<namespace>/<release>`"
	seeExplain  = "`mooring explain` says of one claim who can mend it"
	seeRefused  = "`mooring list --all-namespaces --denied`; " + seeExplain
	seeRevoked  = "`mooring list --all-namespaces --revoked`"
	nothingToDo = "nothing; for the dashboard"
)

// Metrics returns all of them, in the order of docs/metrics.md.
func Metrics() []Metric {
	return slices.Concat(tenantMetrics(), revocationMetrics(), volumeMetrics(), healthMetrics())
}

// tenantMetrics are what those feel who ask for mirrors.
func tenantMetrics() []Metric {
	return []Metric{
		{nameFirstDecision, Histogram, "Time from the creation of a mirror claim until its volume was made, or it was first told why there is none. " +
			"Creation times are whole seconds, so that it may be up to one second too long.",
			[]Label{{"verdict", "`allow` (the volume was made), `wait`, `refuse`"}},
			"if it grows, see the queues and the API server's answers on the dashboard; a refusal is held back for up to two seconds, until kube-controller-manager has written to a new claim"},
		{nameProvisioning, Histogram, "Time from a yes of the cache until the mirror volume was created: live reads, the origin's finalizer, the creation.", nil,
			"it is three or four requests: if it grows, the API server is slow"},
		{nameMirrors, Gauge, "Claims of Mooring's classes, by state.",
			[]Label{{"state", "`bound`, `revoked` (bound, and the grant has ended), `lost`, `pending`, `refused`"}},
			"`mooring list --all-namespaces`"},
		{nameRefused, Gauge, "Claims of Mooring's classes that are refused now, by reason.",
			[]Label{{"reason", anyReason + " with the verdict refuse, or `other`"}}, seeRefused},
		{nameDecisions, Counter, "Decisions about mirror claims that were news, by verdict and reason.",
			[]Label{{"verdict", "`allow`, `wait`, `refuse`"}, {"reason", anyReason}}, seeRefused},
	}
}

// revocationMetrics are about grants that end.
func revocationMetrics() []Metric {
	return []Metric{
		{nameRevocations, Counter, "Bound mirrors that lost their grant, by reason.",
			[]Label{{"reason", "`NotShared`, `OriginTerminating`, `GrantReadOnly`, `OriginReplaced`"}}, seeRevoked},
		{nameOldest, Gauge, "Unix time since when that mirror is without a grant which is so for longest; no series where none is.", nil, seeRevoked},
		{nameClaimsDeleted, Counter, "Mirror claims deleted because their grant had ended and their class says so; data is never deleted.", nil, nothingToDo},
		{nameStopped, Gauge, "1 while no mirror claim is deleted because too many lost their grant at once.", nil,
			"[the brake](revocation.md#the-brake)"},
		{nameOriginsHeld, Gauge, "Origin claims that somebody deletes and that are kept because they are mirrored.", nil,
			"`mooring doctor` names them; `mooring access` says who mirrors one"},
	}
}

// volumeMetrics are about mirror volumes and what others do to them.
func volumeMetrics() []Metric {
	return []Metric{
		{nameVolumesGone, Counter, "Mirror volume objects deleted because their claim no longer needs them; data is never deleted.", nil, nothingToDo},
		{nameDrift, Counter, "Edits of mirrors by others.",
			[]Label{{"kind", "`repaired` (of a volume, and put back), `reference` (of what a bound claim names, which is left)"}},
			"find who writes, in the API server's audit log or the objects' managedFields"},
		{nameReferences, Gauge, "Bound mirror claims that name another origin than the one that they mirror.", nil,
			"events `ReferenceDrift`; the claim keeps what it was bound to, and to mirror another origin it is created anew"},
		{nameUnproven, Gauge, "Mirror volumes without a record of which it cannot be proven what they mirror.", nil,
			"events `NotAdopted` and `RecordBroken` of volumes say what is missing; [migrating](migrating-from-crownlabs.md#4-see-that-it-worked)"},
		{nameAdopted, Counter, "Mirror volumes of another provisioner of this name whose origin was proven and recorded.", nil, nothingToDo},
		{nameServed, Gauge, "Mirror volumes, by the instance that looks after them, and whether this instance selects their namespace.",
			[]Label{{"served_by", instanceIs}, {"selected", "`true`, `false`"}},
			"mirrors of an instance that runs no more, in namespaces that no other selects, are looked after by nobody: `mooring doctor`"},
	}
}

// healthMetrics are about the controller itself.
func healthMetrics() []Metric {
	return []Metric{
		{nameLeading, Gauge, "1 on the replica that leads and works, 0 on one that stands by.",
			[]Label{{"served_by", instanceIs}}, "if it is 1 nowhere, `mooring doctor`"},
		{nameReference, Gauge, "1 for what the cluster does with a dataSourceRef to another namespace, as asked at the start.",
			[]Label{{"state", "`kept`, `dropped`, `unknown`"}}, "where it is dropped, mirror claims need the annotation `<name>/origin`"},
		{nameBuild, Gauge, "1, for the version that runs.",
			[]Label{{"version", "as `mooring-controller --version` says it"}, {"goversion", "of the Go that built it"}}, nothingToDo},
	}
}

// metricOf returns what is said of a metric. That it is said of each is a matter
// of this package, and not of who runs it.
func metricOf(name string) Metric {
	all := Metrics()
	at := slices.IndexFunc(all, func(m Metric) bool { return m.Name == name })
	if at < 0 {
		panic(fmt.Sprintf("metric %s is not in the list of metrics", name))
	}
	return all[at]
}

func (m Metric) opts() prometheus.Opts { return prometheus.Opts{Name: m.Name, Help: m.Help} }

func (m Metric) labels() []string {
	var names []string
	for _, label := range m.Labels {
		names = append(names, label.Name)
	}
	return names
}

func newCounter(name string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts(metricOf(name).opts()))
}

func newCounters(name string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts(metricOf(name).opts()), metricOf(name).labels())
}

func newGauge(name string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts(metricOf(name).opts()))
}

func newGauges(name string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts(metricOf(name).opts()), metricOf(name).labels())
}

func newHistograms(name string, buckets []float64) *prometheus.HistogramVec {
	m := metricOf(name)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: buckets}, m.labels())
}

func newDesc(name string) *prometheus.Desc {
	m := metricOf(name)
	return prometheus.NewDesc(m.Name, m.Help, m.labels(), nil)
}
