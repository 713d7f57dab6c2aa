package webhook

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"
	admissionv1 "k8s.io/api/admission/v1"

	"overrule.dev/overrule/internal/coordination"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

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

// coordinates reports whether the leader has to evaluate a write: a dry run is not
// stored, and without denials nothing depends on who evaluates.
func (c *call) coordinates() bool {
	return c.opts.Coordinator != nil && c.name == webhookValidate && !isDryRun(c.request) && c.opts.Enforcement.Denies()
}

// stillLeads reports whether this replica evaluates in the term in which the evaluation
// of a call began. That holds for a call that is not coordinated.
func (c *call) stillLeads() bool {
	return c.place == nil || c.opts.Coordinator.Check(*c.place, c.timeout) == nil
}

// denyFailed denies a write that could not be evaluated, so that no object can be
// crafted to bypass the evaluation.
func (s *Server) denyFailed(reason, message string) response {
	resp := deny(reason, printable(message)).applyEnforcement(s.opts.Enforcement, reason)
	if s.opts.Enforcement == guard.EnforceWarn {
		resp.Warnings = []string{warning(guard.Finding{What: wouldBeDenied + message})}
	}
	return resp
}

// denyUndecided denies a write on which there is no decision yet; the client retries.
// With an enforcement that does not deny, there is nothing to retry.
func (s *Server) denyUndecided(reason, message string) response {
	resp := denyWithRetry(reason, message)
	if !s.opts.Enforcement.Denies() {
		resp = s.denyFailed(reason, message)
	}
	resp.retry = true
	return resp
}
