package annotations

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
)

// controllerName is the name of the controller in the metrics of controller-runtime.
const controllerName = "overrule-annotations"

const (
	// maxChanges is how many changes are processed individually; more cause a full
	// resync. changesDelay is how long they are collected first.
	maxChanges   = 1000
	changesDelay = time.Second
	// minDelay is the time between two writes of an object, because other clients may
	// write it, too. It is also the first delay after a failure, and maxDelay the last.
	minDelay, maxDelay = 5 * time.Second, 5 * time.Minute
	// checkDelay is when an object that was written is checked again.
	checkDelay = time.Minute
)

// Options of a Controller.
type Options struct {
	Store  *snapshot.Store
	Engine *effective.Engine
	// Write sets the marks of an object and removes all others. It does nothing if the
	// object does not exist any more.
	Write func(ctx context.Context, object api.Ref, uid types.UID, want *Marks) error
	// Affected enables the marks on affected objects; otherwise existing ones are
	// removed.
	Affected bool
	Log      logr.Logger
}

// Controller keeps marks up to date, on the leader. Create it with New.
type Controller struct {
	opts    Options
	changes *snapshot.Changes
	// seen has the objects that may have marks: api.Ref to the last snapshot.Observation,
	// without its version.
	seen sync.Map

	// Of the term in which it leads; its only worker uses them.
	queue    workqueue.TypedRateLimitingInterface[api.Ref]
	lastView *snapshot.View // of the last changes; nil causes a full resync
}

// New returns a Controller that observes its store, which must not contain objects yet.
func New(o Options) *Controller {
	c := &Controller{opts: o, changes: snapshot.NewChanges(maxChanges, ignoreEvent)}
	o.Store.Subscribe(c.changes.Record)
	o.Store.Watch(func(seen []snapshot.Observation) { c.changes.RecordMarks(c.observe(seen)) })
	return c
}

// ignoreEvent reports whether an event cannot affect marks: a write of marks or of a
// status, most likely by this controller.
func ignoreEvent(e snapshot.Event) bool {
	return e.Before != nil && e.After != nil && snapshot.Same(e.Before, e.After)
}

// observe records observations and returns the objects that differ in uid or marks.
func (c *Controller) observe(observations []snapshot.Observation) (changed []api.Ref) {
	for _, s := range observations {
		if s.Deleted || !hasMarks(s.Ref.PolicyKind()) {
			c.seen.Delete(s.Ref)
			continue
		}
		s.Version = ""
		if before, _ := c.seen.Swap(s.Ref, s); before != s {
			changed = append(changed, s.Ref)
		}
	}
	return changed
}

// logOf returns the log of an object, or of the controller if there is none.
func (c *Controller) logOf(ref *api.Ref) logr.Logger {
	if ref == nil {
		return c.opts.Log
	}
	return c.opts.Log.WithValues("object", ref.String())
}

// Start implements manager.Runnable: it updates marks until ctx ends. It begins with a
// full resync, because the previous leader may have left stale marks. It can be called
// again after it returned.
func (c *Controller) Start(ctx context.Context) error {
	c.lastView = nil
	run, err := controller.NewTypedUnmanaged(controllerName, controller.TypedOptions[api.Ref]{
		Reconciler: c, RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[api.Ref](minDelay, maxDelay),
		SkipNameValidation: new(true),  // each term has a controller of its own
		UsePriorityQueue:   new(false), // it leaves workqueue_depth as it was when the term ended
		LogConstructor:     c.logOf,
	})
	if err == nil {
		err = run.Watch(source.TypedFunc[api.Ref](c.watch))
	}
	if err == nil {
		err = run.Start(ctx)
	}
	return err
}
