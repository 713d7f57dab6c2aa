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
type holdings struct {
	store *snapshot.Store
	paths *census
}

func newHoldings(s *snapshot.Store, e *effective.Engine, log logr.Logger) holdings {
	return holdings{store: s, paths: &census{engine: e, log: log}}
}

var (
	ready    = prometheus.NewDesc("overrule_cache_ready", "1 once every source has been listed.", nil, nil)
	policies = prometheus.NewDesc("overrule_policies", "Policies held, by kind.", []string{"kind"}, nil)
	objects  = prometheus.NewDesc("overrule_objects", "Gateways, listener sets and routes held, by kind.", []string{"kind"}, nil)
	paths    = prometheus.NewDesc("overrule_paths",
		"Paths by policy kind and what the policies on them come to: Enforced, PartiallyEnforced, Inactive, or none without a policy.",
		[]string{"policy_kind", "state"}, nil)
)

// Describe implements prometheus.Collector.
func (h holdings) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{ready, policies, objects, paths} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (h holdings) Collect(ch chan<- prometheus.Metric) {
	v, whole := h.store.View()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	if whole {
		gauge(ready, 1)
	} else {
		gauge(ready, 0)
	}
	for _, k := range v.Kinds() {
		gauge(policies, float64(v.Count(k.Ref())), k.Ref().String())
	}
	for _, kind := range append([]string{gateway.KindGateway, gateway.KindListenerSet, gateway.KindXListenerSet}, gateway.RouteKinds...) {
		gauge(objects, float64(v.Count(gateway.KindOf(kind))), kind)
	}
	for kind, n := range h.paths.count(v) {
		for state, n := range map[string]int{ // what is not there is 0: an alert may wait for it
			string(api.Enforced): n.Enforced, string(api.PartiallyEnforced): n.PartiallyEnforced, string(api.Inactive): n.Inactive, noPolicy: n.None,
		} {
			gauge(paths, float64(n), kind.String(), state)
		}
	}
}
