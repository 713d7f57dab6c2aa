package webhook

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/coordination"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/internal/webhookconfig"
)

// Tokens verify the last element of request paths: PathValidate + "/" + token. Only
// clients that can read the webhook configurations know the token.
type Tokens interface {
	// Accepts reports whether a token is valid, in a time that does not depend on
	// the token. known is false as long as there is no valid token at all.
	Accepts(token string) (ok, known bool)
}

// Handler returns the handler of PathValidate, PathMutate and PathReview. Requests for all
// other paths get the same response, and their body is not read.
func (s *Server) Handler() http.Handler {
	handlers := map[string]http.Handler{
		PathValidate: s.handler(webhookValidate, s.validator(), false),
		PathMutate:   s.handler(webhookMutate, evaluator{spanAnnotate, s.mutate, allowOnFailure, allowOnOverload}, false),
		PathReview:   s.handler(webhookReview, evaluator{spanAnswer, s.answerReview, denyReviewFailed, denyReviewOverloaded}, false),
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

// validator returns the evaluator of the validating webhook.
func (s *Server) validator() evaluator {
	return evaluator{spanEvaluate, s.validate, s.denyFailed, s.denyOverloaded}
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

// call is one call of a webhook.
type call struct {
	webhook   string
	evaluator evaluator
	start     time.Time
	// timeout is how long the API server waits for the response, at most MaxTimeout.
	timeout time.Duration
	// forwarded is set if another replica sent the review.
	forwarded bool
	span      trace.Span
	reserved  *reservation
	slots     slots
	request   *admissionv1.AdmissionRequest
	// body is the review as it was received, nil if it is not coordinated.
	body []byte
	// place is this replica in the term in which it evaluates the write, nil if it is
	// not coordinated.
	place *coordination.Place
}

// handler returns the HTTP handler of an evaluator. The timeout of the call starts
// here, as it does at the API server.
func (s *Server) handler(webhook string, e evaluator, forwarded bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{webhook: webhook, evaluator: e, start: s.opts.Now(), timeout: s.callTimeout(r), forwarded: forwarded}
		var ctx context.Context
		ctx, c.span = s.startReviewSpan(r.Context(), r.Header, webhook)
		defer c.span.End()
		// The deadline of the review. evaluateInTime (admit.go) answers when it is missed.
		ctx, cancel := context.WithTimeout(ctx, s.remaining(c, r))
		defer cancel()
		_, reading := s.startSpan(ctx, spanRead)
		var ok bool
		c.reserved, ok = s.limiter.reserve(ctx, r.ContentLength)
		if !ok {
			reading.End()
			setSpanRejected(c.span, rejectedOverloaded)
			s.rejectOverloaded(w, r, webhook, e)
			return
		}
		defer c.reserved.release()
		err := s.readRequest(ctx, w, r, c)
		reading.End()
		if err != nil {
			setSpanRejected(c.span, rejectedInvalidReview)
			s.rejectReview(w, r, webhook, e, err)
			return
		}
		if !forwarded {
			s.opts.Metrics.lastReview.Set(float64(c.start.UnixMilli()) / 1000)
		}
		if !s.enterLane(c) {
			setSpanRejected(c.span, rejectedOverloaded)
			s.opts.Metrics.overloaded(webhook)
			s.respond(w, c.request, webhook, e.onOverload())
			return
		}
		if !forwarded && s.isAdmittedLate(c) {
			ctx, cancel = s.withLateReserve(ctx, c)
			defer cancel()
		}
		if s.coordinates(c) {
			s.coordinate(ctx, w, c)
			return
		}
		s.evaluateHere(ctx, w, c)
	})
}

// evaluateHere evaluates a write on this replica, and responds. It returns false, and
// does not respond, if the replica stopped leading meanwhile. A write that is too much is
// so on each replica.
func (s *Server) evaluateHere(ctx context.Context, w http.ResponseWriter, c *call) bool {
	s.awaitCache(ctx)
	view, err := s.readyView(kindOf(c.request))
	if err != nil {
		setSpanRejected(c.span, rejectedUnavailable)
		s.rejectUnavailable(w, c.webhook, c.request, err)
		return true
	}
	resp := s.admit(ctx, view, c)
	if c.webhook != webhookReview {
		resp = s.allowSystemWrites(c.request, resp)
	}
	if !s.stillLeads(c) && !resp.isTooMuch() {
		return false
	}
	s.recordVersion(&resp, c.webhook)
	kind := kindLabel(view, c.request)
	setSpanDecision(c.span, kind, c.request, resp)
	s.report(c.webhook, kind, c.request, resp, s.opts.Now().Sub(c.start))
	s.respond(w, c.request, c.webhook, resp)
	return true
}

// report reports a decision in metrics, log and Events.
func (s *Server) report(webhook, kind string, r *admissionv1.AdmissionRequest, resp response, took time.Duration) {
	if webhook != webhookReview || r.Name != webhookconfig.ProbeName {
		s.opts.Metrics.observe(webhook, kind, r.Operation, resp, took)
	}
	s.logDecision(webhook, r, resp)
	if webhook != webhookReview { // of which nothing is left to look at
		s.recordDenial(r, resp)
	}
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
var ownKinds = []api.PolicyKind{policykind.KindProfile, policykind.KindDefinition, constraint.Kind, constraint.ClusterKind, kindReview}

// logDecision writes one line for a decision, without the content of the object. A
// write that would be denied is logged at level 0: during a roll-out users read it.
func (s *Server) logDecision(webhook string, r *admissionv1.AdmissionRequest, resp response) {
	level := 1
	if resp.Allowed && resp.reason != "" {
		level = 0
	}
	l := s.opts.Log.V(level)
	if !l.Enabled() {
		return // computing the values takes time
	}
	l.Info("decision", "webhook", webhook, "uid", r.UID, "operation", r.Operation,
		"kind", kindOf(r).String(), "namespace", r.Namespace, "name", r.Name,
		"allowed", resp.Allowed, "reason", resp.reason, "warnings", len(resp.Warnings),
		"patched", len(resp.Patch) > 0, "dryRun", isDryRun(r), "evaluatedOn", resp.viewVersion())
}
