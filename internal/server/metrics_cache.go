package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"overrule.dev/overrule/internal/cache"
)

// cacheCollector is the metrics of the watches: the age of the cache, lists and
// failures, by resource.
type cacheCollector struct {
	health func() []cache.SourceHealth
	stale  func() error
	// restores counts restores of storage.
	restores func() uint64
	now      func() time.Time
}

func newCacheCollector(w *cache.Watcher) cacheCollector {
	return cacheCollector{health: w.Health, stale: w.StaleError, restores: w.Restores, now: time.Now}
}

var (
	cacheCurrentDesc = prometheus.NewDesc("overrule_cache_current",
		"1 while no cache is stale.", nil, nil)
	storageRestoresDesc = prometheus.NewDesc("overrule_storage_restores_total",
		"How often storage was found to be restored to an earlier state.", nil, nil)
	cacheAgeDesc = prometheus.NewDesc("overrule_cache_age_seconds",
		"Time since the last event, bookmark or list of a resource.", []string{"resource"}, nil)
	watchListsDesc = prometheus.NewDesc("overrule_watch_lists_total",
		"Lists of a resource.", []string{"resource"}, nil)
	watchFailuresDesc = prometheus.NewDesc("overrule_watch_failures_total",
		"Failed lists and watches of a resource.", []string{"resource"}, nil)
)

// Describe implements prometheus.Collector.
func (c cacheCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{cacheCurrentDesc, storageRestoresDesc, cacheAgeDesc, watchListsDesc, watchFailuresDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c cacheCollector) Collect(ch chan<- prometheus.Metric) {
	current := 1.0
	if c.stale() != nil {
		current = 0
	}
	ch <- prometheus.MustNewConstMetric(cacheCurrentDesc, prometheus.GaugeValue, current)
	ch <- prometheus.MustNewConstMetric(storageRestoresDesc, prometheus.CounterValue, float64(c.restores()))
	now := c.now()
	for _, s := range c.health() {
		// A resource that was never listed has no age; see overrule_cache_ready.
		if at := s.UpToDateAt(); !at.IsZero() {
			ch <- prometheus.MustNewConstMetric(cacheAgeDesc, prometheus.GaugeValue, now.Sub(at).Seconds(), s.Source)
		}
		ch <- prometheus.MustNewConstMetric(watchListsDesc, prometheus.CounterValue, float64(s.Lists), s.Source)
		ch <- prometheus.MustNewConstMetric(watchFailuresDesc, prometheus.CounterValue, float64(s.Failures), s.Source)
	}
}
