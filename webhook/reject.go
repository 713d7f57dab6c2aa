package webhook

import (
	"context"
	"io"
	"net/http"
	"time"

	"overrule.dev/overrule/internal/coordination"
)

// This file reads reviews, and has the responses to those that are not evaluated.

// read reads the review. A body that arrives slowly has the time of the call, and no
// longer, because memory is reserved for it.
func (c *call) read(ctx context.Context, r *http.Request) *reviewError {
	_, reading := c.startSpan(ctx, spanRead)
	defer reading.End()
	reserved, ok := c.limiter.reserve(ctx, r.ContentLength)
	if !ok {
		return newReviewError(http.StatusServiceUnavailable, overloadMessage)
	}
	end, _ := ctx.Deadline()
	setReadDeadline(c.w, end)
	limit := c.limiter.maxReview
	if c.name == webhookReview {
		limit = maxReviewBody
	}
	request, body, err := readReview(r, limit)
	if err != nil {
		reserved.release()
		return err
	}
	if c.request, c.reserved = request, reserved; c.coordinates() {
		c.body = body // the log may keep it
	}
	// A deadline that stays would end the call during the evaluation. After an
	// error it has to stay, because net/http reads the rest of the body.
	setReadDeadline(c.w, time.Time{})
	return nil
}

// setReadDeadline limits the time to read a body; zero means no limit. It ignores
// writers without deadlines, which are not connections.
func setReadDeadline(w http.ResponseWriter, end time.Time) {
	_ = http.NewResponseController(w).SetReadDeadline(end)
}

// closeConnection closes the connection after the response even if the body is
// incomplete: net/http would wait for the rest of a small one.
func closeConnection(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	setReadDeadline(w, time.Now().Add(grace))
}

// unavailable asks the client to retry on another connection, possibly at another replica.
// The API server does so within the webhook timeout, then failurePolicy decides.
func unavailable(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Connection", "close")
	http.Error(w, why, http.StatusServiceUnavailable)
}

// retryElsewhere answers a request that is not read.
func retryElsewhere(w http.ResponseWriter) {
	closeConnection(w)
	unavailable(w, "not ready")
}

// rejectUnknownPath answers requests for unknown paths. It closes the connection,
// with all that the client may still send on it.
func (s *Server) rejectUnknownPath(w http.ResponseWriter, r *http.Request) {
	s.opts.Metrics.reject(webhookNone, rejectedUnknownPath)
	s.opts.Log.V(1).Info("unknown path", "from", r.RemoteAddr) // without the path, which may be almost right
	closeConnection(w)
	http.Error(w, "not found", http.StatusNotFound)
}

// RejectConnection answers a request on a connection whose client certificate is no
// longer valid. The API server retries on a new connection.
func (s *Server) RejectConnection(w http.ResponseWriter) {
	s.opts.Metrics.reject(webhookNone, rejectedClientCertificate)
	retryElsewhere(w)
}

// rejected reports in metrics, trace and log that the call is not evaluated.
func (c *call) rejected(reason, message string, values ...any) {
	setSpanRejected(c.span, reason)
	c.opts.Metrics.reject(c.name, reason)
	c.opts.Log.V(1).Info(message, append([]any{"webhook", c.name, "uid", c.request.UID}, values...)...)
}

// rejectUnavailable answers a write that no server can evaluate now. The cause is only
// logged, because any client that reaches the port gets the response.
func (c *call) rejectUnavailable(cause error) {
	c.rejected(rejectedUnavailable, "not ready", "kind", kindOf(c.request).String(), "cause", cause.Error())
	unavailable(c.w, "overrule is not ready: cache not synced or stale; see /readyz")
}

// rejectOverloaded answers a review that is read, if its uid is known, and not evaluated.
func (c *call) rejectOverloaded(values ...any) {
	c.rejected(rejectedOverloaded, "overloaded", values...)
	if c.request.UID == "" {
		unavailable(c.w, overloadMessage) // another replica may have memory
		return
	}
	c.respond(c.onOverload())
}

// rejectUnread answers a request whose review was not read: it is invalid, or there is no
// memory for it. If its uid is known it is denied: after an HTTP error failurePolicy Ignore
// would admit the write, and so the content of an object must not cause one.
func (c *call) rejectUnread(r *http.Request, err *reviewError) {
	if err.status == http.StatusServiceUnavailable {
		setReadDeadline(c.w, time.Now().Add(grace))
		c.request.UID = uidOfReview(r.Body) // and nothing else
		c.rejectOverloaded("length", r.ContentLength, "waiting", c.limiter.waiting.Load())
		return
	}
	c.request.UID = err.uid
	c.rejected(rejectedInvalidReview, "invalid review", "reason", err.reason)
	if err.uid == "" {
		c.closeIfDraining(c.w)
		http.Error(c.w, err.reason, err.status)
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, DefaultMaxBytes)) // a client may read the response only after it has sent everything
	c.respond(c.onFailure(err.code(), err.code()+": cannot evaluate this write: "+err.reason))
}

// refuse answers a review that was forwarded to a replica that does not lead in the
// expected term.
func refuse(w http.ResponseWriter) {
	http.Error(w, coordination.ErrRefused.Error(), http.StatusMisdirectedRequest)
}
