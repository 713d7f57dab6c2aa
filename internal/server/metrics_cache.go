package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"overrule.dev/overrule/internal/cache"
)

// freshness are metrics of how fresh what is known of each resource is.
type freshness struct {
	health func() []cache.SourceHealth
	stale  func() error
	now    func() time.Time
}

func newFreshness(w *cache.Watcher) freshness {
	return freshness{health: w.Health, stale: w.Stale, now: time.Now}
}

var (
	cacheCurrent = prometheus.NewDesc("overrule_cache_current",
		"1 while what is known of the cluster is fresh enough to judge by.", nil, nil)
	cacheAge = prometheus.NewDesc("overrule_cache_age_seconds",
		"Time since a resource was known to be current, by an event, a bookmark or a list.", []string{"resource"}, nil)
	watchLists = prometheus.NewDesc("overrule_watch_lists_total",
		"Full lists of a resource.", []string{"resource"}, nil)
	watchFailures = prometheus.NewDesc("overrule_watch_failures_total",
		"Lists and watches of a resource that failed.", []string{"resource"}, nil)
)

// Describe implements prometheus.Collector.
func (f freshness) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{cacheCurrent, cacheAge, watchLists, watchFailures} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (f freshness) Collect(ch chan<- prometheus.Metric) {
	current := 1.0
	if f.stale() != nil {
		current = 0
	}
	ch <- prometheus.MustNewConstMetric(cacheCurrent, prometheus.GaugeValue, current)
	now := f.now()
	for _, s := range f.health() {
		// A resource that was never listed has no age; overrule_cache_ready tells of it.
		if at := s.Current(); !at.IsZero() {
			ch <- prometheus.MustNewConstMetric(cacheAge, prometheus.GaugeValue, now.Sub(at).Seconds(), s.Source)
		}
		ch <- prometheus.MustNewConstMetric(watchLists, prometheus.CounterValue, float64(s.Lists), s.Source)
		ch <- prometheus.MustNewConstMetric(watchFailures, prometheus.CounterValue, float64(s.Failures), s.Source)
	}
}
