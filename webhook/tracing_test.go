package webhook

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	otelcodes "go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// The trace of the API server, as the W3C's Trace Context writes it.
const (
	theirTrace  = "0af7651916cd43dd8448eb211c80319c"
	theirSpan   = "b7ad6b7169203331"
	traceparent = "00-" + theirTrace + "-" + theirSpan + "-01"
)

// traced returns a server of some manifests, and what it records.
func traced(t *testing.T, o Options, manifests ...string) (*testServer, *tracetest.SpanRecorder) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	o.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	return newTestServer(t, o, manifests...), recorder
}

// call posts a body with a traceparent.
func (d *testServer) call(t *testing.T, path string, body []byte) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Traceparent", traceparent)
	d.Handler().ServeHTTP(httptest.NewRecorder(), r)
}

// named are the spans that have ended, by their names.
func named(t *testing.T, r *tracetest.SpanRecorder) map[string]sdktrace.ReadOnlySpan {
	t.Helper()
	out := map[string]sdktrace.ReadOnlySpan{}
	for _, s := range r.Ended() {
		require.NotContains(t, out, s.Name())
		out[s.Name()] = s
	}
	return out
}

func attributes(s sdktrace.ReadOnlySpan) map[string]any {
	out := map[string]any{}
	for _, kv := range s.Attributes() {
		out[string(kv.Key)] = kv.Value.AsInterface()
	}
	return out
}

func TestSpansContinueTrace(t *testing.T) {
	for path, act := range map[string]string{PathValidate: "evaluate", PathMutate: "annotate"} {
		d, recorder := traced(t, Options{}, cluster)
		d.call(t, path, review(t, create(t, routeLimits(20))))
		spans := named(t, recorder)
		top := strings.TrimPrefix(path, "/")
		require.Len(t, spans, 4)
		require.Contains(t, spans, top)
		assert.Equal(t, theirTrace, spans[top].SpanContext().TraceID().String())
		assert.Equal(t, theirSpan, spans[top].Parent().SpanID().String())
		assert.Equal(t, trace.SpanKindServer, spans[top].SpanKind())
		for _, part := range []string{"read request", "queue", act} {
			require.Contains(t, spans, part)
			assert.Equal(t, spans[top].SpanContext().SpanID(), spans[part].Parent().SpanID(), part)
		}
	}
}

func TestSpanAttributes(t *testing.T) {
	dry := create(t, routeLimits(100))
	dry.DryRun = new(true)
	for name, c := range map[string]struct {
		request *admissionv1.AdmissionRequest
		want    map[string]any
	}{
		"allowed, with the paths that change": {create(t, routeLimits(20)), map[string]any{
			"overrule.kind": "RateLimitPolicy.kuadrant.io", "overrule.namespace": "app", "overrule.name": "toystore-limits",
			"overrule.operation": "CREATE", "overrule.uid": string(uid), "overrule.dry_run": false,
			"overrule.allowed": true, "overrule.warnings": int64(0), "overrule.paths": int64(2),
		}},
		"denied, with the reason": {dry, map[string]any{
			"overrule.kind": "RateLimitPolicy.kuadrant.io", "overrule.namespace": "app", "overrule.name": "toystore-limits",
			"overrule.operation": "CREATE", "overrule.uid": string(uid), "overrule.dry_run": true,
			"overrule.allowed": false, "overrule.warnings": int64(0), "overrule.paths": int64(2),
			"overrule.reason": "ConstraintViolated",
		}},
		"of a kind that is not evaluated": {
			&admissionv1.AdmissionRequest{UID: uid, Kind: metav1.GroupVersionKind{Kind: "Pod"}, Operation: admissionv1.Create, Namespace: "app", Name: "x", Object: raw("{}")}, map[string]any{
				"overrule.kind": "other", "overrule.namespace": "app", "overrule.name": "x",
				"overrule.operation": "CREATE", "overrule.uid": string(uid), "overrule.dry_run": false,
				"overrule.allowed": true, "overrule.warnings": int64(0),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, recorder := traced(t, Options{}, cluster, gatewayLimits)
			d.validated(t, c.request)
			span := named(t, recorder)["validate"]
			assert.Equal(t, c.want, attributes(span))
			assert.Equal(t, otelcodes.Unset, span.Status().Code, "a denial is no error")
			assert.False(t, span.Parent().IsValid(), "no one began a trace")
		})
	}
}

