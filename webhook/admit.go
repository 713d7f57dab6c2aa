package webhook

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

// grace is the time that an evaluation may take after its deadline.
const grace = 50 * time.Millisecond

// admit waits for a slot and evaluates a request on the view of that moment. If too
// little time is left after the wait, the write is one of too many, and not one that
// takes too long.
func (c *call) admit(ctx context.Context, v *snapshot.View) response {
	_, waiting := c.startSpan(ctx, spanQueue)
	ok := c.slots.acquire(ctx, c.reserved.weight)
	waiting.End()
	if !ok {
		return c.onOverload()
	}
	late := c.reserved.waitedTooLong(ctx)
	v = latestView(v, c.currentView(), kindOf(c.request))
	resp := c.evaluateInTime(ctx, v)
	if resp.view == nil {
		resp.view = v
	}
	if late && resp.isTooMuch() && ctx.Err() != nil {
		return c.onOverload()
	}
	return resp
}

// latestView returns the current view for a write of a kind that waited since the view v; v
// itself if the kind is being listed again.
func latestView(v, now *snapshot.View, kind api.PolicyKind) *snapshot.View {
	if now.Kind(kind) != v.Kind(kind) {
		return v
	}
	return now
}

// evaluateInTime evaluates a request in a slot that was acquired. An evaluation that
// exceeds its deadline keeps its slot and its memory until it ends, but the response
// does not wait for it: under failurePolicy Ignore a write without a response is
// admitted.
func (c *call) evaluateInTime(ctx context.Context, v *snapshot.View) response {
	responses := make(chan response, 1)
	c.reserved.retain()
	go func() {
		defer c.reserved.release()
		defer c.slots.release(c.reserved.weight)
		growStack()
		responses <- c.evaluateRecovered(ctx, v)
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
		c.opts.Log.Info("evaluation exceeds its deadline", "uid", r.UID, "kind", kindOf(r).String(), "namespace", r.Namespace, "name", r.Name)
		return c.onFailure(string(api.ReasonTooMuch), deadlineMessage(r))
	}
}

// growStack makes the stack of a goroutine as large as most evaluations need: else it is
// copied each time that it doubles.
//
//go:noinline
func growStack() {
	var room [16 << 10]byte
	runtime.KeepAlive(&room)
}

// evaluateRecovered evaluates a request, and turns a panic into a response.
func (c *call) evaluateRecovered(ctx context.Context, v *snapshot.View) (resp response) {
	ctx, span := c.startSpan(ctx, c.endpoint.span)
	defer span.End()
	defer func() {
		if p := recover(); p != nil {
			span.SetStatus(spanError, api.DenialPanic)
			c.opts.Metrics.panics.Inc()
			c.opts.Log.Error(fmt.Errorf("panic: %v", p), "evaluation panicked", "uid", c.request.UID, "stack", string(debug.Stack()))
			resp = c.onFailure(api.DenialPanic, "internal error: evaluation panicked; see the server log (uid "+string(c.request.UID)+")")
		}
	}()
	return c.evaluate(ctx, c, v)
}

// errNotListed is returned while a resource is not listed yet.
var errNotListed = errors.New("not listed yet")

// readyView returns the current view, or an error if a write of the kind cannot be
// evaluated on it. The kind may become pending, or be listed, concurrently: a view
// that was taken between two checks at which it was not pending is complete.
func (s *Server) readyView(kind api.PolicyKind) (*snapshot.View, error) {
	before := s.opts.Store.Pending(kind)
	v, ready := s.opts.Store.View()
	switch {
	case !ready:
		return nil, fmt.Errorf("%w: %v", errNotListed, s.opts.Store.Waiting())
	case before || s.opts.Store.Pending(kind):
		return nil, fmt.Errorf("%w: %s", errNotListed, kind)
	case s.opts.CheckFresh != nil:
		return v, s.opts.CheckFresh(kind)
	}
	return v, nil
}

// awaitCache waits while a watch is reopened, for at most half of the remaining time:
// writes that another replica admitted meanwhile have to count here.
func (s *Server) awaitCache(ctx context.Context) {
	if s.opts.Await == nil {
		return
	}
	ctx, cancel := withFraction(ctx, 2)
	defer cancel()
	s.opts.Await(ctx)
}

func (s *Server) currentView() *snapshot.View {
	v, _ := s.opts.Store.View()
	return v
}
