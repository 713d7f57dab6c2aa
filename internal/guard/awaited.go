package guard

import (
	"cmp"
	"maps"
	"slices"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// compareAwaited finds the overrides on requests that the write has come in by another
// listener, where no route serves them yet. It compares them as if one did: the route that
// is attached there next takes nothing from anyone, so that its write is too late.
func (ev *overrides) compareAwaited() error {
	o, err := ev.awaited()
	if o == nil || err != nil {
		return err
	}
	s := o.othersScope()
	if len(s.Objects) == 0 {
		return nil
	}
	if err := ev.compareVariant(o, s, "of listeners without routes", func(p effective.Pair) error { return ev.checkAwaited(o, p) }); err != nil {
		return err
	}
	ev.dropKnown(o)
	ev.addNewLosses(o)
	return nil
}

// withAwaited returns the write with a route at each listener that it adds, and these routes;
// nil if there are none.
func (ev *overrides) withAwaited() (with *overrides, routes []*gateway.Route) {
	if !ev.editsListeners() {
		return nil, nil
	}
	var puts []snapshot.Change
	for _, entry := range ev.rerouted().entries {
		at := ev.routersOf(entry)
		if at.mesh || at.before == nil || at.after == nil {
			continue
		}
		for _, l := range at.after.ListenersNew(at.before) {
			r := gateway.AwaitedRoute(&l)
			routes, puts = append(routes, r), append(puts, snapshot.Put(r))
		}
	}
	if len(routes) == 0 {
		return nil, nil
	}
	with = ev.variant(ev.before, ev.after.With(puts...))
	*with.requests = requests{write: with.write, moves: make(map[rulePlace][]flow), stake: ev.stake}
	return with, routes
}

// awaited returns the write with the routes that are awaited, and the requests that it moves
// there; nil if none matters.
func (ev *overrides) awaited() (*overrides, error) {
	o, routes := ev.withAwaited()
	if o == nil {
		return nil, nil
	}
	limits, matters := o.moveLimits()
	if !matters {
		return nil, nil
	}
	limits.Known = func(from, to gateway.Served) bool { return !to.Route.Awaited || o.knows(from, to) }
	for _, entry := range ev.rerouted().entries {
		at := o.routersOf(entry)
		if at.before == nil || at.after == nil {
			continue
		}
		at.before = ev.routersOf(entry).before // with what it remembers
		re := reroutedObject{after: routes}
		if slices.ContainsFunc(routes, func(r *gateway.Route) bool { return r.Kind != gateway.KindHTTPRoute }) {
			for _, parent := range at.before.ListenersGone(at.after) { // whose requests become connections
				re.before = appendNew(re.before, ev.before.RoutesOf(parent))
			}
		}
		for r := range at.readings(routes...) {
			if err := o.trackMoves(at, r, re, limits); err != nil {
				return nil, err
			}
		}
	}
	return o, nil
}

// checkAwaited checks, with routes that are awaited, the overrides of a path whose requests
// come in by another listener after the write, although its own would take them.
func (ev *overrides) checkAwaited(with *overrides, p effective.Pair) error {
	if p.Before == nil || p.After == nil {
		return nil
	}
	with.pairs++
	c := overrideCheck{ev: with, paths: p}
	was, is := p.Before.Path.Listener, p.After.Path.Listener
	for _, m := range with.from(&p.Before.Path) {
		if !sameConnections(was, is) {
			continue
		}
		m = ev.servedMeanwhile(m)
		for _, o := range p.Before.AppendOverrides(nil) {
			successors, err := with.successorsAt(p.Before, o, m)
			if err != nil {
				return err
			}
			for _, s := range successors {
				if err := c.checkSuccessor(o, s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// sameConnections reports whether two listeners take the same connections.
func sameConnections(a, b *gateway.Listener) bool {
	return a.SamePort(b) && a.Hostname == b.Hostname
}

// keepsListener reports whether a route stays on a listener that takes what the one of a rule
// took before the write. Else the traffic of the rule ends.
func (at *gatewayRouters) keepsListener(from gateway.Served) bool {
	for l := range at.after.ListenersOf(from.Route) {
		if sameConnections(l.Listener, from.Listener.Listener) {
			return true
		}
	}
	return false
}

// servedMeanwhile adds to a move what serves its request as long as no route is attached
// where it goes. What the owner of a gateway cuts off has ended.
func (ev *overrides) servedMeanwhile(m flow) flow {
	if m.Request == nil {
		m.unsure = unsureIsolation
		return m
	}
	for r := range ev.routersOf(m.From.Listener.Gateway.Ref()).readings(m.From.Route) {
		if to := r.after.Route(m.Request); to.Route != nil && r.before.Route(m.Request).Same(m.From) {
			m.instead = append(m.instead, servedInstead{to, cmp.Or(r.why, unsureIsolation), r})
		}
	}
	if _, ok := ev.change.Object().(*gateway.Gateway); ok && len(m.instead) == 0 {
		m.unsure = unsureAwaited
	}
	return m
}

// dropKnown leaves out the losses of overrides of which another one was found before.
func (ev *overrides) dropKnown(o *overrides) {
	known := make(map[policyRule]bool)
	for _, l := range ev.lost {
		known[policyRuleOf(l)] = true
	}
	maps.DeleteFunc(o.lost, func(_ lostOverrideKey, l *lostOverride) bool { return known[policyRuleOf(l)] })
}
