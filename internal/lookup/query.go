package lookup

import (
	"context"
	"errors"
	"math"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// ErrNotFound is returned if an object, rule or section does not exist.
var ErrNotFound = errors.New("not found")

// Reference is an object that is not in the view, such as one that another object refers
// to: the class of a gateway, the backend of a route, a virtual target, a
// namespace.
type Reference api.Ref

// Ref implements snapshot.Object.
func (m Reference) Ref() api.Ref { return api.Ref(m) }

// Query is a question about paths and policies of a view.
type Query struct {
	View   *snapshot.View
	Engine *effective.Engine
	// Objects are those through which the paths go, empty for all paths.
	Objects []snapshot.Object
	// Section limits the paths to those through a listener, rule or port of Objects, ""
	// for all.
	Section string
	// Namespace limits a query without objects to the paths through a namespace, ""
	// for all.
	Namespace string
	// Kinds limit the policy kinds, empty for all.
	Kinds []api.PolicyKind
	// Asked is a request: it selects the paths along which it goes, of those through Objects
	// if there are any. It is nil for none.
	Asked *Request
	// Rule limits explanations and reaches, nil for all rules.
	Rule *merge.Name
	// Parts are those of the answer.
	Parts []api.ReviewPart
	// MaxPaths limits the items and the explanations, 0 for no limit.
	MaxPaths int
	// Limited limits the size of the answer to what an API server returns.
	Limited bool
	// Hides reports whether the reader is not allowed to read an object, nil if all
	// may be read. Values of such policies are left out of all results.
	Hides explain.Hides
	// Cost limits the evaluation of conditions, 0 for no limit. Each path adds PathCost.
	Cost, PathCost uint64

	served *served // where the request goes, once Answer has found it
}

func (q *Query) budget(ctx context.Context) *effective.Budget {
	if q.Cost == 0 {
		return effective.NewBudget(ctx, math.MaxUint64)
	}
	return effective.NewBudget(ctx, q.Cost).Grow(q.PathCost)
}

// IncludesKind reports whether the query includes a policy kind.
func (q *Query) IncludesKind(k api.PolicyKind) bool {
	return len(q.Kinds) == 0 || slices.Contains(q.Kinds, k)
}

// Walk calls visit for the paths of the scope that have a policy.
func (q *Query) Walk(ctx context.Context, visit func(*effective.Effective)) error {
	return q.walkView(ctx, q.View, false, visit)
}

// walkView calls visit for the paths of the scope in a view; with empty also for
// those without a policy.
func (q *Query) walkView(ctx context.Context, v *snapshot.View, empty bool, visit func(*effective.Effective)) error {
	var kept []*effective.Effective
	reaches := effective.NewReaches(v)
	err := q.Engine.Walk(v, q.Scope(), empty, q.budget(ctx), func(e *effective.Effective) error {
		reaches.Mark(e)
		if q.served == nil {
			visit(e)
		} else if q.served.contains(&e.Path) {
			kept = append(kept, e)
		}
		return nil
	})
	if q.served != nil {
		for _, e := range q.served.specific(kept) {
			visit(e)
		}
	}
	return err
}

// Scope returns the paths through the named objects, or all paths. Those of a
// virtual target are the paths of the policies that target it.
func (q *Query) Scope() effective.Scope {
	if q.served != nil && len(q.Objects) == 0 {
		return q.served.scope()
	}
	scope := effective.ScopeOf(q.Objects...)
	scope.All = len(q.Objects) == 0
	for _, o := range q.Objects {
		for p, t := range q.View.On(o.Ref()) {
			if t.Virtual {
				scope.Policies = append(scope.Policies, p)
			}
		}
	}
	return scope
}

// Matches reports whether a path belongs to the query: for a policy the paths that
// it is on, for another object those through it, without an object those through
// the namespace, or all if no namespace is set.
func (q *Query) Matches(e *effective.Effective) bool {
	switch {
	case !q.IncludesKind(e.Kind.Ref()):
		return false
	case len(q.Objects) == 0 && q.served != nil:
		return true // walkView visits its paths alone
	case len(q.Objects) == 0:
		return q.Namespace == "" || slices.Contains(pathNamespaces(&e.Path), q.Namespace)
	}
	return slices.ContainsFunc(q.Objects, func(o snapshot.Object) bool {
		p, ok := o.(*policykind.Policy)
		if !ok {
			return q.contains(&e.Path, o.Ref())
		}
		return slices.Contains(e.Ignored, p) || slices.ContainsFunc(e.Outcomes, func(m merge.Outcome) bool { return m.Policy == &p.Policy })
	})
}

// contains reports whether an object, or the section of it, is on a path.
func (q *Query) contains(p *gateway.Path, ref api.Ref) bool {
	return pathContains(p, ref) && (q.Section == "" || pathContainsSection(q.View, p, ref, q.Section))
}

// attachable reports whether a policy of the kind can be on the path, because it
// may target an element of it.
func attachable(e *effective.Effective) bool {
	k := e.Kind
	if k.Targets.Implicit != nil {
		return true
	}
	var targets []api.Ref
	if e.Path.GatewayNamespace || e.Path.ServiceNamespace || e.Path.RouteNamespace {
		targets = append(targets, api.Ref{Kind: gateway.KindNamespace})
	}
	for o := range e.Path.Objects {
		targets = append(targets, o.Ref)
	}
	return slices.ContainsFunc(targets, func(t api.Ref) bool {
		return k.MayTarget(t.PolicyKind()) && k.HasLevelFor(t.PolicyKind())
	})
}
