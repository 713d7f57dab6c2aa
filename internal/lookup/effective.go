package lookup

import (
	"cmp"
	"context"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// onPath is a path of a query with its elements.
type onPath struct {
	*effective.Effective
	elements []api.PathElement
}

// findPaths finds the paths of the query, sorted by policy kind and path, and the policies
// on them.
func (a *answering) findPaths(ctx context.Context) error {
	a.policies = make(PolicySet)
	err := a.Walk(ctx, func(e *effective.Effective) {
		switch {
		case a.Matches(e):
			a.paths = append(a.paths, onPath{e, e.Path.Elements()})
			a.addPolicies(a.policies, e)
		case len(e.Kind.Controls()) > 0:
			a.controls = append(a.controls, e)
		}
	})
	slices.SortStableFunc(a.paths, func(a, b onPath) int {
		return cmp.Or(api.ComparePolicyKinds(a.Kind.Ref(), b.Kind.Ref()), api.ComparePaths(a.elements, b.elements))
	})
	return err
}

// items returns the effective policies of the paths, sorted. Those that do not fit are
// left out, from the end.
func (a *answering) items(limit limit) []api.EffectivePolicy {
	var items []api.EffectivePolicy
	routes := make(map[api.Ref]bool) // of the items, whose fields are controlled
	for _, m := range a.paths {
		item := a.Hides.Item(m.Effective)
		if !limit.fits(len(items), item) {
			break
		}
		items = append(items, item)
		if item.Route != nil {
			routes[m.Path.Route.Ref()] = true
		}
	}
	all := slices.Clip(items)
	for _, e := range a.controls {
		if e.Path.Route != nil && routes[e.Path.Route.Ref()] {
			all = append(all, a.Hides.Item(e))
		}
	}
	slices.SortFunc(all, explain.CompareItems)
	explain.ResolveConflicts(all, a.direct)
	return items
}

// explanations returns the explanations of the paths, sorted, and how many there are. The
// rule filters as in explain.Explain. Those that do not fit are left out, from the end.
func (a *answering) explanations(limit limit) (items []api.Explanation, total int) {
	items = []api.Explanation{}
	for _, m := range a.paths {
		if total > len(items) && a.Rule == nil {
			return items, len(a.paths)
		}
		x, ok := a.Hides.Explanation(m.Effective, a.Rule)
		if !ok {
			continue
		}
		if total == len(items) && limit.fits(len(items), x) {
			items = append(items, x)
		}
		total++
	}
	return items, total
}

// addPolicies adds the policies on a path.
func (q *Query) addPolicies(to PolicySet, e *effective.Effective) {
	for i := range e.Outcomes {
		to.Add(q.View.Get(e.Ref(e.Outcomes[i].Policy)))
	}
	for _, p := range e.Ignored {
		to.Add(p)
	}
}

func (q *Query) direct(ref api.PolicyKind) bool {
	k := q.View.Kind(ref)
	return k != nil && k.Class == api.Direct
}

// WithoutPolicy returns the paths that have no policy of one of the kinds, which can be
// attached there.
func (q *Query) WithoutPolicy(ctx context.Context, kinds []*policykind.Kind) ([]api.EffectivePolicy, error) {
	var items []api.EffectivePolicy
	err := q.walkView(ctx, q.View.WithKinds(kinds), true, func(e *effective.Effective) {
		if len(e.Outcomes) == 0 && q.Matches(e) && attachable(e) {
			items = append(items, q.Hides.Item(e))
		}
	})
	slices.SortFunc(items, explain.CompareItems)
	return items, err
}

// Outcomes returns the outcomes of policies over all their paths, sorted by policy.
func (q *Query) Outcomes(ctx context.Context, policies []*policykind.Policy) ([]api.Outcome, error) {
	objects := make([]snapshot.Object, len(policies))
	for i, p := range policies {
		objects[i] = p
	}
	reaches := effective.NewReaches(q.View)
	var sum explain.Outcomes
	err := q.Engine.Walk(q.View, effective.ScopeOf(objects...), false, q.budget(ctx), func(e *effective.Effective) error {
		reaches.Mark(e)
		sum.Add(e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return q.outcomesOf(&sum, policies), nil
}

// outcomesOf returns the outcomes of policies, sorted by policy.
func (q *Query) outcomesOf(sum *explain.Outcomes, policies []*policykind.Policy) []api.Outcome {
	out := make([]api.Outcome, len(policies))
	for i, p := range policies {
		out[i] = q.Hides.Outcome(sum, q.View, p)
		if hint := q.targetHint(&out[i]); hint != "" {
			out[i].Message += "; " + hint
		}
	}
	slices.SortFunc(out, func(a, b api.Outcome) int { return api.CompareRefs(a.Policy, b.Policy) })
	return out
}

// targetHint says what is probably meant by the target of a policy without effect, or by the
// parentRefs of its target, to readers of all objects.
func (q *Query) targetHint(o *api.Outcome) string {
	if q.Hides != nil {
		return ""
	}
	for _, t := range o.Targets {
		hint := ""
		switch {
		case o.State == api.TargetNotFound:
			hint = effective.TargetHint(q.View, t, true)
		case o.State == api.NoPath && t.Accepted:
			hint = effective.RouteHint(q.View, t.Target)
		}
		if hint != "" {
			return hint
		}
	}
	return ""
}
