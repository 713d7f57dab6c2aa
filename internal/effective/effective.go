package effective

import (
	"cmp"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// Effective is the effective policy of one kind on one path.
type Effective struct {
	Kind *policykind.Kind
	Path gateway.Path
	// Layers are the policies on the path, and below them its own fields.
	Layers []merge.Layer
	*merge.Result
	// Outcomes of the policies, from the highest to the lowest, each once.
	Outcomes []merge.Outcome
	// Unreached is set by Reaches.Mark if no request reaches the path.
	Unreached *gateway.Reach
	// Unread is why the Ignored policies have no effect on the path, and also set if
	// none of the kind would.
	// Ignored are then the policies that would be on the path. Excluded is set if they
	// exclude each other.
	Unread   string
	Ignored  []*policykind.Policy
	Excluded bool
	// Member is that of the path's rule whose fields are controlled, and Object has the
	// route's own values of these fields; nil for none.
	Member *Member
	Object *merge.Policy

	folded *folded // the fold with Result, nil if there is none
	binder *binder // of the walk
	bound  *Bound  // made when first asked
}

// Level returns the level of the path at which a policy is attached, the
// highest if it is at several.
func (e *Effective) Level(p *merge.Policy) gateway.Level {
	level := gateway.LevelObject
	for _, l := range e.Layers {
		if l.Policy == p {
			level = min(level, gateway.Level(l.Level))
		}
	}
	return level
}

// Without returns the effective policy of the path without some of its layers.
func (e *Effective) Without(drop func(merge.Layer) bool, m merge.Meter) (*Effective, error) {
	out := &Effective{Kind: e.Kind, Path: e.Path, Layers: slices.DeleteFunc(slices.Clone(e.Layers), drop)}
	var err error
	if out.Result, err = merge.Fold(out.Layers, m); err != nil {
		return nil, err
	}
	out.Outcomes = out.Result.Outcomes
	return out, nil
}

// Ref returns the reference of a policy on the path, or of the route if the policy
// stands for the route's own fields.
func (e *Effective) Ref(p *merge.Policy) api.Ref {
	if p == e.Object {
		return e.Path.Route.Ref()
	}
	return api.Ref{Group: e.Kind.Group, Kind: e.Kind.Kind, Namespace: p.Namespace, Name: p.Name}
}

// Own returns the outcome of the route's own fields, nil if it sets none that the kind
// controls.
func (e *Effective) Own() *merge.Outcome {
	if e.Object == nil {
		return nil
	}
	return &e.Result.Outcomes[len(e.Result.Outcomes)-1]
}

// Spec returns the effective spec, or in a kind that collects the list of
// specs in their order. The values in it are shared: do not edit.
func (e *Effective) Spec() any {
	if e.Kind.SameTarget != api.Collect {
		return e.Kind.Shape(e.Result.Spec())
	}
	rules := e.Collected()
	out := make([]any, len(rules))
	for i, r := range rules {
		out[i] = merge.Plain(r.Value)
	}
	return out
}

// SpecHiding is Spec with the values of some rules replaced by hidden.
func (e *Effective) SpecHiding(hide func(*merge.Effective) bool, hidden any) any {
	rules := slices.Clone(e.Rules)
	for i := range rules {
		if r := &rules[i]; r.Value != nil && !r.EmptyMap && hide(r) {
			one := *r.Rule // a copy, since it is shared
			one.Value = hidden
			r.Rule = &one
		}
	}
	shown := *e
	shown.Result = &merge.Result{Rules: rules}
	return shown.Spec()
}

// Collected returns the rules of a kind that collects, from the highest to the lowest, or in
// the kind's own order if that applies across levels.
func (e *Effective) Collected() []merge.Effective {
	rules := slices.Clone(e.Rules)
	slices.SortStableFunc(rules, func(a, b merge.Effective) int {
		x, y := a.From.Policy, b.From.Policy
		if o := e.Kind.Order; o != nil && o.AcrossLevels {
			return cmp.Or(cmp.Compare(x.Rank, y.Rank), merge.Compare(acrossLevels(e.Kind, x), acrossLevels(e.Kind, y)))
		}
		return merge.Compare(merge.Layer{Policy: x, Level: int(e.Level(x))}, merge.Layer{Policy: y, Level: int(e.Level(y))})
	})
	return rules
}

// acrossLevels returns the layer of a policy by which it is ordered in a kind whose order
// applies across levels: at a level of its own in the mesh's namespace.
func acrossLevels(k *policykind.Kind, p *merge.Policy) merge.Layer {
	implicit, level := k.Targets.Implicit, 0
	switch {
	case implicit == nil || p.Namespace != implicit.MeshNamespace:
	case k.Order.MeshLast:
		level = 1
	default:
		level = -1
	}
	return merge.Layer{Policy: p, Level: level}
}
