package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/client-go/util/flowcontrol"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Defaults of Options.
const (
	DefaultTimeout = 3 * time.Second
	// DefaultBodyLimit is of two objects of the 1.5 MiB that etcd takes, each of whose
	// bytes may be six in JSON (\u003c), and the rest of a review.
	DefaultBodyLimit = 20 << 20
)

// Options of a Server.
type Options struct {
	Store *snapshot.Store
	Guard *guard.Guard
	// Flight, if set, keeps in mind what was admitted and is not in the store
	// yet.
	InFlight *inflight.Log
	// Current, if set, tells why the write of an object of a kind may not be
	// judged by what the store holds, as it is too old (watch.Watcher.Current).
	Current func(api.PolicyKind) error
	// Await, if set, waits until the store hears of all changes, or until the
	// context ends (watch.Watcher.Await).
	Await func(context.Context)
	// Stored reads a policy from the API server in the version that is read, nil if
	// there is none (watch.Watcher.Stored). Writes in another version need it where
	// the store does not have what they replace.
	Stored func(context.Context, *policykind.Kind, api.Ref) (snapshot.Object, error)
	// Replica is the name of this server for the audit log.
	Replica string
	// Enforcement is what is done about a denial.
	Enforcement guard.Enforcement
	// MaxConcurrent reviews are judged at once, and MaxQueue more wait; 0 means
	// two for each CPU, and DefaultQueue.
	MaxConcurrent, MaxQueue int
	// MaxBytes of reviews are held at once, and BodyLimit is the largest one; 0
	// means DefaultRoom, and DefaultBodyLimit.
	MaxBytes, BodyLimit int64
	// MaxObject is the size in bytes, as JSON, of the largest custom resource
	// that is stored; 0 means DefaultMaxObject.
	MaxObject int64
	Metrics   *Metrics
	// Tokens, if set, are what a path has to end with.
	Tokens Tokens
	// Events, if set, are recorded of denials.
	Events EventRecorder
	// Tracer, if set, makes a span of each review and of its parts.
	Tracer trace.Tracer
	Log    logr.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Server answers admission reviews. Make it with New.
type Server struct {
	Options
	gate     gate
	events   flowcontrol.PassiveRateLimiter
	draining atomic.Bool
}

// New returns a server.
func New(o Options) *Server {
	o.bounded()
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	return &Server{
		Options: o, gate: newGate(o),
		events: flowcontrol.NewTokenBucketPassiveRateLimiter(eventRate, eventBurst),
	}
}

// Drain makes every answer from now on ask its client to go elsewhere: the API
// server keeps a connection to one pod alive for as long as it can.
func (s *Server) Drain() { s.draining.Store(true) }

// door makes a handler of a judge: room, decode, readiness, ask, answer. The
// time of a call runs from here: the API server's does.
func (s *Server) door(name string, j judge) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := s.Now()
		ctx, span := s.begin(r.Context(), r.Header, name)
		defer span.End()
		ctx, cancel := context.WithTimeout(ctx, timeout(r))
		defer cancel()
		_, arrival := s.part(ctx, spanReceive)
		l, ok := s.gate.take(ctx, r.ContentLength)
		if !ok {
			arrival.End()
			turned(span, whyOverloaded)
			s.turnAway(w, r, name, j)
			return
		}
		defer l.drop()
		request, err := s.receive(ctx, w, r)
		arrival.End()
		if err != nil {
			turned(span, whyNoReview)
			s.refuse(w, r, name, j, err)
			return
		}
		s.await(ctx)
		view, err := s.whole(kindOf(request))
		if err != nil {
			turned(span, whyUnavailable)
			s.unavailable(w, name, request, err)
			return
		}
		a := s.spared(request, s.ask(ctx, view, request, l, j))
		s.sign(&a, name)
		kind := kindLabel(view, request)
		tell(span, kind, request, a)
		if !isCanary(request) {
			s.Metrics.observe(name, kind, request.Operation, a, s.Now().Sub(start))
		}
		s.log(name, request, a)
		s.record(request, a)
		s.answer(w, request, name, a)
	})
}

