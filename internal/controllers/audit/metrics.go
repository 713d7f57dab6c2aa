package audit

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	violationsDesc = prometheus.NewDesc("overrule_violations",
		"Violations in the current effective policies by reason, policy kind and the action for a write that introduces one.",
		[]string{"reason", "policy_kind", "action"}, nil)
	runsDesc = prometheus.NewDesc("overrule_audit_runs_total",
		"Audit runs by scope (changed, all) and result (done, failed).",
		[]string{"scope", "result"}, nil)
)

type violationLabels struct{ reason, kind, action string }

// Describe implements prometheus.Collector.
func (a *Auditor) Describe(ch chan<- *prometheus.Desc) {
	ch <- violationsDesc
	ch <- runsDesc
}

// Collect implements prometheus.Collector.
func (a *Auditor) Collect(ch chan<- prometheus.Metric) {
	counts := make(map[violationLabels]int)
	for _, v := range *a.current.Load() {
		counts[violationLabels{string(v.Code), v.PolicyKind.String(), string(v.Action)}]++
	}
	for l, n := range counts {
		ch <- prometheus.MustNewConstMetric(violationsDesc, prometheus.GaugeValue, float64(n), l.reason, l.kind, l.action)
	}
	for l, n := range a.runs.get() {
		ch <- prometheus.MustNewConstMetric(runsDesc, prometheus.CounterValue, float64(n), l.scope, l.result)
	}
}

type runLabels struct{ scope, result string }

// counter counts runs.
type counter struct {
	mu     sync.Mutex
	counts map[runLabels]int
}

func (c *counter) add(all bool, err error) {
	l := runLabels{"changed", "done"}
	if all {
		l.scope = "all"
	}
	if err != nil {
		l.result = "failed"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = make(map[runLabels]int)
	}
	c.counts[l]++
}

func (c *counter) get() map[runLabels]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}
