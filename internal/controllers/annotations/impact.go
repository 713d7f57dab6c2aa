package annotations

import (
	"context"
	"math"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// impact is the set of objects whose marks changes may make stale. It may include more.
type impact map[api.Ref]bool

// collect adds the objects that changes affect in a view: the one before or the one
// after them.
func (imp impact) collect(ctx context.Context, e *effective.Engine, v *snapshot.View, objects []snapshot.Object) error {
	for _, o := range objects {
		imp.addRelated(v, o)
	}
	b := effective.NewBudget(ctx, math.MaxUint64)
	return e.Walk(v, effective.ScopeOf(objects...), false, b, func(e *effective.Effective) error {
		imp.addPath(e)
		return nil
	})
}

// addPath adds the objects and policies of a path.
func (imp impact) addPath(e *effective.Effective) {
	p := &e.Path
	if p.Route != nil {
		imp[p.Route.Ref()] = true
	}
	if p.Gateway != nil {
		imp[p.Gateway.Ref()] = true
		imp[(&gateway.Class{Name: p.Gateway.Class}).Ref()] = true
	}
	if p.Set != nil {
		imp[p.Set.Ref()] = true
	}
	for i := range e.Outcomes {
		imp[e.Ref(e.Outcomes[i].Policy)] = true
	}
}

// addRelated adds the objects that depend on an object even if no path goes through it:
// the object, the policies that target it, and those that have a target in common with
// it.
func (imp impact) addRelated(v *snapshot.View, o snapshot.Object) {
	imp[o.Ref()] = true
	imp.addPoliciesOn(v, o.Ref())
	switch o := o.(type) {
	case *policykind.Policy:
		for _, target := range v.Targets(o) {
			imp.addPoliciesOn(v, target.Ref)
		}
	case *gateway.Grant:
		for p := range v.DependingOn(o) {
			imp[p.Ref()] = true
		}
	case *gateway.Route: // whose requests it may take, or leave
		for _, p := range o.Parents {
			if g := v.GatewayOf(p); g != nil {
				for rival := range v.Router(g, gateway.Reading{}).Rivals(o) {
					imp.addPoliciesOn(v, rival.Route.Ref())
				}
			}
		}
	}
}

func (imp impact) addPoliciesOn(v *snapshot.View, object api.Ref) {
	for p := range v.On(object) {
		imp[p.Ref()] = true
	}
}
