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
)

// The attributes of spans. Names are told, and never what an object holds: who
// may read traces may not be one who may read policies.
const (
	attrUID       = attribute.Key("overrule.uid")
	attrKind      = attribute.Key("overrule.kind")
	attrNamespace = attribute.Key("overrule.namespace")
	attrName      = attribute.Key("overrule.name")
	attrOperation = attribute.Key("overrule.operation")
	attrDryRun    = attribute.Key("overrule.dry_run")
	attrAllowed   = attribute.Key("overrule.allowed")
	attrReason    = attribute.Key("overrule.reason")
	attrWarnings  = attribute.Key("overrule.warnings")
	attrPaths     = attribute.Key("overrule.paths")
	attrRejected    = attribute.Key("overrule.turned_away")
)

// The spans below that of a review.
const (
	spanRead  = "receive"
	spanQueue    = "wait for a place"
	spanEvaluate    = "judge"
	spanAnnotate = "annotate"
)

// failed is the status of a span where Overrule did not do what it is there for.
const spanError = otelcodes.Error

// untraced is the span where there are no traces. It is one value, so that a
// review without traces allocates nothing for them.
var noSpan trace.Span = noop.Span{}

// begin starts the span of a review, in the trace that the API server began if
// it did.
func (s *Server) startReviewSpan(ctx context.Context, h http.Header, door string) (context.Context, trace.Span) {
	if s.Tracer == nil {
		return ctx, noSpan
	}
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(h))
	return s.Tracer.Start(ctx, door, trace.WithSpanKind(trace.SpanKindServer))
}

// part starts the span of a part of a review.
func (s *Server) startSpan(ctx context.Context, name string) (context.Context, trace.Span) {
	if s.Tracer == nil {
		return ctx, noSpan
	}
	return s.Tracer.Start(ctx, name)
}

// turned says on the span of a request why it was not judged.
func setSpanRejected(span trace.Span, why string) {
	if span.IsRecording() {
		span.SetAttributes(attrRejected.String(why))
		span.SetStatus(spanError, why)
	}
}

// tell says on the span of a review what was asked and answered. A denial is
// the work that it is there for, and no error.
func setSpanDecision(span trace.Span, kind string, r *admissionv1.AdmissionRequest, a response) {
	if !span.IsRecording() {
		return // what it would say is not free
	}
	span.SetAttributes(
		attrUID.String(string(r.UID)), attrKind.String(kind), attrNamespace.String(r.Namespace), attrName.String(r.Name),
		attrOperation.String(operationLabel(r.Operation)), attrDryRun.Bool(r.DryRun != nil && *r.DryRun),
		attrAllowed.Bool(a.Allowed), attrWarnings.Int(len(a.Warnings)),
	)
	if a.reason != "" {
		span.SetAttributes(attrReason.String(a.reason))
	}
	if a.evaluated {
		span.SetAttributes(attrPaths.Int(a.paths))
	}
	if a.reason == reasonFailed || a.reason == reasonPanic {
		span.SetStatus(spanError, a.reason)
	}
}
