package lookup

import (
	"context"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

type outcome = merge.Outcome

// Effective returns the effective policies of the query, sorted, and the policies
// on their paths.
func (q *Query) Effective(ctx context.Context) ([]api.EffectivePolicy, PolicySet, error) {
	var items, others []api.EffectivePolicy
	onPaths := make(PolicySet)
	err := q.Walk(ctx, func(e *effective.Effective) {
		switch {
		case q.Matches(e):
			items = append(items, e.APIHiding(q.Hides))
			q.addPolicies(onPaths, e)
		case len(e.Kind.Controls()) > 0:
			others = append(others, e.APIHiding(q.Hides)) // may control the same field of a route
		}
	})
	slices.SortFunc(items, effective.CompareItems)
	all := append(slices.Clip(items), others...)
	slices.SortFunc(all, effective.CompareItems)
	effective.ResolveConflicts(all, q.direct)
	return items, onPaths, err
}

// addPolicies adds the policies on a path.
func (q *Query) addPolicies(to PolicySet, e *effective.Effective) {
	for i := range e.Outcomes {
		to.Add(q.View.Get(e.Ref(e.Outcomes[i].Policy)))
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
			items = append(items, e.APIHiding(q.Hides))
		}
	})
	slices.SortFunc(items, effective.CompareItems)
	return items, err
}

// Explanations returns the explanations of the paths of the query, sorted. A rule filters
// as in effective.Explain, nil for all.
func (q *Query) Explanations(ctx context.Context, rule *merge.Name) ([]api.Explanation, error) {
	items := []api.Explanation{}
	err := q.Walk(ctx, func(e *effective.Effective) {
		if !q.Matches(e) {
			return
		}
		if x, ok := e.ExplainHiding(rule, q.Hides); ok {
			items = append(items, x)
		}
	})
	slices.SortFunc(items, effective.CompareExplanations)
	return items, err
}

// Outcomes returns the outcomes of policies over all their paths, sorted by policy.
func (q *Query) Outcomes(ctx context.Context, policies []*policykind.Policy) ([]api.Outcome, error) {
	objects := make([]snapshot.Object, len(policies))
	for i, p := range policies {
		objects[i] = p
	}
	var sum effective.Outcomes
	err := q.Engine.Walk(q.View, effective.ScopeOf(objects...), false, q.budget(ctx), func(e *effective.Effective) error {
		sum.Add(e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return q.outcomesOf(&sum, policies), nil
}

// outcomesOf returns the outcomes of policies, sorted by policy.
func (q *Query) outcomesOf(sum *effective.Outcomes, policies []*policykind.Policy) []api.Outcome {
	out := make([]api.Outcome, len(policies))
	for i, p := range policies {
		out[i] = sum.OfHiding(q.View, p, q.Hides)
	}
	slices.SortFunc(out, func(a, b api.Outcome) int { return api.CompareRefs(a.Policy, b.Policy) })
	return out
}
