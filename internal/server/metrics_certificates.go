package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// expiring knows when certificates end, by their names.
type expirySource interface {
	Expiries() map[string]time.Time
}

// expiries are the metric of when certificates end.
type expiryCollector struct {
	sources []expirySource
	desc    *prometheus.Desc
}

func newExpiryCollector(of ...expirySource) *expiryCollector {
	return &expiryCollector{of, prometheus.NewDesc("overrule_certificate_expiry_timestamp_seconds",
		"When a certificate that is in use ends, as seconds since 1970: the serving one, the authority that signed it, and the first of the authorities of callers.",
		[]string{"certificate"}, nil)}
}

// Describe implements prometheus.Collector.
func (e *expiryCollector) Describe(ch chan<- *prometheus.Desc) { ch <- e.desc }

// Collect implements prometheus.Collector.
func (e *expiryCollector) Collect(ch chan<- prometheus.Metric) {
	for _, of := range e.sources {
		for name, at := range of.Expiries() {
			ch <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, float64(at.Unix()), name)
		}
	}
}

// expire are those of the identity, and of callers who need a certificate.
func (d *httpsServer) expire(i *certProvider) *expiryCollector {
	var of []expirySource
	if source, ok := i.source.(expirySource); ok {
		of = append(of, source)
	}
	if d.clientAuth != nil {
		of = append(of, d.clientAuth)
	}
	return newExpiryCollector(of...)
}
