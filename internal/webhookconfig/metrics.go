package webhookconfig

import "github.com/prometheus/client_golang/prometheus"

// Metrics of the repairs.
type Metrics struct {
	repairs *prometheus.CounterVec
}

// NewMetrics returns the metrics of a Registrar, registered with r unless it is
// nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "overrule_webhook_repairs_total",
		Help: "Edits and deletions of the webhook configurations that were undone.",
	}, []string{"configuration"})}
	for _, configuration := range []string{typeMutating, typeValidating} {
		m.repairs.WithLabelValues(configuration) // an increase is seen from 0 alone
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
