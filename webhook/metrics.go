package webhook

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
)

// Metrics of the decisions.
type Metrics struct {
	decisions *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	rejected    *prometheus.CounterVec
	panics    prometheus.Counter
	waiting   prometheus.Gauge
}

// NewMetrics returns the metrics of a server, registered with r unless it is
// nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "overrule_decisions_total",
			Help: "Reviews answered, by kind, operation, verdict and the first reason to deny.",
		}, []string{"webhook", "kind", "operation", "allowed", "reason"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "overrule_decision_duration_seconds",
			Help: "Time from the request to the answer.",
			// From a cached answer to the end of a call, whose timeout is 3 s.
			Buckets: []float64{0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 3},
		}, []string{"webhook"}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "overrule_requests_rejected_total",
			Help: "Requests not judged: unavailable (not ready), overloaded (no room to read them), no review, unknown path, or caller (its certificate is not good any more).",
		}, []string{"webhook", "reason"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "overrule_panics_total",
			Help: "Panics while judging. Each one denied a write and is a fault to report.",
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "overrule_reviews_waiting",
			Help: "Reviews that wait for a place, or for room to be read.",
		}),
	}
	for _, door := range []string{webhookValidate, webhookMutate} {
		for _, why := range []string{rejectedUnavailable, rejectedOverloaded, rejectedNoReview} {
			m.rejected.WithLabelValues(door, why) // at 0: the first one is an increase
		}
	}
	m.rejected.WithLabelValues(webhookNone, rejectedUnknownPath)
	m.rejected.WithLabelValues(webhookNone, rejectedCaller)
	if r != nil {
		r.MustRegister(m.decisions, m.duration, m.rejected, m.panics, m.waiting)
	}
	return m
}

func (m *Metrics) observe(door, kind string, op admissionv1.Operation, a response, d time.Duration) {
	m.decisions.WithLabelValues(door, kind, operationLabel(op), strconv.FormatBool(a.Allowed), a.reason).Inc()
	m.duration.WithLabelValues(door).Observe(d.Seconds())
}

// operationLabel names an operation for metrics and spans: a caller can make up
// as many as they like.
func operationLabel(op admissionv1.Operation) string {
	switch op {
	case admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect:
		return string(op)
	default:
		return "other"
	}
}

// The doors, by the names that metrics and spans give them.
const (
	webhookValidate = "validate"
	webhookMutate   = "mutate"
	webhookNone     = "none" // of who did not say which, or may not know
)

// Why a request was turned away.
const (
	rejectedUnavailable = "unavailable"
	rejectedOverloaded  = "overloaded"
	rejectedNoReview    = "no review"
	rejectedUnknownPath = "unknown path"
	rejectedCaller      = "caller"
)

func (m *Metrics) unavailable(door string) { m.rejected.WithLabelValues(door, rejectedUnavailable).Inc() }

func (m *Metrics) noReview(door string) { m.rejected.WithLabelValues(door, rejectedNoReview).Inc() }

func (m *Metrics) overloaded(door string) { m.rejected.WithLabelValues(door, rejectedOverloaded).Inc() }

func (m *Metrics) unknownPath() { m.rejected.WithLabelValues(webhookNone, rejectedUnknownPath).Inc() }

func (m *Metrics) callerRejected() { m.rejected.WithLabelValues(webhookNone, rejectedCaller).Inc() }

func (m *Metrics) panicked() { m.panics.Inc() }
