package canary

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	passingDesc = prometheus.NewDesc("overrule_canary_passing",
		"1 if the last canary run passed, else 0. Reported by the leader only, after its first run.", nil, nil)
	successDesc = prometheus.NewDesc("overrule_canary_last_success_timestamp_seconds",
		"Time of the last canary run that passed. Reported by the leader only, after its first run that passed.", nil, nil)
	armedDesc = prometheus.NewDesc("overrule_armed",
		"1 if this replica is the leader and last wrote failurePolicy Fail (--arm).", nil, nil)
)

// Record records the runs of a replica for metrics and health.
type Record struct {
	runs     *prometheus.CounterVec
	duration prometheus.Histogram

	mu        sync.Mutex
	leading   bool
	last      *Result
	success   time.Time
	hasArming bool
	armed     bool
}

// NewRecord returns an empty Record. With arming it exports the metric overrule_armed.
func NewRecord(arming bool) *Record {
	r := &Record{
		hasArming: arming,
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "overrule_canary_runs_total",
			Help: "Canary runs by result: passed, failed, or untried if the API server did not accept the write.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "overrule_canary_duration_seconds",
			Help:    "Duration of a canary run.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2.5, 9),
		}),
	}
	for _, o := range Outcomes {
		r.runs.WithLabelValues(string(o))
	}
	return r
}

// Begin records that this replica has become the leader.
func (r *Record) Begin() { r.lead(true) }

// End records that this replica is no longer the leader.
func (r *Record) End() { r.lead(false) }

func (r *Record) lead(leads bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leading, r.last, r.success = leads, nil, time.Time{}
	r.armed = r.armed && leads
}

// Observe records a result and returns the previous one, nil for the first.
func (r *Record) Observe(result Result) (before *Result) {
	r.runs.WithLabelValues(string(result.Outcome)).Inc()
	r.duration.Observe(result.Took.Seconds())
	r.mu.Lock()
	defer r.mu.Unlock()
	before, r.last = r.last, &result
	if result.Outcome == Passed {
		r.success = result.At
	}
	return before
}

// SetArmed records whether the webhooks are armed, as this replica last wrote them.
func (r *Record) SetArmed(armed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.armed = armed
}

// Problem returns why the last run did not pass; nil if it passed, or if there was none
// while this replica is the leader.
func (r *Record) Problem() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil || r.last.Outcome == Passed {
		return nil
	}
	return fmt.Errorf("%s: %s", r.last.Outcome, r.last.Message())
}

// Describe implements prometheus.Collector.
func (r *Record) Describe(ch chan<- *prometheus.Desc) {
	r.runs.Describe(ch)
	r.duration.Describe(ch)
	ch <- passingDesc
	ch <- successDesc
	if r.hasArming {
		ch <- armedDesc
	}
}

// Collect implements prometheus.Collector.
func (r *Record) Collect(ch chan<- prometheus.Metric) {
	r.runs.Collect(ch)
	r.duration.Collect(ch)
	gauge := func(d *prometheus.Desc, value float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last != nil {
		gauge(passingDesc, boolToFloat(r.last.Outcome == Passed))
	}
	if !r.success.IsZero() {
		gauge(successDesc, float64(r.success.UnixMilli())/1000)
	}
	if r.hasArming {
		gauge(armedDesc, boolToFloat(r.armed))
	}
}

func boolToFloat(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
