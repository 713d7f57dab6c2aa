package webhook

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

// evaluator evaluates the requests of one webhook.
type evaluator struct {
	// span is the name of its trace span.
	span string
	// evaluate returns the response to a request on a view.
	evaluate func(ctx context.Context, v *snapshot.View, c *call) response
	// onFailure returns the response if evaluate panics or exceeds the deadline.
	onFailure func(reason, message string) response
	// onOverload returns the response if evaluate is not called, because there are too
	// many reviews.
	onOverload func() response
}

// grace is the time that an evaluation may take after its deadline.
const grace = 50 * time.Millisecond

// admit waits for a slot and evaluates a request on the view of that moment. If too
// little time is left after the wait, the write is one of too many, and not one that
// takes too long.
func (s *Server) admit(ctx context.Context, v *snapshot.View, c *call) response {
	_, waiting := s.startSpan(ctx, spanQueue)
	ok := c.slots.acquireSlot(ctx, c.reserved.weight)
	waiting.End()
	if !ok {
		return c.evaluator.onOverload()
	}
	late := c.reserved.waitedTooLong(ctx)
	v = s.latestView(v, c.request)
	resp := s.evaluateInTime(ctx, v, c)
	if resp.view == nil {
		resp.view = v
	}
	if late && resp.isTooMuch() && ctx.Err() != nil {
		return c.evaluator.onOverload()
	}
	return resp
}

// latestView returns the current view for a write that waited since the view v; v
// itself if the kind of the write is being listed again.
func (s *Server) latestView(v *snapshot.View, r *admissionv1.AdmissionRequest) *snapshot.View {
	now, _ := s.opts.Store.View()
	if kind := kindOf(r); now.Kind(kind) != v.Kind(kind) {
		return v
	}
	return now
}

// evaluateInTime evaluates a request in a slot that was acquired. An evaluation that
// exceeds its deadline keeps its slot and its memory until it ends, but the response
// does not wait for it: under failurePolicy Ignore a write without a response is
// admitted.
func (s *Server) evaluateInTime(ctx context.Context, v *snapshot.View, c *call) response {
	responses := make(chan response, 1)
	c.reserved.retain()
	go func() {
		defer c.reserved.release()
		defer c.slots.releaseSlot(c.reserved.weight)
		responses <- s.evaluateRecovered(ctx, v, c)
	}()
	select {
	case resp := <-responses:
		return resp
	case <-ctx.Done():
	}
	select {
	case resp := <-responses:
		return resp
	case <-time.After(grace):
		r := c.request
		s.opts.Log.Info("evaluation exceeds its deadline", "uid", r.UID, "kind", kindOf(r).String(), "namespace", r.Namespace, "name", r.Name)
		return c.evaluator.onFailure(string(api.ReasonTooMuch), deadlineMessage(r))
	}
}

// deadlineMessage names the request that exceeds its deadline. The progress of its
// evaluation is not known.
func deadlineMessage(r *admissionv1.AdmissionRequest) string {
	return fmt.Sprintf("%s: evaluation of %s of %s (%d bytes) exceeds the webhook timeout; reduce the object "+
		"(fewer rules, listeners, targets or conditions), or contact the cluster administrator",
		api.ReasonTooMuch, r.Operation, refOf(r), len(r.Object.Raw)+len(r.OldObject.Raw))
}

// evaluateRecovered evaluates a request, and turns a panic into a response.
func (s *Server) evaluateRecovered(ctx context.Context, v *snapshot.View, c *call) (resp response) {
	ctx, span := s.startSpan(ctx, c.evaluator.span)
	defer span.End()
	defer func() {
		if p := recover(); p != nil {
			span.SetStatus(spanError, api.DenialPanic)
			s.opts.Metrics.panicked()
			s.opts.Log.Error(fmt.Errorf("panic: %v", p), "evaluation panicked", "uid", c.request.UID, "stack", string(debug.Stack()))
			resp = c.evaluator.onFailure(api.DenialPanic, "internal error: evaluation panicked; see the server log (uid "+string(c.request.UID)+")")
		}
	}()
	return c.evaluator.evaluate(ctx, v, c)
}