func TestSpansHaveNoObjectContent(t *testing.T) {
	const secret = "hunter2"
	d, recorder := traced(t, Options{}, cluster, gatewayLimits)
	d.validated(t, create(t, strings.Replace(annotated(routeLimits(100), "password", secret), "login: {", "login: {"+secret+": 1, ", 1)))
	d.post(t, PathValidate, []byte(`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": "`+secret+`"}`))
	require.NotEmpty(t, recorder.Ended())
	for _, s := range recorder.Ended() {
		assert.NotContains(t, fmt.Sprint(attributes(s), s.Status()), secret, s.Name())
		assert.Empty(t, s.Events(), s.Name())
	}
}

func TestSpanErrors(t *testing.T) {
	ready := func(t *testing.T, o Options) (*testServer, *tracetest.SpanRecorder) {
		t.Helper()
		return traced(t, o, cluster)
	}
	for name, c := range map[string]struct {
		server func(t *testing.T, o Options) (*testServer, *tracetest.SpanRecorder)
		o      Options
		body   func(t *testing.T) []byte
		want   string
	}{
		"a panic": {
			server: ready, o: Options{Guard: &guard.Guard{ReadLive: panicking}},
			body: func(t *testing.T) []byte { t.Helper(); return review(t, create(t, homeless())) }, want: "Panic",
		},
		"no review": {server: ready, body: func(*testing.T) []byte { return []byte("x") }, want: "invalid_review"},
		"not ready": {
			server: func(t *testing.T, o Options) (*testServer, *tracetest.SpanRecorder) { t.Helper(); return traced(t, o) },
			o:      Options{Store: snapshot.New("gateways")},
			body:   func(t *testing.T) []byte { t.Helper(); return review(t, create(t, route)) }, want: "unavailable",
		},
		"no room": {
			server: func(t *testing.T, o Options) (*testServer, *tracetest.SpanRecorder) {
				t.Helper()
				d, recorder := ready(t, o)
				for range 2 { // of which one fills the room
					_, _ = d.limiter.reserve(t.Context(), unknownLength)
					d.limiter.waiting.Store(d.limiter.maxQueue)
				}
				return d, recorder
			},
			o:    Options{MaxBytes: 1 << 20},
			body: func(t *testing.T) []byte { t.Helper(); return review(t, create(t, route)) }, want: "overloaded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, recorder := c.server(t, c.o)
			d.call(t, PathValidate, c.body(t))
			span := named(t, recorder)["validate"]
			require.NotNil(t, span)
			assert.Equal(t, sdktrace.Status{Code: otelcodes.Error, Description: c.want}, span.Status())
		})
	}
}

func TestNoTracerAllocatesNothing(t *testing.T) {
	d := newTestServer(t, Options{}, cluster)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, PathValidate, nil)
	r.Header.Set("Traceparent", traceparent)
	request, a := create(t, route), allow()
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		ctx, span := d.startReviewSpan(t.Context(), r.Header, "validate")
		_, part := d.startSpan(ctx, spanRead)
		part.End()
		setSpanRejected(span, rejectedOverloaded)
		setSpanDecision(span, "HTTPRoute", request, a)
		span.End()
	}))
}

func TestUnsampledReview(t *testing.T) {
	d := newTestServer(t, Options{Tracer: sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())).Tracer("test")}, cluster, gatewayLimits)
	assert.Contains(t, said(t, d.validated(t, create(t, routeLimits(100)))), "ConstraintViolated")
}
