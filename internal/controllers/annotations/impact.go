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
func (t *impactedObjects) collect(ctx context.Context, v *snapshot.View, objects []snapshot.Object) error {
	for _, o := range objects {
		t.addRelated(v, o)
	}
	b := effective.NewBudget(ctx, math.MaxUint64)
	return t.engine.Walk(v, effective.ScopeOf(objects...), false, b, func(e *effective.Effective) error {
		t.addPath(e)
		return t.throttle.step(ctx)
	})
}

// addPath adds the objects and policies of a path.
func (t *impactedObjects) addPath(e *effective.Effective) {
	p, last := &e.Path, &t.last
	if p.Route != nil && p.Route != last.Route {
		t.found[p.Route.Ref()] = true
	}
	if p.Gateway != nil && p.Gateway != last.Gateway {
		t.found[p.Gateway.Ref()] = true
		t.found[(&gateway.Class{Name: p.Gateway.Class}).Ref()] = true
	}
	if p.Set != nil && p.Set != last.Set {
		t.found[p.Set.Ref()] = true
	}
	t.last = *p
	for i := range e.Outcomes {
		t.found[e.Ref(e.Outcomes[i].Policy)] = true
	}
}

// addRelated adds the objects that depend on an object even if no path goes through it:
// the object, the policies that target it, and those that have a target in common with
// it.
func (t *impactedObjects) addRelated(v *snapshot.View, o snapshot.Object) {
	t.found[o.Ref()] = true
	t.addPoliciesOn(v, o.Ref())
	switch o := o.(type) {
	case *policykind.Policy:
		for _, target := range v.Targets(o) {
			t.addPoliciesOn(v, target.Ref)
		}
	case *gateway.Grant:
		for _, to := range o.To {
			t.addPolicies(v.TargetsIn(api.PolicyKind{Group: to.Group, Kind: to.Kind}, o.Namespace))
			t.addPolicies(v.Selecting(api.PolicyKind{Group: to.Group, Kind: to.Kind}))
		}
	case *gateway.Namespace: // selectors may match its labels
		for _, kind := range slices.Concat(gateway.GatewayKinds, []string{gateway.KindService}) {
			t.addPolicies(v.Selecting(hierarchyKind(kind)))
		}
	}
}

func (t *impactedObjects) addPoliciesOn(v *snapshot.View, object api.Ref) {
	for p := range v.On(object) {
		t.found[p.Ref()] = true
	}
}

func (t *impactedObjects) addPolicies(all iter.Seq[*policykind.Policy]) {
	for p := range all {
		t.found[p.Ref()] = true
	}
}

func hierarchyKind(kind string) api.PolicyKind {
	if kind == gateway.KindService {
		return api.PolicyKind{Kind: kind}
	}
	return gateway.KindOf(kind)
}
