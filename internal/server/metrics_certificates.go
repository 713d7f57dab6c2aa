package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"overrule.dev/overrule/certs"
)

// expirySource returns when certificates expire, by name.
type expirySource interface {
	Expiries() map[string]time.Time
}

// expiryCollector is the metric of when certificates expire.
type expiryCollector struct {
	sources []expirySource
	desc    *prometheus.Desc
}

func newExpiryCollector(sources ...expirySource) *expiryCollector {
	return &expiryCollector{sources, prometheus.NewDesc("overrule_certificate_expiry_timestamp_seconds",
		"Expiry of certificates in use, in seconds since 1970: the serving certificate, the authority that signed it, and the client CA that expires first.",
		[]string{"certificate"}, nil)}
}

// Describe implements prometheus.Collector.
func (e *expiryCollector) Describe(ch chan<- *prometheus.Desc) { ch <- e.desc }

// Collect implements prometheus.Collector.
func (e *expiryCollector) Collect(ch chan<- prometheus.Metric) {
	for _, source := range e.sources {
		for name, at := range source.Expiries() {
			ch <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, float64(at.Unix()), name)
		}
	}
}

// expirySources returns the serving certificate and, if clients need a
// certificate, the client CAs.
func expirySources(provider *certProvider, clientAuth *certs.ClientAuth) []expirySource {
	var out []expirySource
	if source, ok := provider.source.(expirySource); ok {
		out = append(out, source)
	}
	if clientAuth != nil {
		out = append(out, clientAuth)
	}
	return out
}
