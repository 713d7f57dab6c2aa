package webhookconfig

import "github.com/prometheus/client_golang/prometheus"

// Metrics of a Reconciler.
type Metrics struct {
	repairs *prometheus.CounterVec
}

// NewMetrics returns the metrics of a Reconciler, registered with r unless it is nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "overrule_webhook_repairs_total",
		Help: "Edits and deletions of the webhook configurations that were reverted.",
	}, []string{"configuration"})}
	for _, configuration := range []string{typeMutating, typeValidating} {
		m.repairs.WithLabelValues(configuration) // at 0: the first one is an increase
	}
	if r != nil {
		r.MustRegister(m.repairs)
	}
	return m
}

func (m *Metrics) repaired(configuration string) {
	if m != nil {
		m.repairs.WithLabelValues(configuration).Inc()
	}
}
