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

// endpoint is a webhook: its name, and how it evaluates requests.
type endpoint struct {
	name string
	// span is the name of the trace span of evaluate.
	span string
	// evaluate returns the response to a request on a view.
	evaluate func(ctx context.Context, c *call, v *snapshot.View) response
	// onFailure returns the response if evaluate panics or exceeds the deadline.
	onFailure func(reason, message string) response
	// onOverload returns the response if evaluate is not called, because there are too
	// many reviews.
	onOverload func() response
}

// Handler returns the handler of PathValidate, PathMutate and PathReview. Requests for all
// other paths get the same response, and their body is not read.
func (s *Server) Handler() http.Handler {
	handlers := map[string]http.Handler{
		PathValidate: s.handler(s.validating(), false),
		PathMutate:   s.handler(endpoint{webhookMutate, spanAnnotate, mutate, allowOnFailure, allow}, false),
		PathReview:   s.handler(endpoint{webhookReview, spanAnswer, answerReview, denyReviewFailed, denyReviewOverloaded}, false),
	}
	// Not a ServeMux, which redirects unclean paths.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, known := trimToken(s.opts.Tokens, r.URL.EscapedPath())
		handler, ok := handlers[path]
		switch {
		case !known:
			s.opts.Metrics.reject(webhookNone, rejectedUnavailable)
			retryElsewhere(w)
		case !ok:
			s.rejectUnknownPath(w, r)
		default:
			handler.ServeHTTP(w, r)
		}
	})
}

func (s *Server) validating() endpoint {
	return endpoint{webhookValidate, spanEvaluate, validate, s.denyFailed, s.denyOverloaded}
}

// trimToken returns a path without its token, "" if the token is not valid. ok is
// false as long as there is no valid token at all.
func trimToken(tokens Tokens, path string) (trimmed string, ok bool) {
	if tokens == nil {
		return path, true
	}
	last := strings.LastIndexByte(path, '/')
	accepted, known := tokens.Accepts(path[last+1:])
	if !accepted || last < 0 {
		return "", known
	}
	return path[:last], known
}

// call is one call of a webhook: a review, and how far it has come.
type call struct {
	*Server
	endpoint

	w     http.ResponseWriter
	start time.Time
	// timeout is how long the API server waits for the response, at most MaxTimeout.
	timeout time.Duration
	// forwarded is set if another replica sent the review.
	forwarded bool
	span      trace.Span
	reserved  *reservation
	slots     slots
	// request is what was decoded: only its uid if the review is rejected unread.
	request *admissionv1.AdmissionRequest
	// body is the review as it was received, nil if it is not coordinated.
	body []byte
	// place is this replica in the term in which it evaluates the write, nil if it is
	// not coordinated.
	place *coordination.Place
}

// handler returns the HTTP handler of an endpoint. The timeout of the call starts here, as
// it does at the API server.
func (s *Server) handler(e endpoint, forwarded bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{
			Server: s, endpoint: e, w: w, start: s.opts.Now(), timeout: s.callTimeout(r), forwarded: forwarded,
			slots: s.limiter, request: &admissionv1.AdmissionRequest{},
		}
		var ctx context.Context
		ctx, c.span = s.startReviewSpan(r.Context(), r.Header, e.name)
		defer c.span.End()
		// The deadline of the review. evaluateInTime (admit.go) answers when it is missed.
		ctx, cancel := context.WithTimeout(ctx, c.remaining(r))
		defer cancel()
		if err := c.read(ctx, r); err != nil {
			c.rejectUnread(r, err)
			return
		}
		defer c.reserved.release()
		c.answer(ctx)
	})
}

// answer answers a review that was read: here, or at the leader.
func (c *call) answer(ctx context.Context) {
	if !c.forwarded {
		c.opts.Metrics.lastReview.Set(float64(c.start.UnixMilli()) / 1000)
	}
	if !c.enterLane() {
		c.rejected(rejectedOverloaded, "overloaded")
		c.respond(c.onOverload())
		return
	}
	ctx, cancel := c.withLateReserve(ctx)
	defer cancel()
	if c.coordinates() {
		c.coordinate(ctx)
	} else {
		c.evaluateHere(ctx)
	}
}

// evaluateHere evaluates a write on this replica, and responds. It returns false, and
// does not respond, if the replica stopped leading meanwhile. A write that is too much is
// so on each replica.
func (c *call) evaluateHere(ctx context.Context) bool {
	c.awaitCache(ctx)
	view, err := c.readyView(kindOf(c.request))
	if err != nil {
		c.rejectUnavailable(err)
		return true
	}
	resp := c.admit(ctx, view)
	if c.name != webhookReview {
		resp = c.allowSystemWrites(resp)
	}
	if !c.stillLeads() && !resp.isTooMuch() {
		return false
	}
	if c.name == webhookValidate {
		resp.recordVersion(c.opts.Replica)
	}
	c.report(kindLabel(view, c.request), resp)
	c.respond(resp)
	return true
}

// report reports a decision in metrics, trace, log and Events.
func (c *call) report(kind string, resp response) {
	setSpanDecision(c.span, kind, c.request, resp)
	if c.name != webhookReview || c.request.Name != webhookconfig.ProbeName {
		c.opts.Metrics.observe(c.name, kind, c.request.Operation, resp, c.opts.Now().Sub(c.start))
	}
	c.logDecision(resp)
	if c.name != webhookReview { // of which nothing is left to look at
		c.recordDenial(c.request, resp)
	}
}

// respond writes a response. If the server drains, it closes the connection, also
// for requests that arrived earlier.
func (c *call) respond(resp response) {
	c.closeIfDraining(c.w)
	c.logUnwritten(writeResponse(c.w, c.request, resp))
}

// logUnwritten logs the error of a response that could not be written.
func (c *call) logUnwritten(err error) {
	if err != nil {
		c.opts.Log.Error(err, "cannot write response", "webhook", c.name, "uid", c.request.UID)
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
func (c *call) logDecision(resp response) {
	level := 1
	if resp.Allowed && resp.reason != "" {
		level = 0
	}
	l, r := c.opts.Log.V(level), c.request
	if !l.Enabled() {
		return // computing the values takes time
	}
	l.Info("decision", "webhook", c.name, "uid", r.UID, "operation", r.Operation,
		"kind", kindOf(r).String(), "namespace", r.Namespace, "name", r.Name,
		"allowed", resp.Allowed, "reason", resp.reason, "warnings", len(resp.Warnings),
		"patched", len(resp.Patch) > 0, "dryRun", isDryRun(r), "evaluatedOn", resp.viewVersion())
}
