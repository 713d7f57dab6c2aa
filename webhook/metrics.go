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
	rejected  *prometheus.CounterVec
	panics    prometheus.Counter
	waiting   prometheus.Gauge
	// lastReview is 0 until the first review.
	lastReview prometheus.Gauge
}

// NewMetrics returns the metrics of a server, registered with r unless it is
// nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "overrule_decisions_total",
			Help: "Admission decisions, by kind, operation, whether the write was allowed, and the reason code of the first denial.",
		}, []string{"webhook", "kind", "operation", "allowed", "reason"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "overrule_decision_duration_seconds",
			Help: "Time from the request to the response.",
			// From a cached response to the end of a call, whose timeout is 3 s.
			Buckets: []float64{0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 3},
		}, []string{"webhook"}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "overrule_requests_rejected_total",
			Help: "Requests rejected without evaluation, by reason: unavailable (not ready), overloaded (no memory to read the request), invalid_review, unknown_path, client_certificate (no longer valid).",
		}, []string{"webhook", "reason"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "overrule_panics_total",
			Help: "Panics during evaluation. Each one denied a write and is a bug to report.",
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "overrule_reviews_waiting",
			Help: "Reviews that wait for memory or for an evaluation slot.",
		}),
		lastReview: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "overrule_last_review_timestamp_seconds",
			Help: "Time of the last review that the API server sent to this replica, 0 before the first.",
		}),
	}
	for _, webhook := range []string{webhookValidate, webhookMutate, webhookReview} {
		for _, reason := range []string{rejectedUnavailable, rejectedOverloaded, rejectedInvalidReview} {
			m.rejected.WithLabelValues(webhook, reason) // at 0: the first one is an increase
		}
	}
	m.rejected.WithLabelValues(webhookNone, rejectedUnknownPath)
	m.rejected.WithLabelValues(webhookNone, rejectedClientCertificate)
	if r != nil {
		r.MustRegister(m.decisions, m.duration, m.rejected, m.panics, m.waiting, m.lastReview)
	}
	return m
}

func (m *Metrics) observe(webhook, kind string, op admissionv1.Operation, resp response, d time.Duration) {
	m.decisions.WithLabelValues(webhook, kind, operationLabel(op), strconv.FormatBool(resp.Allowed), resp.reason).Inc()
	m.duration.WithLabelValues(webhook).Observe(d.Seconds())
}

// operationLabel returns the name of an operation for metrics and spans, "other" for
// unknown ones: a client can send any number of them.
func operationLabel(op admissionv1.Operation) string {
	switch op {
	case admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect:
		return string(op)
	default:
		return "other"
	}
}

// Names of the webhooks in metrics, logs and spans.
const (
	webhookValidate = "validate"
	webhookMutate   = "mutate"
	webhookReview   = "review"
	webhookNone     = "none" // the path is unknown, or was not read
)

// Reasons to reject a request without evaluation.
const (
	rejectedUnavailable       = "unavailable"
	rejectedOverloaded        = "overloaded"
	rejectedInvalidReview     = "invalid_review"
	rejectedUnknownPath       = "unknown_path"
	rejectedClientCertificate = "client_certificate"
)

// reject counts a request that is not evaluated.
func (m *Metrics) reject(webhook, reason string) { m.rejected.WithLabelValues(webhook, reason).Inc() }
