package annotations

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/background"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// Defaults of Options.
const (
	DefaultDelay = time.Second
	DefaultEvery = 5 * time.Second
	DefaultQueue = 1000
)

const (
	// firstRetry and lastRetry bound the time between attempts at one object.
	minRetry = time.Second
	maxRetry = 5 * time.Minute
	// barredFor is how long no object of a kind is tried once a right is missing.
	forbiddenRetry = time.Minute
)

// Cluster is where marks are written.
type Cluster interface {
	// Write gives an object the marks that are wanted, and no others, and returns
	// the hash of those that it has then: another server may see it otherwise yet.
	// The error is ErrGone, an *RightError, or why it was not written.
	Write(ctx context.Context, object api.Ref, uid types.UID, w *DesiredMarks) (uint64, error)
}

// Options of a Refresher.
type Options struct {
	Store   *snapshot.Store
	Engine  *effective.Engine
	Cluster Cluster
	// Affected has the marks on affected objects written; without it those that
	// are there are taken away.
	Affected bool
	// Delay is how long changes are gathered before they are looked at, Every the
	// least time between two writes of one object: whoever else writes there may
	// not agree. 0 means DefaultDelay and DefaultEvery.
	Delay, Every time.Duration
	// Queue is how many changes are looked at one by one; beyond it, everything is.
	// 0 means DefaultQueue.
	Queue int
	Log   logr.Logger
}

// Refresher keeps marks true, on the replica that leads. Make it with New.
type Controller struct {
	Options
	inventory inventory
	changes   *snapshot.Changes
	pending   pending
	results   counter

	// computing is held by whoever computes: one core at most is ever asked for.
	computeMu sync.Mutex
	throttle  throttle

	// of the goroutine that looks:
	lastView *snapshot.View
	// of the one that writes:
	blockedUntil map[api.PolicyKind]time.Time
}

// New returns a refresher that hears of changes from its store, which must not be
// fed yet.
func New(o Options) *Controller {
	o.Delay, o.Every = cmp.Or(o.Delay, DefaultDelay), cmp.Or(o.Every, DefaultEvery)
	r := &Controller{
		Options: o, changes: snapshot.NewChanges(cmp.Or(o.Queue, DefaultQueue), ignoreEvent), blockedUntil: make(map[api.PolicyKind]time.Time),
	}
	o.Store.Subscribe(r.changes.Record)
	o.Store.Watch(func(seen []snapshot.Observation) { r.changes.RecordMarks(r.inventory.observe(seen)) })
	return r
}

// NeedLeaderElection tells controller-runtime to run a Refresher on the leader.
func (r *Controller) NeedLeaderElection() bool { return true }

type workQueue = workqueue.TypedRateLimitingInterface[api.Ref]

// Start implements manager.Runnable: it writes until ctx ends. It begins with a look
// at everything: whoever led before may have left something.
func (r *Controller) Start(ctx context.Context) error {
	q := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[api.Ref](minRetry, maxRetry),
		workqueue.TypedRateLimitingQueueConfig[api.Ref]{Name: "refresh"})
	var crew sync.WaitGroup
	crew.Go(func() { r.runEnqueuer(ctx, q) })
	crew.Go(func() {
		for r.processNext(ctx, q) {
			// one after the other
		}
	})
	<-ctx.Done()
	q.ShutDown()
	crew.Wait()
	return nil
}

// lookOn looks at what changed, until ctx ends.
func (r *Controller) runEnqueuer(ctx context.Context, q workQueue) {
	for background.Sleep(ctx, r.Delay) {
		if _, ready := r.Store.View(); !ready {
			continue
		}
		if err := r.enqueueChanged(ctx, q); err != nil {
			if errors.Is(err, background.ErrPanic) {
				r.Log.Error(err, "finding stale marks failed; resyncing")
				background.Sleep(ctx, maxRetry)
			}
			r.changes.RecordAll()
			continue
		}
		select {
		case <-r.changes.Wake():
		case <-ctx.Done():
		}
	}
}

// look queues the objects whose marks may be stale. The error is that of ctx, or
// a panic.
func (r *Controller) enqueueChanged(ctx context.Context, q workQueue) (err error) {
	defer background.Recovered(&err, "look")
	r.computeMu.Lock()
	defer r.computeMu.Unlock()
	changed := r.changes.Take()
	v, _ := r.Store.View()
	before := r.lastView
	r.lastView = v
	if changed.All { // as it is at first
		r.enqueue(q, r.inventory.all(""))
		return nil
	}
	t := impactedObjects{engine: r.Engine, throttle: &r.throttle, found: make(map[api.Ref]bool)}
	both := snapshot.Objects(changed.Events)
	for _, o := range both {
		if n, ok := o.(*gateway.Namespace); ok { // it may have opted out, or in
			r.enqueue(q, r.inventory.all(n.Name))
		}
	}
	if err := errors.Join(t.collect(ctx, before, both), t.collect(ctx, v, both)); err != nil {
		return err
	}
	r.enqueue(q, changed.Marked)
	for ref := range t.found {
		if _, ok := r.inventory.get(ref); ok {
			r.enqueue(q, []api.Ref{ref})
		}
	}
	return nil
}

// idle reports whether an event has no bearing on any mark: a mark or a status was
// written, by us most likely, or a constraint, which policies are held to and not made of.
func ignoreEvent(e snapshot.Event) bool {
	_, before := e.Before.(*constraint.Constraint)
	_, after := e.After.(*constraint.Constraint)
	return before || after || e.Before != nil && e.After != nil && snapshot.Same(e.Before, e.After)
}

func (r *Controller) enqueue(q workQueue, objects []api.Ref) {
	for _, ref := range objects {
		r.pending.add(ref)
		q.Add(ref)
	}
}

// next sees to one object, and reports whether there is to be another.
func (r *Controller) processNext(ctx context.Context, q workQueue) bool {
	ref, ended := q.Get()
	if ended {
		return false
	}
	defer q.Done(ref)
	r.pending.start(ref)
	after, err := r.reconcile(ctx, ref)
	if errors.Is(err, background.ErrPanic) {
		r.results.add(resultFailed)
		r.Log.Error(err, "updating marks failed; retrying", "object", ref.String())
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		q.AddRateLimited(ref)
	case after > 0:
		q.AddAfter(ref, after)
	default:
		q.Forget(ref)
		r.pending.finish(ref)
	}
	return true
}
