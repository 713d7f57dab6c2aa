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
	return c.run(s.plan(after, before))
}

func refsOf(kinds []kindWalk) []api.PolicyKind {
	out := make([]api.PolicyKind, len(kinds))
	for i := range kinds {
		out[i] = kinds[i].kind.Ref()
	}
	return out
}

// run compares the units of a plan: first the roots, then what is under others.
func (c *comparison) run(p *plan) error {
	for _, ref := range p.objects.list {
		if gateway.IsRoute(ref.PolicyKind()) {
			continue
		}
		if err := c.wholeRoot(ref, c.rootsAt(ref)); err != nil {
			return err
		}
	}
	for _, ref := range p.objects.list {
		if err := c.part(p, ref); err != nil {
			return err
		}
	}
	for _, ref := range p.virtual.list {
		err := c.unit(nil, func() error { return c.walkBefore.virtualPath(ref) }, func() error { return c.walkAfter.virtualPath(ref) })
		if err != nil {
			return err
		}
	}
	return nil
}

// roots is a root before and after; zero where it does not exist.
type roots struct{ before, after root }

func (c *comparison) rootsAt(ref api.Ref) roots {
	return roots{rootAt(c.walkBefore.view, ref), rootAt(c.walkAfter.view, ref)}
}

// wholeRoot compares a root and all routes on it.
func (c *comparison) wholeRoot(ref api.Ref, r roots) error {
	if r == (roots{}) {
		return nil
	}
	c.enterRoot(r)
	if err := c.rootUnit(api.Ref{}); err != nil {
		return err
	}
	for before, after := range snapshot.RoutesOfBoth(c.walkBefore.view, c.walkAfter.view, ref) {
		if err := c.directRoute(r, before, after); err != nil {
			return err
		}
	}
	return c.routesBySets(r)
}

// enterRoot makes a root the current one of both walks, where it exists.
func (c *comparison) enterRoot(r roots) {
	enter := func(w *walk, r root) bool {
		if w.root == r && !r.isZero() {
			return false
		}
		w.enterRoot(r, r.listeners(w.view))
		return true
	}
	enteredBefore, enteredAfter := enter(c.walkBefore, r.before), enter(c.walkAfter, r.after)
	if enteredBefore || enteredAfter {
		c.listenersBefore = gateway.PairListeners(c.walkBefore.listeners, c.walkAfter.listeners)
	}
}

// rootUnit compares the paths that end at a root and its listeners, or at those of a set.
func (c *comparison) rootUnit(set api.Ref) error {
	return c.unit(nil, func() error { return c.walkBefore.rootPaths(set) }, func() error { return c.walkAfter.rootPaths(set) })
}

// directRoute compares the paths through a route that has the root itself as a parent
// before or after. On the other side, it may have a listener set of the root as a
// parent, or neither.
func (c *comparison) directRoute(r roots, before, after *gateway.Route) error {
	switch {
	case after == nil:
		if after = routeAt(c.walkAfter.view, before.Ref()); after != nil && slices.Contains(rootsOf(c.walkAfter.view, after), r.after) {
			return nil // it follows with the set
		}
	case before == nil:
		before = routeAt(c.walkBefore.view, after.Ref())
	}
	return c.route(before, after)
}

// routesBySets compares the paths through routes that have a listener set of a gateway
// as a parent, and not the gateway itself.
func (c *comparison) routesBySets(r roots) error {
	for after := range r.after.routesBySets(c.walkAfter.view) {
		if err := c.route(routeAt(c.walkBefore.view, after.Ref()), after); err != nil {
			return err
		}
	}
	for before := range r.before.routesBySets(c.walkBefore.view) {
		after := routeAt(c.walkAfter.view, before.Ref())
		if after != nil && slices.Contains(rootsOf(c.walkAfter.view, after), r.after) {
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

// part compares the paths through a route, or to the listeners of a set, at all of its roots
// except those that are compared as a whole.
func (c *comparison) part(p *plan, ref api.Ref) error {
	before, after := c.walkBefore.view.Get(ref), c.walkAfter.view.Get(ref)
	var at orderedSet[api.Ref]
	for _, r := range slices.Concat(rootsOf(c.walkAfter.view, after), rootsOf(c.walkBefore.view, before)) {
		at.add(r.Ref())
	}
	for _, root := range at.list {
		if p.objects.has[root] {
			continue
		}
		c.enterRoot(c.rootsAt(root))
		compare := func() error { return c.rootUnit(ref) }
		if gateway.IsRoute(ref.PolicyKind()) {
			before, _ := before.(*gateway.Route)
			after, _ := after.(*gateway.Route)
			compare = func() error { return c.route(before, after) }
		}
		if err := compare(); err != nil {
			return err
		}
	}
	return nil
}
