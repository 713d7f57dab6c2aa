package webhook

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/util/flowcontrol"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/coordination"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/internal/webhookconfig"
)

// Defaults of Options.
const (
	DefaultTimeout = webhookconfig.DefaultTimeout
	// DefaultBodyLimit fits a review with two objects of 1.5 MiB, the limit of etcd.
	// Each byte of an object can take six in JSON (\u003c).
	DefaultBodyLimit = 20 << 20
)

// Options of a Server.
type Options struct {
	Store *snapshot.Store
	Guard *guard.Guard
	// Readers decides which objects a user is allowed to get. Without it,
	// EffectivePolicyReviews are denied.
	Readers Readers
	// InFlight, if set, tracks admitted writes that are not in the store yet.
	InFlight *inflight.Log
	// Coordinator, if set, decides which replica evaluates a write that is not a dry
	// run. It requires InFlight.
	Coordinator Coordinator
	// CheckFresh, if set, returns an error if the store is too stale to evaluate a
	// write of the kind (cache.Watcher.CheckFresh).
	CheckFresh func(api.PolicyKind) error
	// Await, if set, waits until the store receives all changes again, or until the
	// context ends (cache.Watcher.Await).
	Await func(context.Context)
	// Stored reads a policy from the API server in the version that is read, nil if
	// it does not exist (cache.Watcher.Stored). It is required for writes in another
	// version if the store does not have the object that they replace.
	Stored func(context.Context, *policykind.Kind, api.Ref) (snapshot.Object, error)
	// Replica is the name of this server in the audit log.
	Replica string
	// Enforcement is the effect of a denial.
	Enforcement guard.Enforcement
	// Timeout is how long the API server waits for a response if the request does not
	// say it; 0 means DefaultTimeout.
	Timeout time.Duration
	// MaxTimeout is the longest timeout that is used, whatever the request says: that of
	// coordination.Bounds. 0 means that of webhook configurations.
	MaxTimeout time.Duration
	// ResponseReserve is the part of a timeout that is left for the response to arrive,
	// LateReserve the same for writes that the API server admits if it does not; 0 means
	// that they are computed from the timeout. Both are at most half of it.
	ResponseReserve, LateReserve time.Duration
	// IgnoreFailures is set if all webhooks have failurePolicy Ignore.
	IgnoreFailures bool
	// Refresh is set if annotations are updated when writes to other objects make them
	// stale. Without it, they say that they are about the last write.
	Refresh bool
	// MaxConcurrent is the number of reviews that are evaluated at once, MaxQueue
	// the number that wait; 0 means two for each CPU, and DefaultQueue.
	MaxConcurrent, MaxQueue int
	// MaxBytes is the memory for reviews at once, BodyLimit the size of the largest
	// review; 0 means DefaultMaxBytes, and DefaultBodyLimit.
	MaxBytes, BodyLimit int64
	// MaxObject is the size in bytes, as JSON, of the largest custom resource that
	// can be stored; 0 means DefaultMaxObject.
	MaxObject int64
	Metrics   *Metrics
	// Tokens, if set, accept the last element of request paths.
	Tokens Tokens
	// Events, if set, records an Event for each denial.
	Events EventRecorder
	// Tracer, if set, starts a span for each review and for its parts.
	Tracer trace.Tracer
	Log    logr.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Server answers admission reviews. Create it with New.
type Server struct {
	opts     Options
	limiter  limiter
	lane     *lane // of what is not stored
	events   flowcontrol.PassiveRateLimiter
	draining atomic.Bool
	// longTimeout is the last timeout above MaxTimeout, nil if there was none.
	longTimeout atomic.Pointer[longTimeout]
}

// New returns a server.
func New(o Options) *Server {
	o.setLimitDefaults()
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	// No client can occupy a slot or memory for longer.
	o.MaxTimeout = min(cmp.Or(o.MaxTimeout, webhookconfig.MaxTimeout), webhookconfig.MaxTimeout)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	return &Server{
		opts: o, limiter: newLimiter(o), lane: newLane(o.Metrics.waiting),
		events: flowcontrol.NewTokenBucketPassiveRateLimiter(eventRate, eventBurst),
	}
}

// Drain makes every later response close its connection. Otherwise the API server
// keeps a connection to one pod alive for as long as it can.
func (s *Server) Drain() { s.draining.Store(true) }

// Coordinator decides which replica evaluates a write (coordination.Coordinator).
type Coordinator interface {
	Await(ctx context.Context, timeout time.Duration, except coordination.Place) (coordination.Place, error)
	Check(p coordination.Place, timeout time.Duration) error
	Accepts(term string) bool
	Forward(ctx context.Context, p coordination.Place, r coordination.Review) (coordination.Answer, error)
}
