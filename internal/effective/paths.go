package effective

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// Walk calls visit for every path of the scope and every policy kind of the
// view that has a policy on it; with empty, also where no policy is. It stops
// at the first error, which is the budget's or visit's.
func (e *Engine) Walk(v *snapshot.View, s Scope, empty bool, b *Budget, visit func(*Effective) error) error {
	w := newWalk(e, v, s.kinds(v, empty), b, visit)
	for i := range w.kinds {
		w.kinds[i].empty = empty || slices.Contains(s.Empty, w.kinds[i].kind.Ref())
	}
	return w.walkPlan(s.plan(v))
}

// walkPlan visits all paths of a plan, each once.
func (w *walk) walkPlan(p *plan) error {
	for _, ref := range p.objects.list {
		if err := w.wholeRoot(rootAt(w.view, ref)); err != nil {
			return err
		}
	}
	for _, ref := range p.objects.list {
		o := w.view.Get(ref)
		for _, at := range rootsOf(w.view, o) {
			if p.objects.has[at.Ref()] {
				continue
			}
			w.enterRoot(at, at.listeners(w.view))
			visit := func() error { return w.rootPaths(ref) }
			if r, ok := o.(*gateway.Route); ok {
				visit = func() error { return w.throughRoute(r) }
			}
			if err := visit(); err != nil {
				return err
			}
		}
	}
	for _, ref := range p.virtual.list {
		if err := w.virtualPath(ref); err != nil {
			return err
		}
	}
	return nil
}

// wholeRoot visits the paths from a root.
func (w *walk) wholeRoot(at root) error {
	if at.isZero() {
		return nil
	}
	w.enterRoot(at, at.listeners(w.view))
	if err := w.rootPaths(api.Ref{}); err != nil {
		return err
	}
	for r := range at.routes(w.view) {
		if err := w.throughRoute(r); err != nil {
			return err
		}
	}
	return nil
}

// rootPaths visits the paths that end at the root and its listeners, or given a listener set,
// at those of the set.
func (w *walk) rootPaths(set api.Ref) error {
	switch {
	case w.root.service != nil && set == api.Ref{}:
		return w.servicePath()
	case w.root.gateway != nil:
		return w.gatewayPaths(set)
	default:
		return nil
	}
}

// throughRoute visits the paths from the root through a route, none if there is no such root
// or route.
func (w *walk) throughRoute(r *gateway.Route) error {
	if r == nil || w.root.isZero() {
		return nil
	}
	if err := w.budget.Alive(); err != nil {
		return err
	}
	if w.root.service != nil {
		return w.meshRoute(r)
	}
	return w.gatewayRoute(r)
}

// gatewayPaths is rootPaths at a gateway.
func (w *walk) gatewayPaths(set api.Ref) error {
	whole := set == api.Ref{}
	for i := range w.kinds {
		k := &w.kinds[i]
		if !k.shape.gateway {
			continue
		}
		switch k.shape.gatewayEnd {
		case gateway.LevelGateway:
			if !whole {
				continue
			}
			if err := k.path(gateway.Path{Gateway: w.root.gateway, Rule: -1}); err != nil {
				return err
			}
		case gateway.LevelListener:
			for _, d := range w.listeners {
				if !whole && d.Parent() != set {
					continue
				}
				if err := k.path(listenerPath(d)); err != nil {
					return err
				}
			}
		default:
		}
	}
	return nil
}

func (w *walk) gatewayRoute(r *gateway.Route) error {
	if w.labels == nil || w.namespace != r.Namespace {
		w.namespace, w.labels = r.Namespace, w.view.NamespaceLabels(r.Namespace)
	}
	w.accepting = w.accepting[:0]
	for _, d := range w.listeners {
		if d.Accepts(r, w.labels) {
			w.accepting = append(w.accepting, d)
		}
	}
	if len(w.accepting) == 0 {
		return nil
	}
	w.enterRoute(r)
	for i := range w.kinds {
		k := &w.kinds[i]
		if !k.shape.gateway || k.shape.gatewayEnd < gateway.LevelRoute || !k.shape.includesRoute(r.Kind) {
			continue
		}
		for _, d := range w.accepting {
			p := listenerPath(d)
			p.Route = r
			if err := k.belowRoute(k.shape.gatewayEnd, p); err != nil {
				return err
			}
		}
	}
	return nil
}
