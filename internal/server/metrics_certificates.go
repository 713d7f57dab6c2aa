package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// expiring knows when certificates end, by their names.
type expiring interface {
	Expiries() map[string]time.Time
}

// expiries are the metric of when certificates end.
type expiries struct {
	of   []expiring
	desc *prometheus.Desc
}

func newExpiries(of ...expiring) *expiries {
	return &expiries{of, prometheus.NewDesc("overrule_certificate_expiry_timestamp_seconds",
		"When a certificate that is in use ends, as seconds since 1970: the serving one, the authority that signed it, and the first of the authorities of callers.",
		[]string{"certificate"}, nil)}
}

// Describe implements prometheus.Collector.
func (e *expiries) Describe(ch chan<- *prometheus.Desc) { ch <- e.desc }

// Collect implements prometheus.Collector.
func (e *expiries) Collect(ch chan<- prometheus.Metric) {
	for _, of := range e.of {
		for name, at := range of.Expiries() {
			ch <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, float64(at.Unix()), name)
		}
	}
}

// expire are those of the identity, and of callers who need a certificate.
func (d *httpsServer) expire(i *identity) *expiries {
	var of []expiring
	if source, ok := i.source.(expiring); ok {
		of = append(of, source)
	}
	if d.callers != nil {
		of = append(of, d.callers)
	}
	return newExpiries(of...)
}
