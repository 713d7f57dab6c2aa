package audit

import (
	"github.com/prometheus/client_golang/prometheus"
)

var violationsDesc = prometheus.NewDesc("overrule_violations",
	"Violations in the current effective policies by reason, policy kind and the action for a write that introduces one.",
	[]string{"reason", "policy_kind", "action"}, nil)

func newRuns() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "overrule_audit_runs_total",
		Help: "Audit runs by scope (changed, all) and result (done, failed).",
	}, []string{"scope", "result"})
}

type violationLabels struct{ reason, kind, action string }

// Describe implements prometheus.Collector.
func (a *Auditor) Describe(ch chan<- *prometheus.Desc) {
	ch <- violationsDesc
	a.runs.Describe(ch)
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
	a.runs.Collect(ch)
}

// countRun counts a run.
func (a *Auditor) countRun(all bool, err error) {
	scope, result := "changed", "done"
	if all {
		scope = "all"
	}
	if err != nil {
		result = "failed"
	}
	a.runs.WithLabelValues(scope, result).Inc()
}
