package effective

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// Compare walks the paths of a scope before and after a change, and calls visit with
// each pair of a path before and after: root by root, and under it route by route,
// first the paths after in the order of their walk, then those that were removed. The
// rules of a route that changed are paired by gateway.MatchRules, the listeners of a
// gateway by gateway.PairListeners. A path of a mesh for
// one port or for the clients of one namespace is paired with the path that contains
// it, if it has no counterpart of its own. A kind may have another profile after.
//
// A path that has lost its last policy is visited without one. A path without a policy
// both before and after is only visited for the kinds of Scope.Empty.
//
// Only the paths through one route at one root are in memory at a time. The conditions
// before the change are limited by time alone: their cost is not charged to the write.
func (e *Engine) Compare(before, after *snapshot.View, s Scope, b *Budget, visit func(Pair) error) error {
	c := &comparison{empty: s.Empty, visit: visit}
	c.walkBefore = newWalk(e, before, s.kinds(before, false), b.timeOnly(), c.addBefore)
	for i := range c.walkBefore.kinds {
		c.walkBefore.kinds[i].empty = slices.Contains(s.Empty, c.walkBefore.kinds[i].kind.Ref())
	}
	s.Empty = slices.Concat(s.Empty, refsOf(c.walkBefore.kinds))
	c.walkAfter = newWalk(e, after, s.kinds(after, false), b, c.pairAfter)
	c.walkAfter.whatIf, c.walkAfter.binder = true, c.walkBefore.binder
	c.planBefore, c.planAfter = s.plan(before), s.plan(after)
	return c.run()
}

func refsOf(kinds []kindWalk) []api.PolicyKind {
	out := make([]api.PolicyKind, len(kinds))
	for i := range kinds {
		out[i] = kinds[i].kind.Ref()
	}
	return out
}

// run compares the units of two plans of one scope. What only one plan has is looked up
// in the view of the other.
func (c *comparison) run() error {
	before, after := c.planBefore, c.planAfter
	roots := pairByName(c, before.roots.list, after.roots.list, (*plan).rootAt)
	for _, r := range roots.list {
		if err := c.wholeRoot(r); err != nil {
			return err
		}
	}
	for _, s := range pairByName(c, before.sets.list, after.sets.list, (*plan).listenerSetAt).list {
		if err := c.listenerSet(&roots, s); err != nil {
			return err
		}
	}
	for _, r := range pairByName(c, before.routes.list, after.routes.list, (*plan).routeAt).list {
		if err := c.routeAtRoots(&roots, r); err != nil {
			return err
		}
	}
	return c.virtual()
}

// sides is an object before and after; zero where it does not exist.
type sides[T any] struct{ before, after T }

// nameOf returns the name of a root.
func nameOf(r sides[root]) api.Ref {
	if r.after.isZero() {
		return r.before.Ref()
	}
	return r.after.Ref()
}

// sidesList has objects before and after, in their order after, removed ones last.
type sidesList[T any] struct {
	list  []sides[T]
	names map[api.Ref]bool
}

// pairByName pairs two lists by name. What is in only one list is looked up in the other
// plan's view.
func pairByName[T interface{ Ref() api.Ref }](c *comparison, before, after []T, find func(*plan, api.Ref) T) sidesList[T] {
	out := sidesList[T]{names: make(map[api.Ref]bool, len(after))}
	for _, x := range after {
		ref := x.Ref()
		out.list, out.names[ref] = append(out.list, sides[T]{find(c.planBefore, ref), x}), true
	}
	for _, x := range before {
		if ref := x.Ref(); !out.names[ref] {
			out.list, out.names[ref] = append(out.list, sides[T]{x, find(c.planAfter, ref)}), true
		}
	}
	return out
}

// wholeRoot compares a root and all routes on it.
func (c *comparison) wholeRoot(r sides[root]) error {
	c.enterRoot(r)
	if err := c.rootUnit(c.walkBefore.listeners, c.walkAfter.listeners, true); err != nil {
		return err
	}
	for before, after := range snapshot.RoutesOfBoth(c.planBefore.view, c.planAfter.view, nameOf(r)) {
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
func (c *comparison) rootUnit(before, after []gateway.ListenerMatch, whole bool) error {
	return c.unit(nil,
		func() error { return c.walkBefore.rootPaths(before, whole) },
		func() error { return c.walkAfter.rootPaths(after, whole) })
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
	return c.route(before, after)
}

// routesBySets compares the paths through routes that have a listener set of a gateway
// as a parent, and not the gateway itself.
func (c *comparison) routesBySets(r sides[root]) error {
	for after := range c.planAfter.routesBySets(r.after) {
		if err := c.route(c.planBefore.routeAt(after.Ref()), after); err != nil {
			return err
		}
	}
	for before := range c.planBefore.routesBySets(r.before) {
		after := c.planAfter.routeAt(before.Ref())
		if after != nil && c.planAfter.isUnder(after, r.after) {
			continue // it was compared above
		}
		if err := c.route(before, after); err != nil {
			return err
		}
	}
	return nil
}

// route compares the paths from the current root through a route; either may be nil.
func (c *comparison) route(before, after *gateway.Route) error {
	var rules []int
	if before != after && before != nil && after != nil {
		rules = gateway.MatchRules(before, after)
	}
	return c.unit(rules,
		func() error { return c.walkBefore.throughRoute(before) },
		func() error { return c.walkAfter.throughRoute(after) })
}

// listenerSet compares the paths that end at the listeners of a set, unless its
// gateway is compared as a whole.
func (c *comparison) listenerSet(whole *sidesList[root], s sides[*gateway.ListenerSet]) error {
	return c.otherRoots(whole, c.planBefore.gatewayOf(s.before).list(), c.planAfter.gatewayOf(s.after).list(), func(at sides[root]) error {
		return c.rootUnit(c.planBefore.setListeners(at.before, s.before), c.planAfter.setListeners(at.after, s.after), false)
	})
}

// routeAtRoots compares the paths through a route at all of its roots, except those
// that are compared as a whole.
func (c *comparison) routeAtRoots(whole *sidesList[root], r sides[*gateway.Route]) error {
	return c.otherRoots(whole, c.planBefore.rootsOf(r.before), c.planAfter.rootsOf(r.after), func(sides[root]) error { return c.route(r.before, r.after) })
}

// otherRoots enters roots, except those that are compared as a whole.
func (c *comparison) otherRoots(whole *sidesList[root], before, after []root, compare func(sides[root]) error) error {
	for _, at := range pairByName(c, before, after, (*plan).rootAt).list {
		if whole.names[nameOf(at)] {
			continue
		}
		c.enterRoot(at)
		if err := compare(at); err != nil {
			return err
		}
	}
	return nil
}

// virtual compares the paths of virtual targets.
func (c *comparison) virtual() error {
	all := c.planAfter.virtual
	for _, ref := range c.planBefore.virtual.list {
		all.add(ref)
	}
	for _, ref := range all.list {
		err := c.unit(nil, func() error { return c.walkBefore.virtualPath(ref) }, func() error { return c.walkAfter.virtualPath(ref) })
		if err != nil {
			return err
		}
	}
	return nil
}
