package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
	"k8s.io/client-go/rest"

	"overrule.dev/overrule/test/logbuffer"
	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/tables"
	"overrule.dev/overrule/test/traces"
)

// setEnvironment sets these variables of OpenTelemetry, and unsets all others.
func setEnvironment(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, name := range []string{
		"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
	} {
		t.Setenv(name, "")
	}
	for name, value := range variables {
		t.Setenv(name, value)
	}
}

func TestTraceExporterConfiguration(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Variables map[string]string
		Protocol  string
	}](t, "testdata/tables/trace-exporter-configuration.yaml") {
		t.Run(name, func(t *testing.T) {
			setEnvironment(t, c.Variables)
			n := &logbuffer.Buffer{}
			traces := newTracing(t.Context(), "x", n.Logger())
			defer traces.shutdown(t.Context())
			if c.Protocol == "" {
				assert.Nil(t, traces.tracer())
				assert.Empty(t, n.String())
				return
			}
			assert.NotNil(t, traces.tracer())
			assert.Contains(t, n.String(), `"msg"="sending traces" "protocol"="`+c.Protocol+`"`)
		})
	}
}

func TestInvalidTraceConfigurationIsLogged(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Variables map[string]string
		Want      string
	}](t, "testdata/tables/invalid-trace-configuration-is-logged.yaml") {
		t.Run(name, func(t *testing.T) {
			setEnvironment(t, c.Variables)
			n := &logbuffer.Buffer{}
			traces := newTracing(t.Context(), "x", n.Logger())
			assert.Nil(t, traces.tracer())
			assert.Contains(t, n.String(), c.Want)
			messages.Golden(t, n.String())
			traces.shutdown(t.Context())
		})
	}
}

func TestWithoutTracingClientsAreNotInstrumented(t *testing.T) {
	setEnvironment(t, nil)
	n := &logbuffer.Buffer{}
	cfg := &rest.Config{}
	traces := newTracing(t.Context(), "x", n.Logger())
	traces.instrument(cfg)
	assert.Nil(t, cfg.WrapTransport)
	assert.Nil(t, traces.tracer())
	assert.Empty(t, n.String())
}

func TestSpansHaveResourceAttributes(t *testing.T) {
	for protocol, receiver := range map[string]*traces.Receiver{protocolHTTP: traces.OverHTTP(t), protocolGRPC: traces.OverGRPC(t)} {
		t.Run(protocol, func(t *testing.T) {
			setEnvironment(t, map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + receiver.Address, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
				"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20x",
				"OTEL_RESOURCE_ATTRIBUTES":   "deployment.environment.name=test,service.version=mine",
			})
			sent := newTracing(t.Context(), "infra", (&logbuffer.Buffer{}).Logger())
			_, span := sent.tracer().Start(t.Context(), "validate")
			span.SetAttributes(attribute.String("overrule.name", strings.Repeat("x", 2*maxAttributeLength)))
			span.End()
			sent.shutdown(t.Context()) // sends the last spans, too

			got := receiver.Spans()
			require.Len(t, got, 1)
			assert.Equal(t, "validate", got[0].GetName())
			assert.Equal(t, strings.Repeat("x", maxAttributeLength), got[0].Attributes()["overrule.name"], "long names are cut")
			assert.Equal(t, "overrule", got[0].Resource["service.name"])
			assert.Equal(t, "infra", got[0].Resource["k8s.namespace.name"])
			assert.Equal(t, "test", got[0].Resource["deployment.environment.name"])
			assert.Equal(t, "mine", got[0].Resource["service.version"], "the environment takes precedence")
			if protocol == protocolHTTP {
				assert.Equal(t, "Bearer x", receiver.Headers()[0].Get("Authorization"))
			}
		})
	}
}

func TestSamplerAlwaysOffSendsNothing(t *testing.T) {
	receiver := traces.OverHTTP(t)
	setEnvironment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + receiver.Address, "OTEL_TRACES_SAMPLER": "always_off"})
	sent := newTracing(t.Context(), "x", (&logbuffer.Buffer{}).Logger())
	_, span := sent.tracer().Start(t.Context(), "validate")
	assert.False(t, span.IsRecording())
	span.End()
	sent.shutdown(t.Context())
	assert.Empty(t, receiver.Spans())
}

func TestUnreachableCollectorDoesNotBlockShutdown(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }() // it accepts connections and never responds
	setEnvironment(t, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + listener.Addr().String(), "OTEL_BSP_MAX_QUEUE_SIZE": "8", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "4",
	})
	n := &logbuffer.Buffer{}
	sent := newTracing(t.Context(), "x", n.Logger())
	for range 10_000 { // far more than the queue size: the rest is dropped
		_, span := sent.tracer().Start(t.Context(), "validate")
		span.End()
	}
	sent.shutdown(t.Context())
	assert.Contains(t, n.String(), "cannot send the last traces", "it times out")
	assert.LessOrEqual(t, strings.Count(n.String(), "cannot send traces"), 1)
}

func TestTraceErrorsAreLoggedOncePerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &logbuffer.Buffer{}
		c := &traceErrorHandler{log: n.Logger(), limiter: rate.Sometimes{Interval: errorLogInterval}}
		for range 119 { // of two minutes, a second each
			c.Handle(errors.New("connection refused"))
			time.Sleep(time.Second)
		}
		lines := strings.Split(n.String(), "\n")
		require.Len(t, lines, 2)
		assert.Contains(t, lines[0], `"msg"="cannot send traces" "error"="connection refused" "errors"=1`)
		assert.Contains(t, lines[1], `"errors"=60`)
	})
}

func TestRequestsOfAReviewAreInItsTrace(t *testing.T) {
	receiver := traces.OverHTTP(t)
	setEnvironment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + receiver.Address})
	sent := newTracing(t.Context(), "x", (&logbuffer.Buffer{}).Logger())
	var parents []string
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		parents = append(parents, r.Header.Get("Traceparent"))
	}))
	defer api.Close()
	cfg := &rest.Config{Host: api.URL}
	sent.instrument(cfg)
	client, err := rest.HTTPClientFor(cfg)
	require.NoError(t, err)
	get := func(ctx context.Context, path string) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, api.URL+path, nil)
		require.NoError(t, err)
		answer, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
	}
	review, span := sent.tracer().Start(t.Context(), "validate")
	get(review, "/apis/gateway.networking.k8s.io/v1/namespaces/infra/gateways/edge")
	get(review, "/apis/authorization.k8s.io/v1/subjectaccessreviews")
	get(trace.ContextWithSpan(review, trace.SpanFromContext(t.Context())), "/apis/gateway.networking.k8s.io/v1/gateways") // a list of the informers
	span.End()
	sent.shutdown(t.Context())

	names := map[string]string{}
	for _, s := range receiver.Spans() {
		names[s.GetName()] = s.ParentID()
	}
	id := span.SpanContext().SpanID().String()
	assert.Equal(t, map[string]string{"validate": "", "live read": id, "SubjectAccessReview": id}, names)
	require.Len(t, parents, 3)
	assert.Contains(t, parents[0], span.SpanContext().TraceID().String(), "the API server gets the trace context")
	assert.Empty(t, parents[2])
}
