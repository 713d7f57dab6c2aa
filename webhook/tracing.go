package webhook

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Child spans of the span of a review.
const (
	spanRead     = "read request"
	spanQueue    = "queue"
	spanEvaluate = "evaluate"
	spanAnnotate = "annotate"
	spanAnswer   = "answer"
	spanForward  = "forward"
)

// spanError is the status of the span of a review that was not evaluated.
const spanError = otelcodes.Error

// noSpan is the span without a tracer. It is one value, so that a review without
// traces allocates nothing for them.
var noSpan trace.Span = noop.Span{}

// startReviewSpan starts the span of a review, in the trace of the API server if there
// is one.
func (s *Server) startReviewSpan(ctx context.Context, h http.Header, webhook string) (context.Context, trace.Span) {
	if s.opts.Tracer == nil {
		return ctx, noSpan
	}
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(h))
	return s.opts.Tracer.Start(ctx, webhook, trace.WithSpanKind(trace.SpanKindServer))
}

// startSpan starts the span of a part of a review.
func (s *Server) startSpan(ctx context.Context, name string) (context.Context, trace.Span) {
	if s.opts.Tracer == nil {
		return ctx, noSpan
	}
	return s.opts.Tracer.Start(ctx, name)
}

// setSpanRejected sets on the span of a request why it was not evaluated.
func setSpanRejected(span trace.Span, reason string) {
	if span.IsRecording() {
		span.SetAttributes(attribute.String("overrule.rejected", reason))
		span.SetStatus(spanError, reason)
	}
}

// setSpanDecision sets the request and the decision on the span of a review. A denial
// is not an error. The attributes hold names, and never the content of an object: users who
// are allowed to read traces may not be allowed to read policies.
func setSpanDecision(span trace.Span, kind string, r *admissionv1.AdmissionRequest, resp response) {
	if !span.IsRecording() {
		return // computing the values takes time
	}
	span.SetAttributes(
		attribute.String("overrule.uid", string(r.UID)), attribute.String("overrule.kind", kind),
		attribute.String("overrule.namespace", r.Namespace), attribute.String("overrule.name", r.Name),
		attribute.String("overrule.operation", operationLabel(r.Operation)), attribute.Bool("overrule.dry_run", isDryRun(r)),
		attribute.Bool("overrule.allowed", resp.Allowed), attribute.Int("overrule.warnings", len(resp.Warnings)),
	)
	if resp.reason != "" {
		span.SetAttributes(attribute.String("overrule.reason", resp.reason))
	}
	if resp.evaluated {
		span.SetAttributes(attribute.Int("overrule.paths", resp.paths))
	}
	if resp.reason == api.DenialFailed || resp.reason == api.DenialPanic {
		span.SetStatus(spanError, resp.reason)
	}
}
