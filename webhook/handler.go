package webhook

import (
	"context"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"overrule.dev/overrule/internal/coordination"
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

// handler returns the HTTP handler of an endpoint. The timeout of the call starts here, as
// it does at the API server.
func (s *Server) handler(e endpoint, forwarded bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{
			Server: s, endpoint: e, w: w, start: s.opts.Now(), timeout: s.callTimeout(r), forwarded: forwarded,
			slots: s.limiter.slots, request: &admissionv1.AdmissionRequest{},
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
		c.rejectOverloaded()
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

// PeerHandler returns the handler of reviews that other replicas forward.
func (s *Server) PeerHandler() http.Handler {
	validate := s.handler(s.validating(), true)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.opts.Coordinator.Accepts(r.Header.Get(coordination.HeaderTerm)) {
			refuse(w)
			return
		}
		validate.ServeHTTP(w, r)
	})
}
