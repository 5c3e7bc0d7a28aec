package controller

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
	"github.com/mooring-k8s/mooring/pkg/mooringapi"
)

// mirrorsCollector counts mirror claims by state from the cache, when scraped.
type mirrorsCollector struct {
	cache    client.Reader
	options  Options
	names    mooringapi.Names
	desc     *prometheus.Desc
	served   *prometheus.Desc
	without  *prometheus.Desc
	unproven *nameSet
}

func newMirrorsCollector(cache client.Reader, options Options, unproven *nameSet) *mirrorsCollector {
	return &mirrorsCollector{cache: cache, options: options, names: options.Names, unproven: unproven,
		desc: prometheus.NewDesc("mooring_mirrors",
			"Claims of Mooring's classes, by state (bound, revoked, lost, pending, refused).", []string{"state"}, nil),
		served: prometheus.NewDesc("mooring_mirrors_served",
			"Mirror volumes by the instance that looks after them, and whether this instance selects their namespace.", []string{"instance", "selected"}, nil),
		without: prometheus.NewDesc("mooring_volumes_unproven",
			"Volumes of another provisioner of this name of which it cannot be proven what they mirror.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *mirrorsCollector) Describe(descs chan<- *prometheus.Desc) {
	descs <- c.desc
	descs <- c.served
	descs <- c.without
}

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
	metrics <- prometheus.MustNewConstMetric(c.without, prometheus.GaugeValue, float64(c.unproven.size()))
	served, err := c.countServed(ctx)
	if err != nil {
		return
	}
	for by, count := range served {
		metrics <- prometheus.MustNewConstMetric(c.served, prometheus.GaugeValue, float64(count), by.instance, strconv.FormatBool(by.selected))
	}
}

// servedBy is who looks after a mirror, and whether its namespace is this
// instance's to serve. Mirrors of an instance that runs no more, in namespaces
// that nobody else selects, are looked after by nobody.
type servedBy struct {
	instance string
	selected bool
}

func (c *mirrorsCollector) countServed(ctx context.Context) (map[servedBy]int, error) {
	volumes, err := volumesWhere(ctx, c.cache, volumesThatAre, mirrors)
	if err != nil {
		return nil, err
	}
	counts := map[servedBy]int{}
	for i := range volumes {
		record := mirror.RecordOf(c.names, &volumes[i])
		labels, err := reader{c.cache}.namespaceLabels(ctx, record.Claim.Namespace)
		if err != nil {
			return nil, err
		}
		counts[servedBy{record.ServedBy, serves(c.options, labels)}]++
	}
	return counts, nil
}

func (c *mirrorsCollector) count(ctx context.Context) (map[string]int, error) {
	var classes storagev1.StorageClassList
	if err := c.cache.List(ctx, &classes); err != nil {
		return nil, err
	}
	counts := map[string]int{"bound": 0, "revoked": 0, "lost": 0, "pending": 0, "refused": 0}
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
	isFalse := condition != nil && condition.Status == corev1.ConditionFalse
	switch {
	case claim.Status.Phase == corev1.ClaimBound && isFalse && mirror.EndsGrant(mirror.Reason(condition.Reason)):
		return "revoked"
	case claim.Status.Phase == corev1.ClaimBound:
		return "bound"
	case claim.Status.Phase == corev1.ClaimLost:
		return "lost"
	case isFalse && condition.Reason != string(mirror.OriginPending):
		return "refused"
	default:
		return "pending"
	}
}
