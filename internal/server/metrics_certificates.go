package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"overrule.dev/overrule/certs"
)

// expiries returns when certificates expire, by name.
type expiries func() map[string]time.Time

// expiryCollector is the metric of when certificates expire.
type expiryCollector struct {
	sources []expiries
	desc    *prometheus.Desc
}

func newExpiryCollector(sources ...expiries) *expiryCollector {
	return &expiryCollector{sources, prometheus.NewDesc("overrule_certificate_expiry_timestamp_seconds",
		"Expiry of certificates in use, in seconds since 1970: the serving certificate, the authority that signed it, the certificate for other replicas, and the client CA that expires first.",
		[]string{"certificate"}, nil)}
}

// Describe implements prometheus.Collector.
func (e *expiryCollector) Describe(ch chan<- *prometheus.Desc) { ch <- e.desc }

// Collect implements prometheus.Collector.
func (e *expiryCollector) Collect(ch chan<- prometheus.Metric) {
	for _, source := range e.sources {
		for name, at := range source() {
			ch <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, float64(at.Unix()), name)
		}
	}
}

// expirySources returns the serving certificate, that for other replicas and, if clients
// need a certificate, the client CAs.
func expirySources(provider *certProvider, clientAuth *certs.ClientAuth) []expiries {
	out := []expiries{provider.source.Expiries}
	if provider.authority != nil && provider.source != certs.Source(provider.authority) {
		out = append(out, provider.authority.Expiries)
	}
	if clientAuth != nil {
		out = append(out, clientAuth.Expiries)
	}
	return out
}
