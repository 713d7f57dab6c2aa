package guard

import (
	"context"
	"fmt"

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

// maxLiveReads is the most targets that a policy may have to have them read live, and the
// most objects that are: Gateway API takes at most 16 targets.
const maxLiveReads = 16

// readMissingTargets adds to the view the targets of a policy that it lacks: they may have
// been created a moment ago.
func (g *Guard) readMissingTargets(ctx context.Context, v *snapshot.View, c Change) (*snapshot.View, error) {
	p, ok := c.After.(*policykind.Policy)
	if !ok || g.ReadLive == nil || p.Invalid != nil || len(p.Targets) > maxLiveReads {
		return v, nil
	}
	asked := make(map[api.Ref]bool)
	look := func(ref api.Ref) error {
		if asked[ref] || len(asked) == maxLiveReads {
			return nil
		}
		asked[ref] = true
		o, err := g.ReadLive(ctx, ref)
		if err != nil {
			return fmt.Errorf("get %s: %w", ref, err)
		}
		if o != nil {
			v = v.With(snapshot.Put(o))
		}
		return nil
	}
	for _, t := range p.Targets {
		if t.Refused != "" || t.Selector != nil {
			continue
		}
		if !effective.Exists(v, t) {
			if err := look(t.Ref); err != nil {
				return nil, err
			}
		}
		for _, parent := range missingParents(v, t.Ref) {
			if err := look(parent); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// missingParents returns the parents of a route that a view lacks; none for objects that
// are no routes.
func missingParents(v *snapshot.View, ref api.Ref) []api.Ref {
	r, ok := v.Get(ref).(*gateway.Route)
	if !ok {
		return nil
	}
	var out []api.Ref
	for _, p := range r.Parents {
		if v.Get(p.Ref()) == nil {
			out = append(out, p.Ref())
		}
	}
	return out
}

// readConstraintTargets adds to the view after the write the targets that it lacks: they
// may have been created a moment ago.
func (ev *evaluation) readConstraintTargets(ctx context.Context, c *constraint.Constraint) error {
	absent, _ := ev.after.Absent(c)
	if ev.guard.ReadLive == nil || len(absent) > maxLiveReads {
		return nil
	}
	asked := make(map[api.Ref]bool)
	for _, n := range absent {
		if asked[n.Ref] || n.Ref.Namespace == "" && !gateway.ClusterScoped(n.Ref.PolicyKind()) {
			continue // one in any namespace has no single address
		}
		asked[n.Ref] = true
		o, err := ev.guard.ReadLive(ctx, n.Ref)
		if err != nil {
			return fmt.Errorf("get %s: %w", n, err)
		}
		if o != nil {
			ev.after = ev.after.With(snapshot.Put(o))
		}
	}
	return nil
}