// answer writes an answer. Whoever came before the server drained goes
// elsewhere, too.
func (s *Server) answer(w http.ResponseWriter, r *admissionv1.AdmissionRequest, door string, a answer) {
	s.sendAway(w)
	if err := writeAnswer(w, r, a); err != nil {
		s.Log.Error(err, "write answer", "webhook", door, "uid", r.UID)
	}
}

// sendAway asks a client to go elsewhere if the server drains.
func (s *Server) sendAway(w http.ResponseWriter) {
	if s.draining.Load() {
		w.Header().Set("Connection", "close")
	}
}

// failed answers for a write that could not be judged: no write may be crafted
// to pass unjudged.
func (s *Server) failed(reason, message string) answer {
	a := deny(reason, printable(message)).under(s.Enforcement, reason)
	if s.Enforcement == guard.EnforceWarn {
		a.Warnings = []string{warning(guard.Finding{What: "would be denied: " + message})}
	}
	return a
}

// validate decides.
func (s *Server) validate(ctx context.Context, v *snapshot.View, r *admissionv1.AdmissionRequest) answer {
	if r.SubResource == subresourceScale && r.Operation == admissionv1.Update {
		return s.failed(string(api.ReasonNotRead), scaled(r))
	}
	c, err := change(v, r, s.Now())
	switch {
	case errors.Is(err, snapshot.ErrKind), r.SubResource != "" && !changesMore(v, r):
		return allow() // a status has no part in anything
	case err != nil:
		return s.failed(string(api.ReasonInvalid), err.Error())
	case s.tooLarge(r):
		return s.failed(string(api.ReasonTooMuch), s.isTooLarge(r))
	}
	if err := s.asStored(ctx, v, r, &c); err != nil {
		return s.undecided(reasonFailed, fmt.Sprintf("overrule could not judge this write: %v; try again in a second", err))
	}
	if statusOnly(r, c) {
		return allow()
	}
	a, err := s.decide(ctx, v, r, c)
	unseen, _ := errors.AsType[*guard.UnlistedKindError](err)
	switch {
	case unseen != nil:
		return s.undecided("PoliciesUnlisted", printable(unseen.Error()))
	case errors.Is(err, guard.ErrRights):
		return s.unanswered(err)
	case err != nil:
		return s.failed(reasonFailed, fmt.Sprintf("overrule could not judge this write: %v; try again", err))
	}
	return a
}

// unanswered answers where the API server did not say who may do what.
func (s *Server) unanswered(err error) answer {
	message := fmt.Sprintf("overrule could not judge this write: %v; try again in a second", err)
	return s.undecided("RightsUnknown", message)
}

// mutate writes our annotation. It never denies: validating does, and sees the
// same write.
func (s *Server) mutate(ctx context.Context, v *snapshot.View, r *admissionv1.AdmissionRequest) answer {
	a := allow()
	c, err := change(v, r, s.Now())
	if err != nil || c.After == nil || r.SubResource != "" {
		return a
	}
	ctx, cancel := aPart(ctx, 3)
	defer cancel()
	ops, err := s.annotate(v, r, c, effective.NewBudget(ctx, guard.DefaultBudget))
	if err != nil {
		s.Log.V(1).Info("no annotation", "uid", r.UID, "reason", err.Error())
		return a
	}
	if len(ops) > 0 {
		if err := a.patch(ops); err != nil {
			s.Log.Error(err, "make a patch", "uid", r.UID)
		}
	}
	return a
}

// aPart is one part of so many of the time that is left: a third of it for what a
// write does, which is told if that is quickly known, as its writer waits for the
// judgement yet.
func aPart(ctx context.Context, of time.Duration) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/of)
}

// unpatched is the answer of mutating where it fails, unasked that where there
// is too much to do.
func unpatched(string, string) answer { return allow() }

func unasked() answer { return allow() }

