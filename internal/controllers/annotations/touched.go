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

// touched gathers the objects whose marks a number of changes may make stale. It
// errs on the side of too many.
type touched struct {
	engine *effective.Engine
	pace   *pace
	found  map[api.Ref]bool
	last   gateway.Path // the path before, most of which is in the next one
}

// look gathers what changes touch, as the view shows it: that before them or that
// after them.
func (t *touched) look(ctx context.Context, v *snapshot.View, objects []snapshot.Object) error {
	for _, o := range objects {
		t.around(v, o)
	}
	b := effective.NewBudget(ctx, math.MaxUint64)
	return t.engine.Walk(v, effective.ScopeOf(objects...), false, b, func(e *effective.Effective) error {
		t.path(e)
		return t.pace.step(ctx)
	})
}

// path gathers what stands on a path.
func (t *touched) path(e *effective.Effective) {
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

// around gathers what hangs on an object though no path goes through it: itself, and
// the policies whose target it is, or who meet it on a target of its own.
func (t *touched) around(v *snapshot.View, o snapshot.Object) {
	t.found[o.Ref()] = true
	t.targeting(v, o.Ref())
	switch o := o.(type) {
	case *policykind.Policy:
		for _, target := range v.Targets(o) {
			t.targeting(v, target.Ref)
		}
	case *gateway.Grant:
		for _, to := range o.To {
			t.policies(v.TargetsIn(api.PolicyKind{Group: to.Group, Kind: to.Kind}, o.Namespace))
			t.policies(v.Selecting(api.PolicyKind{Group: to.Group, Kind: to.Kind}))
		}
	case *gateway.Namespace: // its labels may be what a selector asks for
		for _, kind := range slices.Concat(gateway.GatewayKinds, []string{gateway.KindService}) {
			t.policies(v.Selecting(hierarchyKind(kind)))
		}
	}
}

func (t *touched) targeting(v *snapshot.View, object api.Ref) {
	for p := range v.On(object) {
		t.found[p.Ref()] = true
	}
}

func (t *touched) policies(all iter.Seq[*policykind.Policy]) {
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
