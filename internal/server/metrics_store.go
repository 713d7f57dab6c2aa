package server

import (
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// storeCollector is the metrics of the objects in the store.
type storeCollector struct {
	store *snapshot.Store
	paths *pathCounter
}

func newStoreCollector(s *snapshot.Store, e *effective.Engine, log logr.Logger) storeCollector {
	return storeCollector{store: s, paths: &pathCounter{engine: e, log: log}}
}

var (
	cacheReadyDesc = prometheus.NewDesc("overrule_cache_ready", "1 once all kinds are listed.", nil, nil)
	policiesDesc   = prometheus.NewDesc("overrule_policies", "Policies in the cache, by kind.", []string{"kind"}, nil)
	objectsDesc    = prometheus.NewDesc("overrule_objects", "Gateways, listener sets and routes in the cache, by kind.", []string{"kind"}, nil)
	pathsDesc      = prometheus.NewDesc("overrule_paths",
		"Paths by policy kind and state of the policies on them: Enforced, PartiallyEnforced, Inactive, or none without a policy.",
		[]string{"policy_kind", "state"}, nil)
)

// Describe implements prometheus.Collector.
func (c storeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{cacheReadyDesc, policiesDesc, objectsDesc, pathsDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c storeCollector) Collect(ch chan<- prometheus.Metric) {
	v, synced := c.store.View()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	if synced {
		gauge(cacheReadyDesc, 1)
	} else {
		gauge(cacheReadyDesc, 0)
	}
	for _, k := range v.Kinds() {
		gauge(policiesDesc, float64(v.Count(k.Ref())), k.Ref().String())
	}
	for _, kind := range append([]string{gateway.KindGateway, gateway.KindListenerSet, gateway.KindXListenerSet}, gateway.RouteKinds...) {
		gauge(objectsDesc, float64(v.Count(gateway.KindOf(kind))), kind)
	}
	for kind, n := range c.paths.count(v) {
		for state, n := range map[string]int{ // 0 is reported, too, for alerts
			string(api.Enforced): n.Enforced, string(api.PartiallyEnforced): n.PartiallyEnforced, string(api.Inactive): n.Inactive, noPolicy: n.None,
		} {
			gauge(pathsDesc, float64(n), kind.String(), state)
		}
	}
}
