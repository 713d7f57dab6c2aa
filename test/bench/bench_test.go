// Package bench measures Overrule beside a reference in the same run.
package bench

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/test/fixture"
	"overrule.dev/overrule/webhook"
)

// doNothing is controller-runtime's webhook that allows everything.
func doNothing() http.Handler {
	return &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Allowed("")
	})}
}

// overrule is the validating door over a cluster.
func overrule(c *fixture.Cluster) http.Handler {
	return webhook.New(webhook.Options{
		Store: c.Store, Guard: &guard.Guard{Engine: effective.NewEngine()},
		Enforcement: guard.EnforceDeny, Log: logr.Discard(),
	}).Handler()
}

// listen serves a handler over TLS and HTTP/1.1, as a Service is called.
func listen(b *testing.B, h http.Handler) (client *http.Client, url string) {
	b.Helper()
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}
	s.StartTLS()
	b.Cleanup(s.Close)
	return s.Client(), s.URL
}

// BenchmarkRouteWrite alternates request by request between a webhook that does
// nothing and Overrule, on the same UPDATE review of a route, with 1,000 routes
// in the store. One op is one call of each.
func BenchmarkRouteWrite(b *testing.B) {
	ctrl.SetLogger(logr.Discard())
	cluster, err := fixture.New(fixture.Size{Gateways: 100, Routes: 1000})
	require.NoError(b, err)
	require.NoError(b, cluster.Put(cluster.Size.LargeRoute(700)))
	review, err := cluster.Size.RouteWrite(700).Review()
	require.NoError(b, err)
	b.Logf("a review has %d bytes", len(review))
	idle, idleURL := listen(b, doNothing())
	ours, oursURL := listen(b, overrule(cluster))
	var nothing, judged []time.Duration
	for b.Loop() {
		nothing = append(nothing, call(b, idle, idleURL, review))
		judged = append(judged, call(b, ours, oursURL+webhook.PathValidate+"?timeout=3s", review))
	}
	report(b, "nothing", nothing)
	report(b, "overrule", judged)
	b.ReportMetric(float64(quantile(judged, 0.5))/float64(quantile(nothing, 0.5)), "p50-ratio")
	b.ReportMetric(float64(quantile(judged, 0.99))/float64(quantile(nothing, 0.99)), "p99-ratio")
}

func call(b *testing.B, c *http.Client, url string, body []byte) time.Duration {
	b.Helper()
	start := time.Now()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, bytes.NewReader(body))
	require.NoError(b, err)
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.Do(r)
	require.NoError(b, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(b, err)
	require.NoError(b, answer.Body.Close())
	took := time.Since(start)
	require.Contains(b, string(text), `"allowed":true`)
	return took
}

func report(b *testing.B, name string, took []time.Duration) {
	b.Helper()
	for label, q := range map[string]float64{"p50": 0.5, "p99": 0.99} {
		b.ReportMetric(float64(quantile(took, q).Nanoseconds())/1000, name+"-"+label+"-µs")
	}
}

func quantile(took []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[int(float64(len(sorted)-1)*q)]
}
