package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file has the responses to requests that are not evaluated.

// readRequest reads a review. A body that arrives slowly has the time of the call,
// and no longer, because memory is reserved for it.
func (s *Server) readRequest(ctx context.Context, w http.ResponseWriter, r *http.Request, c *call) (err error) {
	if end, ok := ctx.Deadline(); ok {
		setReadDeadline(w, end)
	}
	body := newBody()
	c.request, err = readReview(r, s.maxBody(c.webhook), body)
	if err == nil && s.coordinates(c) {
		c.body = body.Bytes() // the log may keep it
	} else {
		releaseBody(body)
	}
	if err == nil {
		// A deadline that stays would end the call during the evaluation. After an
		// error it has to stay, because net/http reads the rest of the body.
		setReadDeadline(w, time.Time{})
	}
	return err
}

// maxBody returns the size of the largest review of a webhook.
func (s *Server) maxBody(webhook string) int64 {
	if webhook == webhookReview {
		return maxReviewBody
	}
	return s.limiter.maxReview
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

// retryElsewhere asks the client to retry on another connection, possibly at another
// replica.
func retryElsewhere(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	closeConnection(w)
	http.Error(w, "not ready", http.StatusServiceUnavailable)
}

// rejectUnknownPath answers requests for unknown paths. It closes the connection,
// with all that the client may still send on it.
func (s *Server) rejectUnknownPath(w http.ResponseWriter, r *http.Request) {
	s.opts.Metrics.unknownPath()
	s.opts.Log.V(1).Info("unknown path", "from", r.RemoteAddr) // without the path, which may be almost right
	closeConnection(w)
	http.Error(w, "not found", http.StatusNotFound)
}

// rejectNotReady answers all requests as long as there is no valid token.
func (s *Server) rejectNotReady(w http.ResponseWriter) {
	s.opts.Metrics.unavailable(webhookNone)
	retryElsewhere(w)
}

// RejectConnection answers a request on a connection whose client certificate is no
// longer valid. The API server retries on a new connection.
func (s *Server) RejectConnection(w http.ResponseWriter) {
	s.opts.Metrics.callerRejected()
	retryElsewhere(w)
}

// rejectUnavailable answers a write that no server can evaluate now. The API server
// retries within the webhook timeout, then failurePolicy decides. The cause is only
// logged, because any client that reaches the port gets the response.
func (s *Server) rejectUnavailable(w http.ResponseWriter, webhook string, r *admissionv1.AdmissionRequest, cause error) {
	s.opts.Metrics.unavailable(webhook)
	s.opts.Log.V(1).Info("not ready", "webhook", webhook, "uid", r.UID, "kind", kindOf(r).String(), "cause", cause.Error())
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Connection", "close")
	http.Error(w, "overrule is not ready: cache not synced or stale; see /readyz", http.StatusServiceUnavailable)
}

// rejectReview answers a request whose review cannot be read. If its uid is known it
// is denied: after an HTTP error failurePolicy Ignore would admit the write, and so
// the content of an object must not cause one.
func (s *Server) rejectReview(w http.ResponseWriter, r *http.Request, webhook string, e evaluator, err error) {
	invalid, ok := errors.AsType[*reviewError](err)
	if !ok {
		invalid = &reviewError{status: http.StatusBadRequest}
	}
	s.opts.Metrics.invalidReview(webhook)
	s.opts.Log.V(1).Info("invalid review", "webhook", webhook, "uid", invalid.uid, "reason", err.Error())
	if invalid.uid == "" {
		s.closeIfDraining(w)
		http.Error(w, err.Error(), invalid.status)
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, DefaultMaxBytes)) // a client may read the response only after it has sent everything
	s.respond(w, &admissionv1.AdmissionRequest{UID: invalid.uid}, webhook, e.onFailure(invalid.code(), invalid.code()+": cannot evaluate this write: "+err.Error()))
}

// rejectOverloaded answers a review for which there is no memory. It reads the uid
// alone and denies: after an HTTP error failurePolicy Ignore would admit the write.
func (s *Server) rejectOverloaded(w http.ResponseWriter, r *http.Request, webhook string, e evaluator) {
	s.opts.Metrics.overloaded(webhook)
	setReadDeadline(w, time.Now().Add(grace))
	uid, err := uidOfReview(r.Body)
	s.opts.Log.V(1).Info("overloaded", "webhook", webhook, "uid", uid, "length", r.ContentLength, "waiting", s.limiter.waiting.Load())
	if err != nil || uid == "" {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Connection", "close") // another replica may have memory
		http.Error(w, overloadMessage, http.StatusServiceUnavailable)
		return
	}
	s.respond(w, &admissionv1.AdmissionRequest{UID: uid}, webhook, e.onOverload())
}

// maxUIDOffset is the number of bytes of a review in which its uid has to be: the API
// server writes it first.
const maxUIDOffset = 4 << 10

// uidOfReview reads a review up to its uid.
func uidOfReview(body io.Reader) (types.UID, error) {
	d := json.NewDecoder(io.LimitReader(body, maxUIDOffset))
	for _, name := range []string{"request", "uid"} {
		if err := seekField(d, name); err != nil {
			return "", err
		}
	}
	var uid types.UID
	err := d.Decode(&uid)
	return uid, err
}

// seekField reads an object up to the value of a field.
func seekField(d *json.Decoder, name string) error {
	if _, err := d.Token(); err != nil { // the brace; after anything else the next token is not a name
		return err
	}
	for {
		key, err := d.Token()
		if err != nil || key == name {
			return err
		}
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			return err
		}
	}
}
