package effective

import (
	"iter"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Scope is a set of paths: those that go through any of the objects.
type Scope struct {
	// All selects all paths of the view.
	All     bool
	Objects []api.Ref
	// Roots are gateways and services whose paths start there, Virtual are targets
	// for which no objects exist, and backends that policies refer to.
	Roots, Virtual []api.Ref
	// Policies stand for the objects that they target, Grants for those that depend
	// on them.
	Policies []*policykind.Policy
	Grants   []*gateway.Grant
	// Kinds are the kinds whose paths are included, nil for all.
	Kinds []api.PolicyKind
	// Empty are the kinds whose paths without a policy are included, too.
	Empty []api.PolicyKind
}

// ScopeOf returns the paths that a change of an object can affect, given the object
// before and after the change.
func ScopeOf(objects ...snapshot.Object) Scope {
	var s Scope
	for _, o := range objects {
		switch o := o.(type) {
		case nil, *policykind.Profile:
		case *policykind.Policy:
			s.Policies = append(s.Policies, o)
		case *gateway.Grant:
			s.Grants = append(s.Grants, o)
		default:
			if ref := o.Ref(); len(s.Objects) == 0 || s.Objects[len(s.Objects)-1] != ref { // it is given before and after
				s.Objects = append(s.Objects, ref)
			}
		}
	}
	return s
}

// Parts yields scopes that together have all paths of a view, each once: one for each
// gateway, then one for the services of each namespace, then one for virtual targets.
// They allow pauses in a walk of a whole view.
func Parts(v *snapshot.View) iter.Seq[Scope] {
	return func(yield func(Scope) bool) {
		for g := range v.Gateways() {
			if !yield(Scope{Roots: []api.Ref{g.Ref()}}) {
				return
			}
		}
		var services Scope
		for o := range v.Objects(api.PolicyKind{Kind: gateway.KindService}) {
			ref := o.Ref()
			if n := len(services.Roots); n > 0 && services.Roots[n-1].Namespace != ref.Namespace {
				if !yield(services) {
					return
				}
				services.Roots = nil
			}
			services.Roots = append(services.Roots, ref)
		}
		if len(services.Roots) > 0 && !yield(services) {
			return
		}
		if virtual := virtualTargets(v); len(virtual) > 0 {
			yield(Scope{Virtual: virtual})
		}
	}
}
