package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"overrule.dev/overrule/internal/cache"
)

// freshness are metrics of how fresh what is known of each resource is.
type cacheCollector struct {
	health func() []cache.SourceHealth
	stale  func() error
	now    func() time.Time
}

func newCacheCollector(w *cache.Watcher) cacheCollector {
	return cacheCollector{health: w.Health, stale: w.Stale, now: time.Now}
}

var (
	cacheCurrentDesc = prometheus.NewDesc("overrule_cache_current",
		"1 while what is known of the cluster is fresh enough to judge by.", nil, nil)
	cacheAgeDesc = prometheus.NewDesc("overrule_cache_age_seconds",
		"Time since a resource was known to be current, by an event, a bookmark or a list.", []string{"resource"}, nil)
	watchListsDesc = prometheus.NewDesc("overrule_watch_lists_total",
		"Full lists of a resource.", []string{"resource"}, nil)
	watchFailuresDesc = prometheus.NewDesc("overrule_watch_failures_total",
		"Lists and watches of a resource that failed.", []string{"resource"}, nil)
)

// Describe implements prometheus.Collector.
func (f cacheCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{cacheCurrentDesc, cacheAgeDesc, watchListsDesc, watchFailuresDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (f cacheCollector) Collect(ch chan<- prometheus.Metric) {
	current := 1.0
	if f.stale() != nil {
		current = 0
	}
	ch <- prometheus.MustNewConstMetric(cacheCurrentDesc, prometheus.GaugeValue, current)
	now := f.now()
	for _, s := range f.health() {
		// A resource that was never listed has no age; overrule_cache_ready tells of it.
		if at := s.Current(); !at.IsZero() {
			ch <- prometheus.MustNewConstMetric(cacheAgeDesc, prometheus.GaugeValue, now.Sub(at).Seconds(), s.Source)
		}
		ch <- prometheus.MustNewConstMetric(watchListsDesc, prometheus.CounterValue, float64(s.Lists), s.Source)
		ch <- prometheus.MustNewConstMetric(watchFailuresDesc, prometheus.CounterValue, float64(s.Failures), s.Source)
	}
}
