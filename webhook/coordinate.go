package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/propagation"
	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/coordination"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/internal/webhookconfig"
)

// Coordinator decides which replica evaluates a write (coordination.Coordinator).
type Coordinator interface {
	Await(ctx context.Context, timeout time.Duration, except coordination.Place) (coordination.Place, error)
	Check(p coordination.Place, timeout time.Duration) error
	Accepts(term string) bool
	Forward(ctx context.Context, p coordination.Place, r coordination.Review) (coordination.Answer, error)
}

const noLeaderMessage = "no replica of overrule evaluates writes at the moment; retry in 1s"

func isDryRun(r *admissionv1.AdmissionRequest) bool { return r.DryRun != nil && *r.DryRun }

// coordinates reports whether the leader has to evaluate a write: a dry run is not
// stored, and without denials nothing depends on who evaluates.
func (s *Server) coordinates(c *call) bool {
	return s.opts.Coordinator != nil && c.webhook == webhookValidate && !isDryRun(c.request) && s.opts.Enforcement.Denies()
}

// coordinate has a write evaluated by the leader: here, or by another replica.
func (s *Server) coordinate(ctx context.Context, w http.ResponseWriter, c *call) {
	var failed coordination.Place
	for {
		place, err := s.opts.Coordinator.Await(ctx, c.timeout, failed)
		switch {
		case err != nil:
			s.rejectNoLeader(w, c, err)
			return
		case place.Local():
			c.place = &place
			if s.evaluateHere(ctx, w, c) {
				return
			}
		case c.forwarded:
			refuse(w)
			return
		case s.forward(ctx, w, c, place):
			return
		}
		failed = place
	}
}

// stillLeads reports whether this replica evaluates in the term in which the evaluation
// of a call began. That holds for a call that is not coordinated.
func (s *Server) stillLeads(c *call) bool {
	return c.place == nil || s.opts.Coordinator.Check(*c.place, c.timeout) == nil
}

// forward sends a review to the leader, and relays its response. It returns false if
// there is none.
func (s *Server) forward(ctx context.Context, w http.ResponseWriter, c *call, place coordination.Place) bool {
	ctx, span := s.startSpan(ctx, spanForward)
	defer span.End()
	trace := make(http.Header)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(trace))
	a, err := s.opts.Coordinator.Forward(ctx, place, coordination.Review{Body: c.body, Timeout: c.timeout, Trace: trace})
	if err != nil {
		s.opts.Log.V(1).Info("cannot forward", "uid", c.request.UID, "to", place.Address, "cause", err.Error())
		return false
	}
	s.opts.Log.V(1).Info("forwarded", "uid", c.request.UID, "to", place.Address, "status", a.Status)
	for _, name := range []string{"Content-Type", "Retry-After"} {
		if value := a.Header.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	if a.Status == http.StatusServiceUnavailable {
		w.Header().Set("Connection", "close") // as rejectUnavailable does
	}
	s.closeIfDraining(w)
	w.WriteHeader(a.Status)
	if _, err := w.Write(a.Body); err != nil {
		s.opts.Log.Error(err, "cannot write response", "webhook", c.webhook, "uid", c.request.UID)
	}
	return true
}

// rejectNoLeader answers a write for which there was no leader in time. The client
// retries. A system write must not be denied: its webhook has failurePolicy Ignore.
func (s *Server) rejectNoLeader(w http.ResponseWriter, c *call, cause error) {
	setSpanRejected(c.span, rejectedUnavailable)
	if errors.Is(cause, coordination.ErrProtocol) || webhookconfig.SystemWrite(c.request) != "" {
		s.rejectUnavailable(w, c.webhook, c.request, cause)
		return
	}
	s.opts.Metrics.unavailable(c.webhook)
	s.opts.Log.V(1).Info("no leader", "uid", c.request.UID, "cause", cause.Error())
	s.respond(w, c.request, c.webhook, s.denyUndecided(api.DenialNoLeader, noLeaderMessage))
}

// PeerHandler returns the handler of reviews that other replicas forward.
func (s *Server) PeerHandler() http.Handler {
	validate := s.handler(webhookValidate, s.validator(), true)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.opts.Coordinator.Accepts(r.Header.Get(coordination.HeaderTerm)) {
			refuse(w)
			return
		}
		validate.ServeHTTP(w, r)
	})
}

// refuse answers a review that was forwarded to a replica that does not lead in the
// expected term.
func refuse(w http.ResponseWriter) {
	http.Error(w, coordination.ErrRefused.Error(), http.StatusMisdirectedRequest)
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

func (s *Server) currentView() *snapshot.View {
	v, _ := s.opts.Store.View()
	return v
}

// importedWrite decodes a write that another replica admitted.
func (s *Server) importedWrite(ctx context.Context, p inflight.Pending) (inflight.Write, error) {
	request, err := decodeReview(p.Review)
	if err != nil {
		return inflight.Write{}, err
	}
	v := s.currentView()
	c, err := decodeChange(v, request, s.opts.Now().Add(-p.Age))
	if err == nil {
		err = s.useStored(ctx, v, request, &c)
	}
	if err != nil {
		return inflight.Write{}, fmt.Errorf("%s of %s: %w", request.Operation, refOf(request), err)
	}
	w := s.inFlightWrite(&call{request: request}, c)
	w.Review = func() []byte { return p.Review }
	return w, nil
}
