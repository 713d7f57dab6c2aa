package coordination

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Results of a forwarded write, in metrics.
const (
	resultAnswered = "answered"
	resultRefused  = "refused"
	resultFailed   = "failed"
)

// Metrics of replicas.
type Metrics struct {
	forwarded *prometheus.CounterVec
	handovers *prometheus.HistogramVec
}

// NewMetrics returns the metrics, registered with r unless it is nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		forwarded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "overrule_forwarded_total",
			Help: "Writes forwarded to the leader, by result: answered; refused (it does not lead any more) and failed (no response), which are forwarded again.",
		}, []string{"result"}),
		handovers: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "overrule_handover_seconds",
			Help: "Time without a leader, by kind of the handover: graceful, or crash (the Lease ran out). Reported by the new leader.",
			// From a transfer to several lease durations.
			Buckets: []float64{0.05, 0.1, 0.2, 0.5, 1, 2, 5, 7, 8, 10, 15, 30},
		}, []string{"kind"}),
	}
	for _, result := range []string{resultAnswered, resultRefused, resultFailed} {
		m.forwarded.WithLabelValues(result) // at 0: the first one is an increase
	}
	for _, kind := range []string{handoverGraceful, handoverCrash} {
		m.handovers.WithLabelValues(kind)
	}
	if r != nil {
		r.MustRegister(m.forwarded, m.handovers)
	}
	return m
}

// Gauge returns the metric of who leads.
func (c *Coordinator) Gauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "overrule_leader", Help: "1 on the replica that evaluates writes, else 0.",
	}, func() float64 {
		if c.Leading() {
			return 1
		}
		return 0
	})
}

func (m *Metrics) handedOver(kind string, took time.Duration) {
	m.handovers.WithLabelValues(kind).Observe(took.Seconds())
}

func (m *Metrics) forwardedWrite(result string) { m.forwarded.WithLabelValues(result).Inc() }
