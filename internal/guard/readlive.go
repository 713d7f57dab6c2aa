package guard

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

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

// readLive reads an object from the API server.
func (ev *evaluation) readLive(ctx context.Context, ref api.Ref) (o snapshot.Object, err error) {
	err = ev.budget.Wait(func() error {
		o, err = ev.guard.ReadLive(ctx, ref)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", ref, err)
	}
	return o, nil
}

// readSchema reads the schema of a policy kind from the API server.
func (ev *evaluation) readSchema(ctx context.Context, kind api.PolicyKind) (schema *apiextensionsv1.JSONSchemaProps, err error) {
	err = ev.budget.Wait(func() error {
		schema, err = ev.guard.KindReader.Schema(ctx, kind)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get definition of %s: %w", kind, err)
	}
	return schema, nil
}

// readMissingTargets returns the view before the write with the targets of a policy that it
// lacks: they may have been created a moment ago.
func (ev *evaluation) readMissingTargets(ctx context.Context) (*snapshot.View, error) {
	v := ev.before
	p, ok := ev.change.After.(*policykind.Policy)
	if !ok || ev.guard.ReadLive == nil || p.Invalid != nil || len(p.Targets) > maxLiveReads {
		return v, nil
	}
	asked := make(map[api.Ref]bool)
	look := func(ref api.Ref) error {
		if asked[ref] || len(asked) == maxLiveReads {
			return nil
		}
		asked[ref] = true
		o, err := ev.readLive(ctx, ref)
		if err != nil {
			return err
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
		if !effective.Exists(v, p.Kind, t) {
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
		o, err := ev.readLive(ctx, n.Ref)
		if err != nil {
			return err
		}
		if o != nil {
			ev.after = ev.after.With(snapshot.Put(o))
		}
	}
	return nil
}
