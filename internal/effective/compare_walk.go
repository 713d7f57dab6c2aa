package effective

import (
	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// run compares the units of two plans of one scope. What only one plan has is looked up
// in the view of the other.
func (c *comparison) run() error {
	before, after := c.planBefore, c.planAfter
	roots := pairByName(before.roots.list, after.roots.list, root.ref, before.rootAt, after.rootAt)
	for _, r := range roots.list {
		if err := c.wholeRoot(r); err != nil {
			return err
		}
	}
	for _, s := range pairByName(before.sets.list, after.sets.list, (*gateway.ListenerSet).Ref, before.listenerSetAt, after.listenerSetAt).list {
		if err := c.listenerSet(&roots, s); err != nil {
			return err
		}
	}
	for _, r := range pairByName(before.routes.list, after.routes.list, (*gateway.Route).Ref, before.routeAt, after.routeAt).list {
		if err := c.routeAtRoots(&roots, r); err != nil {
			return err
		}
	}
	return c.virtual()
}

// sides is an object before and after; zero where it does not exist.
type sides[T any] struct{ before, after T }

// sidesList has objects before and after, in their order after, removed ones last.
type sidesList[T any] struct {
	list  []sides[T]
	names map[api.Ref]bool
}

// pairByName pairs two lists by name. What is in only one list is looked up in the
// other view.
func pairByName[T any](before, after []T, name func(T) api.Ref, inBefore, inAfter func(api.Ref) T) sidesList[T] {
	out := sidesList[T]{names: make(map[api.Ref]bool, len(after))}
	for _, x := range after {
		ref := name(x)
		out.list, out.names[ref] = append(out.list, sides[T]{inBefore(ref), x}), true
	}
	for _, x := range before {
		if ref := name(x); !out.names[ref] {
			out.list, out.names[ref] = append(out.list, sides[T]{x, inAfter(ref)}), true
		}
	}
	return out
}

// wholeRoot compares a root and all routes on it.
func (c *comparison) wholeRoot(r sides[root]) error {
	c.enterRoot(r)
	if err := c.rootUnit(r, c.walkBefore.listeners, c.walkAfter.listeners, true); err != nil {
		return err
	}
	parent := r.after
	if parent.isZero() {
		parent = r.before
	}
	for before, after := range snapshot.RoutesOfBoth(c.planBefore.view, c.planAfter.view, parent.ref()) {
		if err := c.directRoute(r, before, after); err != nil {
			return err
		}
	}
	return c.routesBySets(r)
}

// enterRoot makes a root the current one of both walks, where it exists.
func (c *comparison) enterRoot(r sides[root]) {
	enter := func(w *walk, p *plan, r root) bool {
		if w.root == r && !r.isZero() {
			return false
		}
		w.enterRoot(r, p.listeners(r))
		return true
	}
	enteredBefore, enteredAfter := enter(c.walkBefore, c.planBefore, r.before), enter(c.walkAfter, c.planAfter, r.after)
	if enteredBefore || enteredAfter {
		c.listenersBefore = gateway.PairListeners(c.walkBefore.listeners, c.walkAfter.listeners)
	}
}

// rootUnit compares the paths that end at a root, or at listeners of it.
func (c *comparison) rootUnit(r sides[root], before, after []gateway.ListenerMatch, whole bool) error {
	var walkBefore, walkAfter func() error
	if !r.before.isZero() {
		walkBefore = func() error { return c.walkBefore.rootPaths(before, whole) }
	}
	if !r.after.isZero() {
		walkAfter = func() error { return c.walkAfter.rootPaths(after, whole) }
	}
	c.rulesBefore = nil
	return c.unit(walkBefore, walkAfter)
}

// directRoute compares the paths through a route that has the root itself as a parent
// before or after. On the other side, it may have a listener set of the root as a
// parent, or neither.
func (c *comparison) directRoute(r sides[root], before, after *gateway.Route) error {
	switch {
	case after == nil:
		if after = c.planAfter.routeAt(before.Ref()); after != nil && c.planAfter.isUnder(after, r.after) {
			return nil // it follows with the set
		}
	case before == nil:
		before = c.planBefore.routeAt(after.Ref())
	}
	return c.route(r, before, after)
}

// routesBySets compares the paths through routes that have a listener set of a gateway
// as a parent, and not the gateway itself.
func (c *comparison) routesBySets(r sides[root]) error {
	for after := range c.planAfter.routesBySets(r.after) {
		if err := c.route(r, c.planBefore.routeAt(after.Ref()), after); err != nil {
			return err
		}
	}
	for before := range c.planBefore.routesBySets(r.before) {
		after := c.planAfter.routeAt(before.Ref())
		if after != nil && c.planAfter.isUnder(after, r.after) {
			continue // it was compared above
		}
		if err := c.route(r, before, after); err != nil {
			return err
		}
	}
	return nil
}

// route compares the paths from a root through a route; either may be nil.
func (c *comparison) route(r sides[root], before, after *gateway.Route) error {
	var walkBefore, walkAfter func() error
	if before != nil && !r.before.isZero() {
		walkBefore = func() error { return c.walkBefore.throughRoute(before) }
	}
	if after != nil && !r.after.isZero() {
		walkAfter = func() error { return c.walkAfter.throughRoute(after) }
	}
	c.rulesBefore = nil
	if before != after && before != nil && after != nil {
		c.rulesBefore = gateway.MatchRules(before, after)
	}
	return c.unit(walkBefore, walkAfter)
}

// listenerSet compares the paths that end at the listeners of a set, unless its
// gateway is compared as a whole.
func (c *comparison) listenerSet(whole *sidesList[root], s sides[*gateway.ListenerSet]) error {
	before, after := c.planBefore.gatewayOf(s.before), c.planAfter.gatewayOf(s.after)
	if !before.isZero() && !after.isZero() && before.ref() == after.ref() {
		if whole.names[after.ref()] {
			return nil
		}
		c.enterRoot(sides[root]{before, after})
		return c.rootUnit(sides[root]{before, after}, c.planBefore.setListeners(before.gateway, s.before), c.planAfter.setListeners(after.gateway, s.after), false)
	}
	if !after.isZero() && !whole.names[after.ref()] {
		c.enterRoot(sides[root]{after: after})
		if err := c.rootUnit(sides[root]{after: after}, nil, c.planAfter.setListeners(after.gateway, s.after), false); err != nil {
			return err
		}
	}
	if !before.isZero() && !whole.names[before.ref()] {
		c.enterRoot(sides[root]{before: before})
		return c.rootUnit(sides[root]{before: before}, c.planBefore.setListeners(before.gateway, s.before), nil, false)
	}
	return nil
}

// routeAtRoots compares the paths through a route at all of its roots, except those
// that are compared as a whole.
func (c *comparison) routeAtRoots(whole *sidesList[root], r sides[*gateway.Route]) error {
	for _, at := range pairByName(c.planBefore.rootsOf(r.before), c.planAfter.rootsOf(r.after), root.ref, c.planBefore.rootAt, c.planAfter.rootAt).list {
		name := at.after
		if name.isZero() {
			name = at.before
		}
		if whole.names[name.ref()] {
			continue
		}
		c.enterRoot(at)
		if err := c.route(at, r.before, r.after); err != nil {
			return err
		}
	}
	return nil
}

// virtual compares the paths of virtual targets.
func (c *comparison) virtual() error {
	c.rulesBefore = nil
	all := c.planAfter.virtual
	for _, ref := range c.planBefore.virtual.list {
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
