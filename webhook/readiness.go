package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

// errUnread tells that something was not listed yet.
var errNotListed = errors.New("not listed yet")

// whole returns the view of now, or why a write of a kind cannot be judged on
// it. A kind may become pending, or be listed, at this very moment: a view from
// between two looks at which it is not pending has it, if anyone does.
func (s *Server) readyView(kind api.PolicyKind) (*snapshot.View, error) {
	before := s.Store.Pending(kind)
	v, ready := s.Store.View()
	switch {
	case !ready:
		return nil, fmt.Errorf("%w: %v", errNotListed, s.Store.Waiting())
	case before || s.Store.Pending(kind):
		return nil, fmt.Errorf("%w: %s", errNotListed, kind)
	case s.Current != nil:
		return v, s.Current(kind)
	}
	return v, nil
}

// await waits for half of the time at most while a watch is opened again: what
// was written meanwhile, and judged by another replica, has to count here.
func (s *Server) awaitCache(ctx context.Context) {
	if s.Await == nil {
		return
	}
	ctx, cancel := withFraction(ctx, 2)
	defer cancel()
	s.Await(ctx)
}

// unavailable answers that nobody can judge just now. The API server retries
// within its timeout, and then failurePolicy decides. Why is for the log alone:
// whoever reaches the port may ask.
func (s *Server) rejectUnavailable(w http.ResponseWriter, door string, r *admissionv1.AdmissionRequest, why error) {
	s.Metrics.unavailable(door)
	s.Log.V(1).Info("not ready", "webhook", door, "uid", r.UID, "kind", kindOf(r).String(), "cause", why.Error())
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Connection", "close")
	http.Error(w, "overrule does not know the cluster as it is now; its log and /readyz say why", http.StatusServiceUnavailable)
}
