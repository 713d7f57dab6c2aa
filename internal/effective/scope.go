package effective

import (
	"iter"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/store"
)

// Scope is a set of paths: those that go through any of the objects.
type Scope struct {
	// All paths of the view, whatever else is said.
	All     bool
	Objects []api.Ref
}

// branch is a gateway with the routes on it that a scope asks for.
type branch struct {
	gateway *hierarchy.Gateway
	routes  iter.Seq[*hierarchy.Route]
}

// branches yields the gateways and routes of a scope, each pair once. It costs
// what lies under the objects of the scope, and nothing else.
func (s Scope) branches(v *store.View) iter.Seq[branch] {
	return func(yield func(branch) bool) {
		if s.All {
			for g := range v.Gateways() {
				if !yield(branch{g, v.RoutesOf(g.Namespace, g.Name)}) {
					return
				}
			}
			return
		}
		whole := s.gateways(v)
		for _, g := range whole {
			if !yield(branch{g, v.RoutesOf(g.Namespace, g.Name)}) {
				return
			}
		}
		for b := range s.routes(v, whole) {
			if !yield(b) {
				return
			}
		}
	}
}

// gateways returns the gateways of the scope and those of its classes.
func (s Scope) gateways(v *store.View) []*hierarchy.Gateway {
	var out []*hierarchy.Gateway
	add := func(g *hierarchy.Gateway) {
		if !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	for _, ref := range s.Objects {
		switch o := v.Get(ref).(type) {
		case *hierarchy.Gateway:
			add(o)
		case *hierarchy.Class:
			for g := range v.GatewaysOf(o.Name) {
				add(g)
			}
		}
	}
	return out
}

// routes yields the routes of the scope, each with its parents that are not
// walked as a whole.
func (s Scope) routes(v *store.View, whole []*hierarchy.Gateway) iter.Seq[branch] {
	return func(yield func(branch) bool) {
		for i, ref := range s.Objects {
			r, ok := v.Get(ref).(*hierarchy.Route)
			if !ok || slices.Contains(s.Objects[:i], ref) {
				continue
			}
			var seen []*hierarchy.Gateway
			for _, p := range r.Parents {
				g := v.Gateway(p.Namespace, p.Name)
				if g == nil || slices.Contains(whole, g) || slices.Contains(seen, g) {
					continue
				}
				seen = append(seen, g)
				if !yield(branch{g, one(r)}) {
					return
				}
			}
		}
	}
}

func one[T any](v T) iter.Seq[T] { return func(yield func(T) bool) { yield(v) } }

// CountPaths returns the number of paths of a view.
func CountPaths(v *store.View) int {
	n := 0
	for b := range (Scope{All: true}).branches(v) {
		for r := range b.routes {
			n += len(hierarchy.Attached(b.gateway, r, v.NamespaceLabels(r.Namespace))) * len(r.Rules)
		}
	}
	return n
}
