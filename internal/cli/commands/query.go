package commands

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// query is what the commands that look at what is there have in common.
type query struct {
	*source
	objects       []snapshot.Object // named ones; none for everything
	allNamespaces bool
	// only the kinds that are asked for; empty for all.
	kindFilter []api.PolicyKind
	engine     *effective.Engine
}

// queryFlags are the flags of a query.
type queryFlags struct {
	paths         []string
	allNamespaces bool
	kinds         []string
}

func (f *queryFlags) add(cmd *cobra.Command) {
	pathsFlag(cmd, &f.paths, "read these manifests instead of the cluster")
	cmd.Flags().BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "look in all namespaces")
}

func (f *queryFlags) addKinds(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.kinds, "kind", nil, "only policies of this kind, written as KIND or KIND.GROUP (repeatable)")
}

// query reads the objects and finds those that are named, if any.
func (a *app) query(ctx context.Context, f queryFlags, args []string) (*query, error) {
	s, err := a.loadSource(ctx, f.paths)
	if err != nil {
		return nil, err
	}
	q := &query{source: s, allNamespaces: f.allNamespaces, engine: effective.NewEngine()}
	for _, word := range f.kinds {
		k, err := s.policyKind(word)
		if err != nil {
			return nil, fmt.Errorf("read --kind: %w", err)
		}
		q.kindFilter = append(q.kindFilter, k.Ref())
	}
	if len(args) == 0 {
		return q, nil
	}
	kind, name, _, err := parseObject(args)
	if err != nil {
		return nil, err
	}
	if q.objects, err = s.find(kind, name, f.allNamespaces); err != nil {
		return nil, err
	}
	return q, q.namedPolicies().checkKinds(q)
}

// areOf fails for a policy that is of no kind that is asked for.
func (s policySet) checkKinds(q *query) error {
	for _, p := range s.sorted() {
		if !q.includesKind(p.Kind.Ref()) {
			return fmt.Errorf("%s is of no kind that --kind names", p.Ref())
		}
	}
	return nil
}

// shows reports whether a kind is asked for.
func (q *query) includesKind(k api.PolicyKind) bool {
	return len(q.kindFilter) == 0 || slices.Contains(q.kindFilter, k)
}

// here returns the kinds of which paths without a policy are shown: those that
// are asked for, else those that occur.
func (q *query) selectedKinds() []*policykind.Kind {
	return slices.DeleteFunc(slices.Clone(q.view.Kinds()), func(k *policykind.Kind) bool {
		return !q.includesKind(k.Ref()) || len(q.kindFilter) == 0 && !q.isPresent(k.Ref())
	})
}

// walk calls visit for the paths of the scope that have a policy of any kind.
func (q *query) walk(ctx context.Context, visit func(*effective.Effective)) error {
	return q.walkView(ctx, q.view, false, visit)
}

// walkOver calls visit for the paths of the scope in a view; with empty also
// for those without a policy.
func (q *query) walkView(ctx context.Context, v *snapshot.View, empty bool, visit func(*effective.Effective)) error {
	scope := q.scope()
	budget := effective.NewBudget(ctx, math.MaxUint64) // who asks for much waits for it
	return q.engine.Walk(v, scope, empty, budget, func(e *effective.Effective) error {
		visit(e)
		return nil
	})
}

// scope returns the paths through what is named. A target that exists nowhere
// is on those of the policies that target it.
func (q *query) scope() effective.Scope {
	scope := effective.ScopeOf(q.objects...)
	scope.All = len(q.objects) == 0
	for _, o := range q.objects {
		for p, t := range q.view.On(o.Ref()) {
			if t.Virtual {
				scope.Policies = append(scope.Policies, p)
			}
		}
	}
	return scope
}

// wants reports whether a path is asked for: of a policy, those that it is on;
// of any other object, those through it; without an object, those through the
// namespace, if one is given.
func (q *query) matches(e *effective.Effective) bool {
	switch {
	case !q.includesKind(e.Kind.Ref()):
		return false
	case len(q.objects) == 0:
		return q.allNamespaces || !q.namespaceSet || slices.Contains(pathNamespaces(e.Path), q.namespace)
	}
	return slices.ContainsFunc(q.objects, func(o snapshot.Object) bool {
		p, ok := o.(*policykind.Policy)
		if !ok {
			return pathContains(e.Path, o.Ref())
		}
		return slices.ContainsFunc(e.Outcomes, func(m outcome) bool { return m.Policy == &p.Policy })
	})
}

// attachable reports whether a policy of the kind could be on the path: it may
// target some element of it.
func attachable(e *effective.Effective) bool {
	k := e.Kind
	if k.Targets.Implicit != nil {
		return true
	}
	targets := pathObjects(e.Path)
	if e.Path.Gateway != nil {
		targets = append(targets, api.Ref{Group: api.GatewayGroup, Kind: gateway.KindGatewayClass})
	}
	if e.Path.GatewayNamespace || e.Path.ServiceNamespace || e.Path.RouteNamespace {
		targets = append(targets, api.Ref{Kind: gateway.KindNamespace})
	}
	return slices.ContainsFunc(targets, func(t api.Ref) bool {
		return k.MayTarget(t.PolicyKind()) && k.HasLevelFor(t.PolicyKind())
	})
}

// outcomes returns what became of policies over all their paths, sorted.
func (q *query) outcomes(ctx context.Context, policies []*policykind.Policy) ([]api.Outcome, error) {
	objects := make([]snapshot.Object, len(policies))
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
