package guard

import (
	"context"
	"fmt"
	"iter"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// ReadLiveFunc reads an object that the cache does not have yet from the API server. It
// returns nil if the object does not exist.
type ReadLiveFunc func(ctx context.Context, ref api.Ref) (snapshot.Object, error)

// readLive reads an object from the API server.
func (ev *write) readLive(ctx context.Context, ref api.Ref) (o snapshot.Object, err error) {
	err = ev.budget.Wait(func() error {
		o, err = ev.guard.ReadLive(ctx, ref)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", ref, err)
	}
	return o, nil
}

// liveReader reads objects that a view lacks from the API server, each once: they may have been
// created a moment ago.
type liveReader struct {
	ev    *write
	view  *snapshot.View
	asked []api.Ref
}

// add adds an object to the view, if it exists.
func (r *liveReader) add(ctx context.Context, ref api.Ref) error {
	if slices.Contains(r.asked, ref) || len(r.asked) == maxLiveReads {
		return nil
	}
	r.asked = append(r.asked, ref)
	o, err := r.ev.readLive(ctx, ref)
	if err == nil && o != nil {
		r.view = r.view.With(snapshot.Put(o))
	}
	return err
}

// addParents adds parents of a route or listener set.
func (r *liveReader) addParents(ctx context.Context, parents iter.Seq[gateway.Parent]) error {
	for p := range parents {
		if r.view.Get(p.Ref()) == nil {
			if err := r.add(ctx, p.Ref()); err != nil {
				return err
			}
		}
	}
	return nil
}

// readMissing returns the view before the write with what it lacks: the targets of a policy and
// their parents, or the parents that the write adds to a route or listener set.
func (ev *evaluation) readMissing(ctx context.Context) (*snapshot.View, error) {
	if ev.guard.ReadLive == nil {
		return ev.before, nil
	}
	r := &liveReader{ev: ev.write, view: ev.before}
	p, ok := ev.change.After.(*policykind.Policy)
	if !ok {
		err := r.addParents(ctx, newParents(ev.change))
		return r.view, err
	}
	if p.Invalid != nil || len(p.Targets) > maxLiveReads {
		return r.view, nil
	}
	for _, t := range p.Targets {
		if t.Refused != "" || t.Selector != nil {
			continue
		}
		if !effective.Exists(r.view, p.Kind, t) {
			if err := r.add(ctx, t.Ref); err != nil {
				return nil, err
			}
		}
		if err := r.addParents(ctx, slices.Values(parentsOf(r.view.Get(t.Ref)))); err != nil {
			return nil, err
		}
	}
	return r.view, nil
}

// readConstraintTargets adds to the view after the write the targets that it lacks: they
// may have been created a moment ago.
func (ev constraintWrite) readConstraintTargets(ctx context.Context, c *constraint.Constraint) error {
	absent, _ := ev.after.Absent(c)
	if ev.guard.ReadLive == nil || len(absent) > maxLiveReads {
		return nil
	}
	r := &liveReader{ev: ev.write, view: ev.after}
	for _, n := range absent {
		if n.Ref.Namespace == "" && !gateway.ClusterScoped(n.Ref.PolicyKind()) {
			continue // one in any namespace has no single address
		}
		if err := r.add(ctx, n.Ref); err != nil {
			return err
		}
	}
	ev.after = r.view
	return nil
}
