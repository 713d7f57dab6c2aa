package effective

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// run goes through the units of two plans side by side. What one plan has and the
// other lacks is looked up in the other's view: both are about one scope.
func (c *comparison) run(before, after *plan) error {
	roots := beside(before.roots.list, after.roots.list, root.ref, before.rootAt, after.rootAt)
	for _, r := range roots.list {
		if err := c.wholeRoot(before, after, r); err != nil {
			return err
		}
	}
	for _, s := range beside(before.sets.list, after.sets.list, (*gateway.ListenerSet).Ref, before.setAt, after.setAt).list {
		if err := c.set(before, after, &roots, s); err != nil {
			return err
		}
	}
	for _, r := range beside(before.routes.list, after.routes.list, (*gateway.Route).Ref, before.routeAt, after.routeAt).list {
		if err := c.routeAtRoots(before, after, &roots, r); err != nil {
			return err
		}
	}
	return c.virtual(before, after)
}

// both is one object before and after; its zero is where it is not there.
type both[T any] struct{ was, is T }

// pairs are objects before and after, in the order after, those that are gone
// last.
type pairs[T any] struct {
	list  []both[T]
	names []api.Ref
	index map[api.Ref]struct{} // of the names, once they are many
}

func (p *pairs[T]) add(name api.Ref, x both[T]) {
	p.list, p.names = append(p.list, x), append(p.names, name)
	switch {
	case p.index != nil:
		p.index[name] = struct{}{}
	case len(p.names) > few:
		p.index = make(map[api.Ref]struct{}, 2*len(p.names))
		for _, n := range p.names {
			p.index[n] = struct{}{}
		}
	}
}

func (p *pairs[T]) has(name api.Ref) bool {
	if p.index != nil {
		_, ok := p.index[name]
		return ok
	}
	return slices.Contains(p.names, name)
}

// beside pairs two lists by name. What is in one list alone is looked up in the
// other view.
func beside[T any](was, is []T, name func(T) api.Ref, inBefore, inAfter func(api.Ref) T) pairs[T] {
	var out pairs[T]
	for _, x := range is {
		ref := name(x)
		out.add(ref, both[T]{inBefore(ref), x})
	}
	for _, x := range was {
		if ref := name(x); !out.has(ref) {
			out.add(ref, both[T]{x, inAfter(ref)})
		}
	}
	return out
}

// wholeRoot compares a root and all routes on it.
func (c *comparison) wholeRoot(before, after *plan, r both[root]) error {
	c.enterRoot(before, after, r)
	if err := c.rootUnit(r, c.was.doors, c.is.doors, true); err != nil {
		return err
	}
	parent := r.is
	if parent.none() {
		parent = r.was
	}
	for was, is := range snapshot.RoutesOfBoth(before.view, after.view, parent.ref()) {
		if err := c.direct(before, after, r, was, is); err != nil {
			return err
		}
	}
	return c.bySets(before, after, r)
}

// enterRoot makes both walks enter a root, as far as it is there.
func (c *comparison) enterRoot(before, after *plan, r both[root]) {
	enter := func(w *walk, p *plan, r root) {
		if w.root != r || r.none() {
			w.enterRoot(r, p.doors(r))
		}
	}
	enter(c.was, before, r.was)
	enter(c.is, after, r.is)
}

// rootUnit compares the paths that end at a root, or at doors of it.
func (c *comparison) rootUnit(r both[root], was, is []gateway.ListenerMatch, whole bool) error {
	var walkWas, walkIs func() error
	if !r.was.none() {
		walkWas = func() error { return c.was.rootPaths(was, whole) }
	}
	if !r.is.none() {
		walkIs = func() error { return c.is.rootPaths(is, whole) }
	}
	c.positions = nil
	return c.unit(walkWas, walkIs)
}

// direct compares the paths through a route that names the root itself, before or
// after: it may be under it by a listener set on the other side, or there for
// other reasons.
func (c *comparison) direct(before, after *plan, r both[root], was, is *gateway.Route) error {
	switch {
	case is == nil:
		if is = after.routeAt(was.Ref()); is != nil && after.under(is, r.is) {
			return nil // its turn comes with the set
		}
	case was == nil:
		was = before.routeAt(is.Ref())
	}
	return c.route(r, was, is)
}

// bySets compares the paths through routes that are under a gateway by one of its
// listener sets alone.
func (c *comparison) bySets(before, after *plan, r both[root]) error {
	for is := range after.routesBySets(r.is) {
		if err := c.route(r, before.routeAt(is.Ref()), is); err != nil {
			return err
		}
	}
	for was := range before.routesBySets(r.was) {
		is := after.routeAt(was.Ref())
		if is != nil && after.under(is, r.is) {
			continue // it had its turn
		}
		if err := c.route(r, was, is); err != nil {
			return err
		}
	}
	return nil
}

// route compares the paths from a root through a route; either may be nil.
func (c *comparison) route(r both[root], was, is *gateway.Route) error {
	var walkWas, walkIs func() error
	if was != nil && !r.was.none() {
		walkWas = func() error { return c.was.throughRoute(was) }
	}
	if is != nil && !r.is.none() {
		walkIs = func() error { return c.is.throughRoute(is) }
	}
	c.positions = nil
	if was != is && was != nil && is != nil {
		c.positions = gateway.MatchRules(was, is)
	}
	return c.unit(walkWas, walkIs)
}

// set compares the paths that end at the listeners of a set, unless those of its
// gateway are compared as a whole.
func (c *comparison) set(before, after *plan, whole *pairs[root], s both[*gateway.ListenerSet]) error {
	was, is := before.gatewayOf(s.was), after.gatewayOf(s.is)
	if !was.none() && !is.none() && was.ref() == is.ref() {
		if whole.has(is.ref()) {
			return nil
		}
		c.enterRoot(before, after, both[root]{was, is})
		return c.rootUnit(both[root]{was, is}, before.setDoors(was.gateway, s.was), after.setDoors(is.gateway, s.is), false)
	}
	if !is.none() && !whole.has(is.ref()) {
		c.enterRoot(before, after, both[root]{is: is})
		if err := c.rootUnit(both[root]{is: is}, nil, after.setDoors(is.gateway, s.is), false); err != nil {
			return err
		}
	}
	if !was.none() && !whole.has(was.ref()) {
		c.enterRoot(before, after, both[root]{was: was})
		return c.rootUnit(both[root]{was: was}, before.setDoors(was.gateway, s.was), nil, false)
	}
	return nil
}

// routeAtRoots compares the paths through a route at all of its roots, save those
// that are compared as a whole.
func (c *comparison) routeAtRoots(before, after *plan, whole *pairs[root], r both[*gateway.Route]) error {
	for _, at := range beside(before.rootsOf(r.was), after.rootsOf(r.is), root.ref, before.rootAt, after.rootAt).list {
		name := at.is
		if name.none() {
			name = at.was
		}
		if whole.has(name.ref()) {
			continue
		}
		c.enterRoot(before, after, at)
		if err := c.route(at, r.was, r.is); err != nil {
			return err
		}
	}
	return nil
}

// virtual compares the paths of targets that exist nowhere.
func (c *comparison) virtual(before, after *plan) error {
	c.positions = nil
	all := after.virtual
	for _, ref := range before.virtual.list {
		all.add(ref)
	}
	for _, ref := range all.list {
		err := c.unit(func() error { return c.was.virtualPath(ref) }, func() error { return c.is.virtualPath(ref) })
		if err != nil {
			return err
		}
	}
	return nil
}
