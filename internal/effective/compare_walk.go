package effective

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// run compares the units of two plans of one scope. What only one plan has is looked up
// in the view of the other.
func (c *comparison) run(before, after *plan) error {
	roots := pairByName(before.roots.list, after.roots.list, root.ref, before.rootAt, after.rootAt)
	for _, r := range roots.list {
		if err := c.wholeRoot(before, after, r); err != nil {
			return err
		}
	}
	for _, s := range pairByName(before.sets.list, after.sets.list, (*gateway.ListenerSet).Ref, before.setAt, after.setAt).list {
		if err := c.listenerSet(before, after, &roots, s); err != nil {
			return err
		}
	}
	for _, r := range pairByName(before.routes.list, after.routes.list, (*gateway.Route).Ref, before.routeAt, after.routeAt).list {
		if err := c.routeAtRoots(before, after, &roots, r); err != nil {
			return err
		}
	}
	return c.virtual(before, after)
}

// sides is an object before and after; zero where it does not exist.
type sides[T any] struct{ before, after T }

// sidesList has objects before and after, in their order after, removed ones last.
type sidesList[T any] struct {
	list  []sides[T]
	names []api.Ref
	index map[api.Ref]struct{} // of the names, once they are many
}

func (p *sidesList[T]) add(name api.Ref, x sides[T]) {
	p.list, p.names = append(p.list, x), append(p.names, name)
	switch {
	case p.index != nil:
		p.index[name] = struct{}{}
	case len(p.names) > maxLinear:
		p.index = make(map[api.Ref]struct{}, 2*len(p.names))
		for _, n := range p.names {
			p.index[n] = struct{}{}
		}
	}
}

func (p *sidesList[T]) has(name api.Ref) bool {
	if p.index != nil {
		_, ok := p.index[name]
		return ok
	}
	return slices.Contains(p.names, name)
}

// pairByName pairs two lists by name. What is in only one list is looked up in the
// other view.
func pairByName[T any](was, is []T, name func(T) api.Ref, inBefore, inAfter func(api.Ref) T) sidesList[T] {
	var out sidesList[T]
	for _, x := range is {
		ref := name(x)
		out.add(ref, sides[T]{inBefore(ref), x})
	}
	for _, x := range was {
		if ref := name(x); !out.has(ref) {
			out.add(ref, sides[T]{x, inAfter(ref)})
		}
	}
	return out
}

// wholeRoot compares a root and all routes on it.
func (c *comparison) wholeRoot(before, after *plan, r sides[root]) error {
	c.enterRoot(before, after, r)
	if err := c.rootUnit(r, c.walkBefore.listeners, c.walkAfter.listeners, true); err != nil {
		return err
	}
	parent := r.after
	if parent.isZero() {
		parent = r.before
	}
	for was, is := range snapshot.RoutesOfBoth(before.view, after.view, parent.ref()) {
		if err := c.directRoute(before, after, r, was, is); err != nil {
			return err
		}
	}
	return c.routesBySets(before, after, r)
}

// enterRoot makes a root the current one of both walks, where it exists.
func (c *comparison) enterRoot(before, after *plan, r sides[root]) {
	enter := func(w *walk, p *plan, r root) {
		if w.root != r || r.isZero() {
			w.enterRoot(r, p.listeners(r))
		}
	}
	enter(c.walkBefore, before, r.before)
	enter(c.walkAfter, after, r.after)
}

// rootUnit compares the paths that end at a root, or at listeners of it.
func (c *comparison) rootUnit(r sides[root], was, is []gateway.ListenerMatch, whole bool) error {
	var walkWas, walkIs func() error
	if !r.before.isZero() {
		walkWas = func() error { return c.walkBefore.rootPaths(was, whole) }
	}
	if !r.after.isZero() {
		walkIs = func() error { return c.walkAfter.rootPaths(is, whole) }
	}
	c.rulesBefore = nil
	return c.unit(walkWas, walkIs)
}

