package webhook

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Tokens verify the last element of request paths: PathValidate + "/" + token. Only
// clients that can read the webhook configurations know the token.
type Tokens interface {
	// Accepts reports whether a token is valid, in a time that does not depend on
	// the token. known is false as long as there is no valid token at all.
	Accepts(token string) (ok, known bool)
}

// Handler returns the handler of PathValidate and PathMutate. Requests for all other
// paths get the same response, and their body is not read.
func (s *Server) Handler() http.Handler {
	handlers := map[string]http.Handler{
		PathValidate: s.handler(webhookValidate, evaluator{spanEvaluate, s.validate, s.denyFailed, s.denyOverloaded}),
		PathMutate:   s.handler(webhookMutate, evaluator{spanAnnotate, s.mutate, allowOnFailure, allowOnOverload}),
	}
	// Not a ServeMux, which redirects unclean paths.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, known := s.trimToken(r.URL.EscapedPath())
		handler, ok := handlers[path]
		switch {
		case !known:
			s.rejectNotReady(w)
		case !ok:
			s.rejectUnknownPath(w, r)
		default:
			handler.ServeHTTP(w, r)
		}
	})
}

// trimToken returns a path without its token, "" if the token is not valid. ok is
// false as long as there is no valid token at all.
func (s *Server) trimToken(path string) (trimmed string, ok bool) {
	if s.opts.Tokens == nil {
		return path, true
	}
	last := strings.LastIndexByte(path, '/')
	accepted, known := s.opts.Tokens.Accepts(path[last+1:])
	if !accepted || last < 0 {
		return "", known
	}
	return path[:last], known
}

// handler returns the HTTP handler of an evaluator. The timeout of the call starts
// here, as it does at the API server.
func (s *Server) handler(webhook string, e evaluator) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := s.opts.Now()
		ctx, span := s.startReviewSpan(r.Context(), r.Header, webhook)
		defer span.End()
		// The deadline of the review. evaluateInTime (admit.go) answers when it is missed.
		ctx, cancel := context.WithTimeout(ctx, callTimeout(r))
		defer cancel()
		_, reading := s.startSpan(ctx, spanRead)
		reserved, ok := s.limiter.reserve(ctx, r.ContentLength)
		if !ok {
			reading.End()
			setSpanRejected(span, rejectedOverloaded)
			s.rejectOverloaded(w, r, webhook, e)
			return
		}
		defer reserved.release()
		request, err := s.readRequest(ctx, w, r)
		reading.End()
		if err != nil {
			setSpanRejected(span, rejectedInvalidReview)
			s.rejectReview(w, r, webhook, e, err)
			return
		}
		s.awaitCache(ctx)
		view, err := s.readyView(kindOf(request))
		if err != nil {
			setSpanRejected(span, rejectedUnavailable)
			s.rejectUnavailable(w, webhook, request, err)
			return
		}
		resp := s.allowSystemWrites(request, s.admit(ctx, view, request, reserved, e))
		s.recordVersion(&resp, webhook)
		kind := kindLabel(view, request)
		setSpanDecision(span, kind, request, resp)
		s.report(webhook, kind, request, resp, s.opts.Now().Sub(start))
		s.respond(w, request, webhook, resp)
	})
}

// report reports a decision in metrics, log and Events.
func (s *Server) report(webhook, kind string, r *admissionv1.AdmissionRequest, resp response, took time.Duration) {
	if !isCanary(r) {
		s.opts.Metrics.observe(webhook, kind, r.Operation, resp, took)
	}
	s.logDecision(webhook, r, resp)
	s.recordDenial(r, resp)
}

// respond writes a response. If the server drains, it closes the connection, also
// for requests that arrived earlier.
func (s *Server) respond(w http.ResponseWriter, r *admissionv1.AdmissionRequest, webhook string, resp response) {
	s.closeIfDraining(w)
	if err := writeResponse(w, r, resp); err != nil {
		s.opts.Log.Error(err, "cannot write response", "webhook", webhook, "uid", r.UID)
	}
}

// closeIfDraining closes the connection after the response if the server drains.
func (s *Server) closeIfDraining(w http.ResponseWriter) {
	if s.draining.Load() {
		w.Header().Set("Connection", "close")
	}
}

const (
	// responseMargin is the time that a response takes to arrive on a busy CPU: the
	// API server ignores a denial that arrives after the timeout.
	responseMargin = 500 * time.Millisecond
	// maxTimeout is the largest timeoutSeconds of a webhook configuration: no client
	// can occupy a slot or memory for longer.
	maxTimeout = 30 * time.Second
)

// callTimeout returns the time that a request may take: its timeout parameter, which
// the API server rounds up to a second, less responseMargin.
func callTimeout(r *http.Request) time.Duration {
	d, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || d <= 0 {
		d = DefaultTimeout
	}
	d = min(d, maxTimeout)
	return max(d-responseMargin, d/2)
}

func kindOf(r *admissionv1.AdmissionRequest) api.PolicyKind {
	return api.PolicyKind{Group: r.Kind.Group, Kind: r.Kind.Kind}
}

// kindLabel returns the kind of a request for the metrics, "other" for kinds that are
// not evaluated: a client can send any kind, and would create any number of series.
func kindLabel(v *snapshot.View, r *admissionv1.AdmissionRequest) string {
	k := kindOf(r)
	if v.Kind(k) == nil && !gateway.Known(k) && !slices.Contains(ownKinds, k) {
		return "other"
	}
	return k.String()
}

// ownKinds are evaluated besides policies and the kinds that paths consist of.
var ownKinds = []api.PolicyKind{policykind.KindProfile, policykind.KindDefinition, constraint.Kind, constraint.ClusterKind}

// logDecision writes one line for a decision, without the content of the object. A
// write that would be denied is logged at level 0: during a roll-out users read it.
func (s *Server) logDecision(webhook string, r *admissionv1.AdmissionRequest, resp response) {
	level := 1
	if resp.Allowed && resp.reason != "" && !isCanary(r) {
		level = 0
	}
	l := s.opts.Log.V(level)
	if !l.Enabled() {
		return // computing the values takes time
	}
	l.Info("decision", "webhook", webhook, "uid", r.UID, "operation", r.Operation,
		"kind", kindOf(r).String(), "namespace", r.Namespace, "name", r.Name,
		"allowed", resp.Allowed, "reason", resp.reason, "warnings", len(resp.Warnings),
		"patched", len(resp.Patch) > 0, "dryRun", r.DryRun != nil && *r.DryRun, "evaluatedOn", resp.viewVersion())
}
