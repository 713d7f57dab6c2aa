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
	// minRetry and maxRetry bound the time between attempts to update one object.
	minRetry = time.Second
	maxRetry = 5 * time.Minute
	// forbiddenRetry is how long objects of a kind are skipped after a forbidden
	// write.
	forbiddenRetry = time.Minute
)

// Cluster is where marks are written.
type Cluster interface {
	// Write sets the marks of an object, removes all others, and returns the hash of
	// the marks that it then has: another replica with a different cache may write
	// different ones. The error is ErrGone, a *RightError, or another reason why it
	// was not written.
	Write(ctx context.Context, object api.Ref, uid types.UID, w *DesiredMarks) (uint64, error)
}

// Options of a Controller.
type Options struct {
	Store   *snapshot.Store
	Engine  *effective.Engine
	Cluster Cluster
	// Affected enables the marks on affected objects; otherwise existing ones are
	// removed.
	Affected bool
	// Delay is how long changes are collected before they are processed, Every the
	// minimum time between two writes of one object, because other clients may write
	// it, too. 0 means DefaultDelay and DefaultEvery.
	Delay, Every time.Duration
	// Queue is the maximum number of changes that are processed individually; more
	// cause a full resync. 0 means DefaultQueue.
	Queue int
	Log   logr.Logger
}

// Controller keeps marks up to date, on the leader. Create it with New.
type Controller struct {
	opts      Options
	inventory inventory
	changes   *snapshot.Changes
	pending   pending
	results   counter

	// computeMu serializes computations: they use at most one core.
	computeMu sync.Mutex
	throttle  throttle

	// lastView belongs to the goroutine that enqueues.
	lastView *snapshot.View
	// blockedUntil belongs to the goroutine that writes.
	blockedUntil map[api.PolicyKind]time.Time
}

// New returns a Controller that observes its store, which must not contain objects yet.
func New(o Options) *Controller {
	o.Delay, o.Every = cmp.Or(o.Delay, DefaultDelay), cmp.Or(o.Every, DefaultEvery)
	c := &Controller{
		opts: o, changes: snapshot.NewChanges(cmp.Or(o.Queue, DefaultQueue), ignoreEvent), blockedUntil: make(map[api.PolicyKind]time.Time),
	}
	o.Store.Subscribe(c.changes.Record)
	o.Store.Watch(func(seen []snapshot.Observation) { c.changes.RecordMarks(c.inventory.observe(seen)) })
	return c
}

// NeedLeaderElection returns true: the Controller runs on the leader.
func (c *Controller) NeedLeaderElection() bool { return true }

type workQueue = workqueue.TypedRateLimitingInterface[api.Ref]

// Start implements manager.Runnable: it updates marks until ctx ends. It begins with a
// full resync, because the previous leader may have left stale marks. It can be called
// again after it returned.
func (c *Controller) Start(ctx context.Context) error {
	q := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[api.Ref](minRetry, maxRetry),
		workqueue.TypedRateLimitingQueueConfig[api.Ref]{Name: "refresh"})
	defer c.reset()
	var group sync.WaitGroup
	group.Go(func() { c.runEnqueuer(ctx, q) })
	group.Go(func() {
		for c.processNext(ctx, q) {
			// one at a time
		}
	})
	<-ctx.Done()
	q.ShutDown()
	group.Wait()
	return nil
}

// reset discards the state of a term, so that a replica that does not lead keeps no view
// and reports nothing as pending, and the next term begins with a full resync.
func (c *Controller) reset() {
	c.lastView = nil
	clear(c.blockedUntil)
	c.pending.reset()
	c.changes.RecordAll()
}

// runEnqueuer enqueues the objects that changes affect, until ctx ends.
func (c *Controller) runEnqueuer(ctx context.Context, q workQueue) {
	for background.Sleep(ctx, c.opts.Delay) {
		if _, ready := c.opts.Store.View(); !ready {
			continue
		}
		if err := c.enqueueChanged(ctx, q); err != nil {
			if errors.Is(err, background.ErrPanic) {
				c.opts.Log.Error(err, "finding stale marks failed; resyncing")
				background.Sleep(ctx, maxRetry)
			}
			c.changes.RecordAll()
			continue
		}
		select {
		case <-c.changes.Wake():
		case <-ctx.Done():
		}
	}
}

// enqueueChanged enqueues the objects whose marks may be stale. The error is that of
// ctx, or a panic.
func (c *Controller) enqueueChanged(ctx context.Context, q workQueue) (err error) {
	defer background.RecoverError(&err, "find stale marks")
	c.computeMu.Lock()
	defer c.computeMu.Unlock()
	changed := c.changes.Take()
	v, _ := c.opts.Store.View()
	before := c.lastView
	c.lastView = v
	if changed.All { // true at the start
		c.enqueue(q, c.inventory.all(""))
		return nil
	}
	impacted := impactedObjects{engine: c.opts.Engine, throttle: &c.throttle, found: make(map[api.Ref]bool)}
	objects := snapshot.Objects(changed.Events)
	for _, o := range objects {
		if n, ok := o.(*gateway.Namespace); ok { // it may have opted out or in
			c.enqueue(q, c.inventory.all(n.Name))
		}
	}
	if err := errors.Join(impacted.collect(ctx, before, objects), impacted.collect(ctx, v, objects)); err != nil {
		return err
	}
	c.enqueue(q, changed.Marked)
	for ref := range impacted.found {
		if _, ok := c.inventory.get(ref); ok {
			c.enqueue(q, []api.Ref{ref})
		}
	}
	return nil
}

// ignoreEvent reports whether an event cannot affect marks: a write of marks or of a
// status, most likely by this controller, or of a constraint, which does not change
// effective policies.
func ignoreEvent(e snapshot.Event) bool {
	_, before := e.Before.(*constraint.Constraint)
	_, after := e.After.(*constraint.Constraint)
	return before || after || e.Before != nil && e.After != nil && snapshot.Same(e.Before, e.After)
}

func (c *Controller) enqueue(q workQueue, objects []api.Ref) {
	for _, ref := range objects {
		c.pending.add(ref)
		q.Add(ref)
	}
}

// processNext processes one object, and reports whether to continue.
func (c *Controller) processNext(ctx context.Context, q workQueue) bool {
	ref, ended := q.Get()
	if ended {
		return false
	}
	defer q.Done(ref)
	if ctx.Err() != nil {
		return true // a queue that is shut down has to be emptied
	}
	c.pending.start(ref)
	after, err := c.reconcile(ctx, ref)
	if errors.Is(err, background.ErrPanic) {
		c.results.add(resultFailed)
		c.opts.Log.Error(err, "updating marks failed; retrying", "object", ref.String())
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		q.AddRateLimited(ref)
	case after > 0:
		q.AddAfter(ref, after)
	default:
		q.Forget(ref)
		c.pending.finish(ref)
	}
	return true
}