// directRoute compares the paths through a route that has the root itself as a parent
// before or after. On the other side, it may have a listener set of the root as a
// parent, or neither.
func (c *comparison) directRoute(before, after *plan, r sides[root], was, is *gateway.Route) error {
	switch {
	case is == nil:
		if is = after.routeAt(was.Ref()); is != nil && after.isUnder(is, r.after) {
			return nil // it follows with the set
		}
	case was == nil:
		was = before.routeAt(is.Ref())
	}
	return c.route(r, was, is)
}

// routesBySets compares the paths through routes that have a listener set of a gateway
// as a parent, and not the gateway itself.
func (c *comparison) routesBySets(before, after *plan, r sides[root]) error {
	for is := range after.routesBySets(r.after) {
		if err := c.route(r, before.routeAt(is.Ref()), is); err != nil {
			return err
		}
	}
	for was := range before.routesBySets(r.before) {
		is := after.routeAt(was.Ref())
		if is != nil && after.isUnder(is, r.after) {
			continue // it was compared above
		}
		if err := c.route(r, was, is); err != nil {
			return err
		}
	}
	return nil
}

// route compares the paths from a root through a route; either may be nil.
func (c *comparison) route(r sides[root], was, is *gateway.Route) error {
	var walkWas, walkIs func() error
	if was != nil && !r.before.isZero() {
		walkWas = func() error { return c.walkBefore.throughRoute(was) }
	}
	if is != nil && !r.after.isZero() {
		walkIs = func() error { return c.walkAfter.throughRoute(is) }
	}
	c.rulesBefore = nil
	if was != is && was != nil && is != nil {
		c.rulesBefore = gateway.MatchRules(was, is)
	}
	return c.unit(walkWas, walkIs)
}

// listenerSet compares the paths that end at the listeners of a set, unless its
// gateway is compared as a whole.
func (c *comparison) listenerSet(before, after *plan, whole *sidesList[root], s sides[*gateway.ListenerSet]) error {
	was, is := before.gatewayOf(s.before), after.gatewayOf(s.after)
	if !was.isZero() && !is.isZero() && was.ref() == is.ref() {
		if whole.has(is.ref()) {
			return nil
		}
		c.enterRoot(before, after, sides[root]{was, is})
		return c.rootUnit(sides[root]{was, is}, before.setListeners(was.gateway, s.before), after.setListeners(is.gateway, s.after), false)
	}
	if !is.isZero() && !whole.has(is.ref()) {
		c.enterRoot(before, after, sides[root]{after: is})
		if err := c.rootUnit(sides[root]{after: is}, nil, after.setListeners(is.gateway, s.after), false); err != nil {
			return err
		}
	}
	if !was.isZero() && !whole.has(was.ref()) {
		c.enterRoot(before, after, sides[root]{before: was})
		return c.rootUnit(sides[root]{before: was}, before.setListeners(was.gateway, s.before), nil, false)
	}
	return nil
}

// routeAtRoots compares the paths through a route at all of its roots, except those
// that are compared as a whole.
func (c *comparison) routeAtRoots(before, after *plan, whole *sidesList[root], r sides[*gateway.Route]) error {
	for _, at := range pairByName(before.rootsOf(r.before), after.rootsOf(r.after), root.ref, before.rootAt, after.rootAt).list {
		name := at.after
		if name.isZero() {
			name = at.before
		}
		if whole.has(name.ref()) {
			continue
		}
		c.enterRoot(before, after, at)
		if err := c.route(at, r.before, r.after); err != nil {
			return err
		}
	}
	return nil
}

// virtual compares the paths of virtual targets.
func (c *comparison) virtual(before, after *plan) error {
	c.rulesBefore = nil
	all := after.virtual
	for _, ref := range before.virtual.list {
		all.add(ref)
	}
	for _, ref := range all.list {
		err := c.unit(func() error { return c.walkBefore.virtualPath(ref) }, func() error { return c.walkAfter.virtualPath(ref) })
		if err != nil {
			return err
		}
	}
	return nil
}
