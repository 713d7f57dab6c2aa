package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/propagation"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/coordination"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/webhookconfig"
)

const noLeaderMessage = "no replica of overrule evaluates writes at the moment; retry in 1s"

// coordinate has a write evaluated by the leader: here, or by another replica.
func (c *call) coordinate(ctx context.Context) {
	var failed coordination.Place
	for {
		place, err := c.opts.Coordinator.Await(ctx, c.timeout, failed)
		switch {
		case err != nil:
			c.rejectNoLeader(err)
			return
		case place.Local():
			c.place = &place
			if c.evaluateHere(ctx) {
				return
			}
		case c.forwarded:
			refuse(c.w)
			return
		case c.forward(ctx, place):
			return
		}
		failed = place
	}
}

// forward sends a review to the leader, and relays its response. It returns false if
// there is none.
func (c *call) forward(ctx context.Context, place coordination.Place) bool {
	ctx, span := c.startSpan(ctx, spanForward)
	defer span.End()
	trace := make(http.Header)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(trace))
	a, err := c.opts.Coordinator.Forward(ctx, place, coordination.Review{Body: c.body, Timeout: c.timeout, Trace: trace})
	if err != nil {
		c.opts.Log.V(1).Info("cannot forward", "uid", c.request.UID, "to", place.Address, "cause", err.Error())
		return false
	}
	c.opts.Log.V(1).Info("forwarded", "uid", c.request.UID, "to", place.Address, "status", a.Status)
	for _, name := range []string{"Content-Type", "Retry-After"} {
		if value := a.Header.Get(name); value != "" {
			c.w.Header().Set(name, value)
		}
	}
	if a.Status == http.StatusServiceUnavailable {
		c.w.Header().Set("Connection", "close") // as unavailable does
	}
	c.closeIfDraining(c.w)
	c.w.WriteHeader(a.Status)
	_, err = c.w.Write(a.Body)
	c.logUnwritten(err)
	return true
}

// rejectNoLeader answers a write for which there was no leader in time. The client
// retries. A system write must not be denied: its webhook has failurePolicy Ignore.
func (c *call) rejectNoLeader(cause error) {
	if errors.Is(cause, coordination.ErrProtocol) || webhookconfig.SystemWrite(c.request) != "" {
		c.rejectUnavailable(cause)
		return
	}
	c.rejected(rejectedUnavailable, "no leader", "cause", cause.Error())
	c.respond(c.denyUndecided(api.DenialNoLeader, noLeaderMessage))
}

// importTimeout limits the reads of an Import from the API server.
const importTimeout = time.Second

// Export returns the writes in flight, for Import on another replica
// (coordination.State).
func (s *Server) Export() (json.RawMessage, error) {
	pending, err := s.opts.InFlight.Export()
	if err != nil {
		return nil, err
	}
	return json.Marshal(pending)
}

// Import replaces the writes in flight by those that another replica exported
// (coordination.State). It imports all of them, or returns an error.
func (s *Server) Import(data json.RawMessage) error {
	var pending []inflight.Pending
	if err := json.Unmarshal(data, &pending); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), importTimeout)
	defer cancel()
	writes := make([]inflight.ImportedWrite, len(pending))
	for i, p := range pending {
		w, err := s.importedWrite(ctx, p)
		if err != nil {
			return err
		}
		writes[i] = inflight.ImportedWrite{Write: w, Age: p.Age}
	}
	s.opts.InFlight.Reset()
	return s.opts.InFlight.Import(writes, s.currentView)
}

// importedWrite decodes a write that another replica admitted.
func (s *Server) importedWrite(ctx context.Context, p inflight.Pending) (inflight.Write, error) {
	request, invalid := decodeReview(p.Review)
	if invalid != nil {
		return inflight.Write{}, invalid
	}
	v := s.currentView()
	c, err := decodeChange(v, request, s.opts.Now().Add(-p.Age))
	if err == nil {
		err = s.useStored(ctx, v, request, &c)
	}
	if err != nil {
		return inflight.Write{}, fmt.Errorf("%s of %s: %w", request.Operation, refOf(request), err)
	}
	w := s.inFlightWrite(request, c)
	w.Review = func() []byte { return p.Review }
	return w, nil
}
