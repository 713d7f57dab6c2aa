package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

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

// withFraction returns a context with the remaining time divided by a divisor.
func withFraction(ctx context.Context, divisor time.Duration) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/divisor)
}
