package annotations

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/background"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// changesRef is in the queue for the objects that changes affect, which are not known yet.
var changesRef api.Ref

// watch is the source of the controller.
func (c *Controller) watch(ctx context.Context, q workqueue.TypedRateLimitingInterface[api.Ref]) error {
	c.queue = q
	go func() {
		for ctx.Err() == nil {
			q.AddAfter(changesRef, changesDelay)
			select {
			case <-c.changes.Wake():
			case <-ctx.Done():
			}
		}
	}()
	return nil
}

// Reconcile implements reconcile.TypedReconciler: it writes an object if its marks differ
// from the computed ones, and has it checked again: the mutating webhook of a replica with
// another cache may have changed what was written.
func (c *Controller) Reconcile(ctx context.Context, ref api.Ref) (reconcile.Result, error) {
	v, ready := c.opts.Store.View()
	switch {
	case ctx.Err() != nil: // the queue is being emptied
		return reconcile.Result{}, nil
	case !ready:
		return reconcile.Result{RequeueAfter: changesDelay}, nil
	case ref == changesRef:
		return reconcile.Result{}, c.enqueueChanged(ctx)
	}
	value, _ := c.seen.Load(ref)
	has, known := value.(snapshot.Observation)
	o := v.Get(ref)
	if !known || o == nil || has.Marks.Deleting || has.Marks.OptedOut || v.NamespaceLabels(ref.Namespace)[api.LabelRefresh] == "false" {
		return reconcile.Result{}, nil
	}
	start := time.Now()
	want, err := c.marksOf(ctx, v, o, has.Marks)
	pause(ctx, start)
	if err != nil || want.Hash() == has.Marks.Hash {
		return reconcile.Result{}, err
	}
	if len(want.LeftOut) > 0 {
		c.opts.Log.Info("too many conditions; some are omitted", "object", ref.String(), "omitted", want.LeftOut)
	}
	if err := c.opts.Write(ctx, ref, has.UID, want); err != nil && ctx.Err() == nil {
		return reconcile.Result{}, errors.New(api.RedactToken(err.Error()))
	}
	return reconcile.Result{RequeueAfter: checkDelay}, nil
}

// pause waits for as long as the work since start took: admission has priority.
func pause(ctx context.Context, start time.Time) { background.Sleep(ctx, time.Since(start)) }

// enqueueChanged enqueues the objects whose marks may be stale.
func (c *Controller) enqueueChanged(ctx context.Context) error {
	defer pause(ctx, time.Now())
	changed := c.changes.Take()
	v, _ := c.opts.Store.View()
	before, found, objects := c.lastView, make(impact), snapshot.Objects(changed.Events)
	c.lastView = nil // an error or a panic causes a full resync
	if changed.All || before == nil || slices.ContainsFunc(objects, isNamespace) {
		c.seen.Range(func(ref, _ any) bool {
			found[ref.(api.Ref)] = true
			return true
		})
	} else if err := errors.Join(found.collect(ctx, c.opts.Engine, before, objects), found.collect(ctx, c.opts.Engine, v, objects)); err != nil {
		return err
	}
	for _, ref := range changed.Marked {
		found[ref] = true
	}
	for ref := range found {
		c.queue.AddRateLimited(ref)
	}
	c.lastView = v
	return nil
}

// isNamespace reports whether an object is a namespace: it may have opted out or in, and
// selectors may match its labels.
func isNamespace(o snapshot.Object) bool {
	_, ok := o.(*gateway.Namespace)
	return ok
}
