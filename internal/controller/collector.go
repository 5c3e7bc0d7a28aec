package controller

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-k8s/mooring/internal/mirror"
)

// mirrorsCollector counts claims and volumes from the cache, when scraped.
type mirrorsCollector struct {
	cache    client.Reader
	options  Options
	unproven *nameSet

	states, refused, oldest, held, drifted, served, without *prometheus.Desc
}

func newMirrorsCollector(cache client.Reader, options Options, unproven *nameSet) *mirrorsCollector {
	return &mirrorsCollector{cache: cache, options: options, unproven: unproven,
		states: newDesc(nameMirrors), refused: newDesc(nameRefused), oldest: newDesc(nameOldest), held: newDesc(nameOriginsHeld),
		drifted: newDesc(nameReferences), served: newDesc(nameServed), without: newDesc(nameUnproven),
	}
}

// Describe implements prometheus.Collector.
func (c *mirrorsCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.states, c.refused, c.oldest, c.held, c.drifted, c.served, c.without} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector. Where the cache cannot answer yet
// there is no figure, rather than zeroes, or no metrics at all.
func (c *mirrorsCollector) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	all, err := c.count(ctx)
	if err != nil {
		return
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for state, count := range all.states {
		gauge(c.states, float64(count), state)
	}
	for reason, count := range all.refused {
		gauge(c.refused, float64(count), reason)
	}
	for by, count := range all.served {
		gauge(c.served, float64(count), by.instance, strconv.FormatBool(by.selected))
	}
	if !all.oldest.IsZero() {
		gauge(c.oldest, float64(all.oldest.Unix()))
	}
	gauge(c.held, float64(all.held))
	gauge(c.drifted, float64(all.drifted))
	gauge(c.without, float64(c.unproven.size()))
}

// count reads the volumes, and then the claims, each list once.
func (c *mirrorsCollector) count(ctx context.Context) (*census, error) {
	volumes, err := volumesWhere(ctx, c.cache, volumesThatAre, mirrors)
	if err != nil {
		return nil, err
	}
	all := newCensus(c.options)
	for i := range volumes {
		all.addVolume(&volumes[i])
	}
	if err := c.addNamespaces(ctx, all); err != nil {
		return nil, err
	}
	if err := c.addOrigins(ctx, all); err != nil {
		return nil, err
	}
	return all, c.addClaims(ctx, all)
}

// addNamespaces counts the volumes by who serves them, and looks at each
// namespace once.
func (c *mirrorsCollector) addNamespaces(ctx context.Context, all *census) error {
	for namespace, instances := range all.namespaces {
		labels, err := reader{c.cache}.namespaceLabels(ctx, namespace)
		if err != nil {
			return err
		}
		selected := serves(c.options, labels)
		for instance, count := range instances {
			all.served[servedBy{instance, selected}] += count
		}
	}
	return nil
}

func (c *mirrorsCollector) addOrigins(ctx context.Context, all *census) error {
	for key := range all.origins {
		origin, err := reader{c.cache}.claim(ctx, key)
		if err != nil {
			return err
		}
		if origin != nil && origin.DeletionTimestamp != nil && slices.Contains(origin.Finalizers, c.options.Names.Finalizer()) {
			all.held++
		}
	}
	return nil
}

func (c *mirrorsCollector) addClaims(ctx context.Context, all *census) error {
	var classes storagev1.StorageClassList
	if err := c.cache.List(ctx, &classes); err != nil {
		return err
	}
	for _, class := range classes.Items {
		if class.Provisioner != c.options.Names.Provisioner() {
			continue
		}
		claims, err := claimsWhere(ctx, c.cache, claimsByClass, class.Name)
		if err != nil {
			return err
		}
		for i := range claims {
			all.addClaim(&claims[i])
		}
	}
	return nil
}

// refusals are the reasons why a claim can be refused, for a series of each from
// the beginning: what rises is seen only where there was something before.
func refusals() map[string]int {
	counts := map[string]int{otherReason: 0}
	for _, doc := range mirror.Reasons() {
		if doc.Verdict == mirror.Refuse {
			counts[string(doc.Reason)] = 0
		}
	}
	return counts
}