// refuse answers a request whose review cannot be evaluated. What is in an object
// must not lead to an HTTP error, which failurePolicy Ignore lets pass: a review
// whose uid is known is denied.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, door string, j judge, err error) {
	b, ok := errors.AsType[*reviewError](err)
	if !ok {
		b = &reviewError{status: http.StatusBadRequest}
	}
	s.Metrics.refused(door)
	s.Log.V(1).Info("no review", "webhook", door, "uid", b.uid, "reason", err.Error())
	if b.uid == "" {
		s.sendAway(w)
		http.Error(w, err.Error(), b.status)
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, DefaultRoom)) // a client may read its answer only after all is sent
	s.answer(w, &admissionv1.AdmissionRequest{UID: b.uid}, door, j.failed(b.code(), b.code()+": overrule cannot evaluate this write: "+err.Error()))
}

const (
	// margin is what an answer takes on its way back, where the CPU is busy: a
	// denial that comes too late is none.
	margin = 500 * time.Millisecond
	// longest is the most that a webhook configuration gives a call: nobody who
	// reaches the port holds a place or a review for more.
	longest = 30 * time.Second
)

// timeout returns how long a request may take: the API server says so, rounded
// up to a second, and gives up a little before.
func timeout(r *http.Request) time.Duration {
	d, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || d <= 0 {
		d = DefaultTimeout
	}
	d = min(d, longest)
	return max(d-margin, d/2)
}

// moreByStatus are the kinds whose subresources change more than their status, beside
// policies, whose status stores all of them in the version in which it is written.
var moreByStatus = []api.PolicyKind{{Kind: gateway.KindNamespace}, {Kind: gateway.KindService}, policykind.KindDefinition}

func changesMore(v *snapshot.View, r *admissionv1.AdmissionRequest) bool {
	return slices.Contains(moreByStatus, kindOf(r)) || r.SubResource == subresourceStatus && v.Kind(kindOf(r)) != nil
}

const subresourceScale = "scale"

// scaled says what to do in place of a write of a scale: it has a number alone,
// and not the policy that this is written to. It is sent where it writes a field that
// is read, or the policy in another version.
func scaled(r *admissionv1.AdmissionRequest) string {
	return fmt.Sprintf("%s: the scale of %s/%s in namespace %q can change more of the policy than it shows, so its write is not evaluated; edit the policy itself",
		api.ReasonNotRead, r.Resource.Resource, r.Name, r.Namespace)
}

func kindOf(r *admissionv1.AdmissionRequest) api.PolicyKind {
	return api.PolicyKind{Group: r.Kind.Group, Kind: r.Kind.Kind}
}

// kindLabel names the kind of a request for the metrics. Whoever reaches the
// port can ask for any kind: only those that are judged have a name there.
func kindLabel(v *snapshot.View, r *admissionv1.AdmissionRequest) string {
	k := kindOf(r)
	if v.Kind(k) == nil && !gateway.Known(k) && !slices.Contains(ownKinds, k) {
		return "other"
	}
	return k.String()
}

// ownKinds are judged beside policies and what paths are made of.
var ownKinds = []api.PolicyKind{policykind.KindProfile, policykind.KindDefinition, constraint.Kind, constraint.ClusterKind}

// log writes one line for a decision, never what an object holds. That of a
// write that would have been denied is not for debugging alone: in a roll-out
// it is what there is to read.
func (s *Server) log(door string, r *admissionv1.AdmissionRequest, a answer) {
	level := 1
	if a.Allowed && a.reason != "" && !isCanary(r) {
		level = 0
	}
	l := s.Log.V(level)
	if !l.Enabled() {
		return // what it would say is not free
	}
	l.Info("decision", "webhook", door, "uid", r.UID, "operation", r.Operation,
		"kind", kindOf(r).String(), "namespace", r.Namespace, "name", r.Name,
		"allowed", a.Allowed, "reason", a.reason, "warnings", len(a.Warnings),
		"patched", len(a.Patch) > 0, "dryRun", r.DryRun != nil && *r.DryRun, "judgedOn", a.version())
}
