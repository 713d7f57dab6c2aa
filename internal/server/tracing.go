package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
	"k8s.io/client-go/rest"

	"overrule.dev/overrule/internal/build"
)

// tracing exports traces. It is configured by the environment variables that
// OpenTelemetry defines; the SDK reads those that are not read here.
type tracing struct {
	provider *sdktrace.TracerProvider // nil: tracing is disabled
	log      logr.Logger
}

const (
	// maxAttributeLength limits the bytes of an attribute: clients can send names of
	// any length.
	maxAttributeLength = 512
	// flushTimeout limits how long shutdown waits for the last spans.
	flushTimeout = 3 * time.Second
	// errorLogInterval is how often errors of the exporter are logged.
	errorLogInterval = time.Minute
)

// newTracing returns the tracing that the environment configures. An invalid
// configuration is logged, and disables tracing alone.
func newTracing(ctx context.Context, namespace string, log logr.Logger) *tracing {
	t := &tracing{log: log}
	otel.SetErrorHandler(&traceErrorHandler{log: log, limiter: rate.Sometimes{Interval: errorLogInterval}})
	otel.SetLogger(log)
	exporter, err := newExporter(ctx, log)
	switch {
	case err != nil:
		log.Error(err, "tracing disabled: invalid OTEL_* configuration; fix it and restart")
	case exporter != nil:
		t.provider = sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter),
			sdktrace.WithResource(traceResource(ctx, namespace, log)), sdktrace.WithRawSpanLimits(spanLimits()))
	}
	return t
}

// The protocols of OTLP.
const (
	protocolHTTP = "http/protobuf"
	protocolGRPC = "grpc"
)

// newExporter returns the exporter that the environment configures; nil if there
// is none. Without an endpoint there is none: the specification's default is
// localhost, where a pod has no collector.
func newExporter(ctx context.Context, log logr.Logger) (*otlptrace.Exporter, error) {
	name := os.Getenv("OTEL_TRACES_EXPORTER")
	endpoint := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), protocolHTTP)
	u, err := url.Parse(endpoint)
	switch {
	case strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true"), name == "none", name == "" && endpoint == "":
		return nil, nil //nolint:nilnil // nil means disabled
	case name != "" && name != "otlp":
		return nil, fmt.Errorf("invalid value %q for OTEL_TRACES_EXPORTER: must be one of otlp, none", name)
	case endpoint != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == ""): // the SDK would take localhost
		return nil, fmt.Errorf("invalid value %q for OTEL_EXPORTER_OTLP_ENDPOINT: must be a URL such as http://collector.monitoring:4318", endpoint)
	case protocol != protocolHTTP && protocol != protocolGRPC:
		return nil, fmt.Errorf("invalid value %q for OTEL_EXPORTER_OTLP_PROTOCOL: must be one of %s, %s", protocol, protocolHTTP, protocolGRPC)
	}
	var exporter *otlptrace.Exporter
	if protocol == protocolGRPC {
		exporter, err = otlptracegrpc.New(ctx)
	} else {
		exporter, err = otlptracehttp.New(ctx)
	}
	if err == nil {
		log.Info("sending traces", "protocol", protocol, "endpoint", endpoint)
	}
	return exporter, err
}

// traceResource returns the attributes of this replica. Those of
// OTEL_RESOURCE_ATTRIBUTES take precedence.
func traceResource(ctx context.Context, namespace string, log logr.Logger) *resource.Resource {
	pod, _ := os.Hostname() // best effort: an empty name is accepted
	r, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("overrule"), semconv.ServiceVersion(build.Read().Version),
			semconv.ServiceInstanceID(pod), semconv.K8SNamespaceName(namespace), semconv.K8SPodName(pod)),
		resource.WithFromEnv())
	if err != nil {
		log.Error(err, "invalid OTEL_RESOURCE_ATTRIBUTES; traces lack these attributes")
	}
	return r
}

func spanLimits() sdktrace.SpanLimits {
	l := sdktrace.NewSpanLimits()
	if l.AttributeValueLengthLimit < 0 {
		l.AttributeValueLengthLimit = maxAttributeLength
	}
	return l
}

// tracer returns the tracer of reviews; nil if tracing is disabled.
func (t *tracing) tracer() trace.Tracer {
	if t.provider == nil {
		return nil
	}
	return t.provider.Tracer("overrule.dev/overrule/webhook")
}

// instrument adds spans to the requests of clients of cfg that belong to a review.
// Others, such as lists and watches, have none.
func (t *tracing) instrument(cfg *rest.Config) {
	if t.provider == nil {
		return
	}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(next,
			otelhttp.WithTracerProvider(t.provider), otelhttp.WithPropagators(propagation.TraceContext{}),
			otelhttp.WithFilter(func(r *http.Request) bool { return trace.SpanContextFromContext(r.Context()).IsValid() }),
			otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return spanName(r) }))
	})
}

// spanName returns the name of the span of a request to the API server.
func spanName(r *http.Request) string {
	if strings.HasSuffix(r.URL.Path, "/subjectaccessreviews") {
		return "SubjectAccessReview"
	}
	return "live read"
}

// shutdown sends the remaining spans, for at most flushTimeout.
func (t *tracing) shutdown(ctx context.Context) {
	if t.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.Error(err, "cannot send the last traces")
	}
}

// traceErrorHandler logs the errors of the SDK, at most one per errorLogInterval: an
// endpoint that is down causes one for each batch.
type traceErrorHandler struct {
	log     logr.Logger
	limiter rate.Sometimes
	errors  atomic.Int64
}

// Handle implements otel.ErrorHandler.
func (h *traceErrorHandler) Handle(err error) {
	h.errors.Add(1)
	h.limiter.Do(func() { h.log.Error(err, "cannot send traces", "errors", h.errors.Swap(0)) })
}
