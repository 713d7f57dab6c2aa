package annotations

import (
	"context"
	"iter"
	"math"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// impactedObjects collects the objects whose marks changes may make stale. It may
// include more.
type impactedObjects struct {
	engine   *effective.Engine
	throttle *throttle
	found    map[api.Ref]bool
	last     gateway.Path // the previous path, which has most objects in common with the next
}

// collect adds the objects that changes affect in a view: the one before or the one
// after them.
func (imp *impactedObjects) collect(ctx context.Context, v *snapshot.View, objects []snapshot.Object) error {
	for _, o := range objects {
		imp.addRelated(v, o)
	}
	b := effective.NewBudget(ctx, math.MaxUint64)
	return imp.engine.Walk(v, effective.ScopeOf(objects...), false, b, func(e *effective.Effective) error {
		imp.addPath(e)
		return imp.throttle.step(ctx)
	})
}

// addPath adds the objects and policies of a path.
func (imp *impactedObjects) addPath(e *effective.Effective) {
	p, last := &e.Path, &imp.last
	if p.Route != nil && p.Route != last.Route {
		imp.found[p.Route.Ref()] = true
	}
	if p.Gateway != nil && p.Gateway != last.Gateway {
		imp.found[p.Gateway.Ref()] = true
		imp.found[(&gateway.Class{Name: p.Gateway.Class}).Ref()] = true
	}
	if p.Set != nil && p.Set != last.Set {
		imp.found[p.Set.Ref()] = true
	}
	imp.last = *p
	for i := range e.Outcomes {
		imp.found[e.Ref(e.Outcomes[i].Policy)] = true
	}
}

// addRelated adds the objects that depend on an object even if no path goes through it:
// the object, the policies that target it, and those that have a target in common with
// it.
func (imp *impactedObjects) addRelated(v *snapshot.View, o snapshot.Object) {
	imp.found[o.Ref()] = true
	imp.addPoliciesOn(v, o.Ref())
	switch o := o.(type) {
	case *policykind.Policy:
		for _, target := range v.Targets(o) {
			imp.addPoliciesOn(v, target.Ref)
		}
	case *gateway.Grant:
		for _, to := range o.To {
			imp.addPolicies(v.TargetsIn(api.PolicyKind{Group: to.Group, Kind: to.Kind}, o.Namespace))
			imp.addPolicies(v.Selecting(api.PolicyKind{Group: to.Group, Kind: to.Kind}))
		}
	case *gateway.Route: // whose requests it may take, or leave
		for _, p := range o.Parents {
			if g := v.GatewayOf(p); g != nil {
				for rival := range v.Router(g, gateway.Reading{}).Rivals(o) {
					imp.addPoliciesOn(v, rival.Route.Ref())
				}
			}
		}
	case *gateway.Namespace: // selectors may match its labels
		for _, kind := range slices.Concat(gateway.GatewayKinds, []string{gateway.KindService}) {
			imp.addPolicies(v.Selecting(hierarchyKind(kind)))
		}
	}
}

func (imp *impactedObjects) addPoliciesOn(v *snapshot.View, object api.Ref) {
	for p := range v.On(object) {
		imp.found[p.Ref()] = true
	}
}

func (imp *impactedObjects) addPolicies(all iter.Seq[*policykind.Policy]) {
	for p := range all {
		imp.found[p.Ref()] = true
	}
}

func hierarchyKind(kind string) api.PolicyKind {
	if kind == gateway.KindService {
		return api.PolicyKind{Kind: kind}
	}
	return gateway.KindOf(kind)
}
