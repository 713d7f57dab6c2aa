package effective

import (
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/store"
	"overrule.dev/overrule/merge"
)

// Pair is one path before and after a change; either side may be nil: no path,
// or no policy on it.
type Pair struct{ Before, After *Effective }

// Effective returns the side that is there, the later one first.
func (p Pair) Effective() *Effective {
	if p.After != nil {
		return p.After
	}
	return p.Before
}

// Changed reports whether the effective policy differs.
func (p Pair) Changed() bool {
	switch {
	case p.Before == nil || p.After == nil:
		return len(p.Effective().Rules) > 0
	case p.Before.Result == p.After.Result:
		return false
	}
	return !slices.EqualFunc(p.Before.Rules, p.After.Rules, func(a, b merge.Effective) bool {
		return a.Key == b.Key && merge.Equal(a.Value, b.Value)
	})
}

// Rules returns the rules that differ, by key.
func (p Pair) Rules() []api.RuleChange {
	changes := make(map[string]api.RuleChange)
	if p.Before != nil {
		for _, r := range p.Before.Rules {
			changes[r.Key.String()] = api.RuleChange{Rule: r.Key.String(), Before: p.Before.value(r)}
		}
	}
	if p.After != nil {
		for _, r := range p.After.Rules {
			c := changes[r.Key.String()]
			c.Rule, c.After = r.Key.String(), p.After.value(r)
			changes[c.Rule] = c
		}
	}
	out := make([]api.RuleChange, 0, len(changes))
	for _, c := range changes {
		if c.Before == nil || c.After == nil || !merge.Equal(c.Before.Value, c.After.Value) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b api.RuleChange) int { return strings.Compare(a.Rule, b.Rule) })
	return out
}

func (e *Effective) value(r merge.Effective) *api.RuleValue {
	return &api.RuleValue{Value: r.Value, From: e.Ref(r.From.Policy), Block: r.From.Block.String()}
}

type pathKind struct {
	id   hierarchy.ID
	kind *policykind.Kind
}

// Compare walks the paths of a scope before and after a change and calls visit
// with each pair, in the order of the walk after; then with those that are
// gone. The rules of the route that changed, if one did, are paired by name,
// then by their matches (hierarchy.MatchRules).
func (e *Engine) Compare(before, after *store.View, s Scope, b *Budget, visit func(Pair) error) error {
	old := make(map[pathKind]int) // its place in the order
	var order []*Effective
	err := e.Walk(before, s, false, b, func(x *Effective) error {
		old[pathKind{x.Path.ID(), x.Kind}] = len(order)
		order = append(order, x)
		return nil
	})
	if err != nil {
		return err
	}
	pairing := rulePairing{before: before}
	err = e.Walk(after, s, false, b, func(x *Effective) error {
		p := Pair{After: x}
		if i, ok := old[pathKind{pairing.earlier(x.Path), x.Kind}]; ok {
			p.Before, order[i] = order[i], nil
		}
		return visit(p)
	})
	if err != nil {
		return err
	}
	for _, was := range order {
		if was != nil {
			if err := visit(Pair{Before: was}); err != nil {
				return err
			}
		}
	}
	return nil
}

// rulePairing finds the path before a change of a path after it.
type rulePairing struct {
	before    *store.View
	route     *hierarchy.Route // the last one looked at, after
	positions []int
}

func (r *rulePairing) earlier(p hierarchy.Path) hierarchy.ID {
	id := p.ID()
	if p.Route == nil {
		return id
	}
	if r.route != p.Route {
		r.route, r.positions = p.Route, nil
		was, ok := r.before.Get(p.Route.Ref()).(*hierarchy.Route)
		if ok && was != p.Route {
			r.positions = hierarchy.MatchRules(was, p.Route)
		}
	}
	if r.positions != nil && p.Rule >= 0 {
		id.Rule = r.positions[p.Rule]
	}
	return id
}
