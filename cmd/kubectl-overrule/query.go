package main

import (
	"context"
	"math"
	"slices"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/store"
)

// query is what the commands that look at what is there have in common.
type query struct {
	*scene
	objects    []store.Object // named ones; none for everything
	everywhere bool
	engine     *effective.Engine
}

// queryFlags are the flags of a query.
type queryFlags struct {
	paths      []string
	everywhere bool
}

func (f *queryFlags) add(cmd *cobra.Command) {
	pathsFlag(cmd, &f.paths, "read these manifests instead of the cluster")
	cmd.Flags().BoolVarP(&f.everywhere, "all-namespaces", "A", false, "look in all namespaces")
}

// query reads the objects and finds those that are named, if any.
func (a *app) query(ctx context.Context, f queryFlags, args []string) (*query, error) {
	s, err := a.scene(ctx, f.paths)
	if err != nil {
		return nil, err
	}
	q := &query{scene: s, everywhere: f.everywhere, engine: effective.NewEngine()}
	if len(args) == 0 {
		return q, nil
	}
	kind, name, _, err := object(args)
	if err != nil {
		return nil, err
	}
	q.objects, err = s.find(kind, name, f.everywhere)
	return q, err
}

// walk calls visit for the paths that are asked for.
func (q *query) walk(ctx context.Context, empty bool, visit func(*effective.Effective)) error {
	scope := effective.ScopeOf(q.objects...)
	scope.All = len(q.objects) == 0
	budget := effective.NewBudget(ctx, math.MaxUint64) // who asks for much waits for it
	return q.engine.Walk(q.view, scope, empty, budget, func(e *effective.Effective) error {
		if q.wants(e) && (len(e.Layers) > 0 || attachable(e)) {
			visit(e)
		}
		return nil
	})
}

// wants reports whether a path is asked for: of a policy, those that it is on;
// without an object, those through the namespace, if one is given.
func (q *query) wants(e *effective.Effective) bool {
	if len(q.objects) == 0 {
		return q.everywhere || !q.given || e.Path.Gateway.Namespace == q.namespace || e.Path.Route.Namespace == q.namespace
	}
	return slices.ContainsFunc(q.objects, func(o store.Object) bool {
		p, ok := o.(*policykind.Policy)
		return !ok || slices.ContainsFunc(e.Outcomes, func(m outcome) bool { return m.Policy == &p.Policy })
	})
}

// attachable reports whether a policy of the kind could be on the path.
func attachable(e *effective.Effective) bool {
	for _, kind := range []string{hierarchy.KindGatewayClass, hierarchy.KindGateway, e.Path.Route.Kind} {
		if e.Kind.MayTarget(api.PolicyKind{Group: api.GatewayGroup, Kind: kind}) {
			return true
		}
	}
	return false
}

// outcomes returns what became of policies over all their paths, sorted.
func (q *query) outcomes(ctx context.Context, policies []*policykind.Policy) ([]api.Outcome, error) {
	objects := make([]store.Object, len(policies))
	for i, p := range policies {
		objects[i] = p
	}
	var sum effective.Outcomes
	budget := effective.NewBudget(ctx, math.MaxUint64)
	err := q.engine.Walk(q.view, effective.ScopeOf(objects...), false, budget, func(e *effective.Effective) error {
		sum.Add(e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]api.Outcome, len(policies))
	for i, p := range policies {
		out[i] = sum.Of(q.view, p)
	}
	slices.SortFunc(out, func(a, b api.Outcome) int { return api.CompareRefs(a.Policy, b.Policy) })
	return out, nil
}
