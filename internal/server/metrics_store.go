package server

import (
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// holdings are metrics of what the store holds.
type storeCollector struct {
	store *snapshot.Store
	paths *pathCounter
}

func newStoreCollector(s *snapshot.Store, e *effective.Engine, log logr.Logger) storeCollector {
	return storeCollector{store: s, paths: &pathCounter{engine: e, log: log}}
}

var (
	cacheReadyDesc = prometheus.NewDesc("overrule_cache_ready", "1 once every source has been listed.", nil, nil)
	policiesDesc   = prometheus.NewDesc("overrule_policies", "Policies held, by kind.", []string{"kind"}, nil)
	objectsDesc    = prometheus.NewDesc("overrule_objects", "Gateways, listener sets and routes held, by kind.", []string{"kind"}, nil)
	pathsDesc      = prometheus.NewDesc("overrule_paths",
		"Paths by policy kind and what the policies on them come to: Enforced, PartiallyEnforced, Inactive, or none without a policy.",
		[]string{"policy_kind", "state"}, nil)
)

// Describe implements prometheus.Collector.
func (h storeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{cacheReadyDesc, policiesDesc, objectsDesc, pathsDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (h storeCollector) Collect(ch chan<- prometheus.Metric) {
	v, whole := h.store.View()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	if whole {
		gauge(cacheReadyDesc, 1)
	} else {
		gauge(cacheReadyDesc, 0)
	}
	for _, k := range v.Kinds() {
		gauge(policiesDesc, float64(v.Count(k.Ref())), k.Ref().String())
	}
	for _, kind := range append([]string{gateway.KindGateway, gateway.KindListenerSet, gateway.KindXListenerSet}, gateway.RouteKinds...) {
		gauge(objectsDesc, float64(v.Count(gateway.GatewayKind(kind))), kind)
	}
	for kind, n := range h.paths.count(v) {
		for state, n := range map[string]int{ // what is not there is 0: an alert may wait for it
			string(api.Enforced): n.Enforced, string(api.PartiallyEnforced): n.PartiallyEnforced, string(api.Inactive): n.Inactive, noPolicy: n.None,
		} {
			gauge(pathsDesc, float64(n), kind.String(), state)
		}
	}
}
