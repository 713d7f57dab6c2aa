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

// query selects the paths and policies that a command shows.
type query struct {
	*source
	objects       []snapshot.Object // the named ones; empty for everything
	allNamespaces bool
	// kindFilter limits the policy kinds; empty for all.
	kindFilter []api.PolicyKind
	engine     *effective.Engine
	// request selects the paths along which it goes, in place of objects; nil for none.
	request *servedRequest
}

// queryFlags are the flags of a query.
type queryFlags struct {
	paths         []string
	allNamespaces bool
	kinds         []string
}

func (f *queryFlags) add(cmd *cobra.Command) {
	pathsFlag(cmd, &f.paths, "read these manifests instead of the cluster")
	cmd.Flags().BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "select objects in all namespaces")
}

func (f *queryFlags) addKinds(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.kinds, "kind", nil, "show only policies of this kind, given as KIND or KIND.GROUP (repeatable)")
}

// query loads the source and finds the object that the arguments name, if any.
func (a *app) query(ctx context.Context, f queryFlags, args []string) (*query, error) {
	s, err := a.loadSource(ctx, f.paths)
	if err != nil {
		return nil, err
	}
	return s.query(f, args)
}

// query finds the object that the arguments name, if any.
func (s *source) query(f queryFlags, args []string) (*query, error) {
	q := &query{source: s, allNamespaces: f.allNamespaces, engine: effective.NewEngine()}
	for _, word := range f.kinds {
		k, err := s.policyKind(word)
		if err != nil {
			return nil, fmt.Errorf("invalid --kind: %w", err)
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

// queryRequest is query, and finds where the request of the flags goes, if there is one.
func (a *app) queryRequest(ctx context.Context, f queryFlags, r *requestFlags, args []string, explain bool) (*query, error) {
	if r.given {
		if _, err := r.parse(); err != nil {
			return nil, err // before the cluster is read
		}
	}
	q, err := a.query(ctx, f, args)
	if err == nil && r.given {
		q.request, err = q.findRequest(r, explain)
	}
	return q, err
}

// checkKinds returns an error if a policy is not of a kind that --kind selects.
func (s policySet) checkKinds(q *query) error {
	for _, p := range s.sorted() {
		if !q.includesKind(p.Kind.Ref()) {
			return fmt.Errorf("%s is not of a kind given by --kind", p.Ref())
		}
	}
	return nil
}

// includesKind reports whether the query includes a policy kind.
func (q *query) includesKind(k api.PolicyKind) bool {
	return len(q.kindFilter) == 0 || slices.Contains(q.kindFilter, k)
}

// selectedKinds returns the kinds for which paths without a policy are shown:
// those of --kind, else those that are present.
func (q *query) selectedKinds() []*policykind.Kind {
	return slices.DeleteFunc(slices.Clone(q.view.Kinds()), func(k *policykind.Kind) bool {
		return !q.includesKind(k.Ref()) || len(q.kindFilter) == 0 && !q.isPresent(k.Ref())
	})
}

// walk calls visit for the paths of the scope that have a policy.
func (q *query) walk(ctx context.Context, visit func(*effective.Effective)) error {
	return q.walkView(ctx, q.view, false, visit)
}

// walkView calls visit for the paths of the scope in a view; with empty also for
// those without a policy.
func (q *query) walkView(ctx context.Context, v *snapshot.View, empty bool, visit func(*effective.Effective)) error {
	scope := q.scope()
	budget := effective.NewBudget(ctx, math.MaxUint64) // no limit: the user can interrupt the command
	var kept []*effective.Effective
	err := q.engine.Walk(v, scope, empty, budget, func(e *effective.Effective) error {
		if q.request == nil {
			visit(e)
		} else if q.request.contains(&e.Path) {
			kept = append(kept, e)
		}
		return nil
	})
	if q.request != nil {
		for _, e := range q.request.specific(kept) {
			visit(e)
		}
	}
	return err
}

// scope returns the paths through the named objects, or all paths. Those of a
// virtual target are the paths of the policies that target it.
func (q *query) scope() effective.Scope {
	if q.request != nil {
		return effective.ScopeOf(q.request.roots...)
	}
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

// matches reports whether a path belongs to the query: for a policy the paths that
// it is on, for another object those through it, without an object those through
// the namespace, or all if no namespace is set.
func (q *query) matches(e *effective.Effective) bool {
	switch {
	case !q.includesKind(e.Kind.Ref()):
		return false
	case q.request != nil:
		return true // walkView visits its paths alone
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

// attachable reports whether a policy of the kind can be on the path, because it
// may target an element of it.
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

// outcomes returns the outcomes of policies over all their paths, sorted by policy.
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
