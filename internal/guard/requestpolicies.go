package guard

import (
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// mayLoseOverrides reports whether any request that the write may move at a gateway can
// lose an override. Most writes of routes cannot: no other route is on their hostnames,
// and no policy is attached to a rule or a backend.
func (ev *evaluation) mayLoseOverrides(at *gatewayRouters, re reroutedObject) bool {
	_, route := ev.change.Object().(*gateway.Route)
	if ev.everyKindUnlisted || !route || ev.reattaches() || at.before.SharesPorts() || at.after.SharesPorts() || listenersChange(at, re) {
		return true
	}
	for _, side := range []struct {
		*gateway.Router
		routes []*gateway.Route
	}{{at.before, re.before}, {at.after, re.after}} {
		for _, r := range side.routes {
			if ev.hasPolicies(r).below || slices.ContainsFunc(side.ListenersOf(r), func(l gateway.ListenerMatch) bool { return ev.bindsLimits(l, r) }) {
				return true
			}
			for n := range side.Neighbors(r) {
				if n.Ref() != r.Ref() && ev.mayLoseTo(n, r) {
					return true
				}
			}
		}
	}
	return false
}

// reattaches reports whether the write of a route, a gateway or a listener set also changes
// which policies are attached to it, or how they are applied.
func (ev *evaluation) reattaches() bool {
	switch was := ev.change.Before.(type) {
	case *gateway.Route:
		is, ok := ev.change.After.(*gateway.Route)
		return ok && (relabelled(was, is) || !maps.Equal(was.Annotations, is.Annotations))
	case *gateway.Gateway:
		is, ok := ev.change.After.(*gateway.Gateway)
		return ok && (relabelled(was, is) || was.Class != is.Class)
	case *gateway.ListenerSet:
		is, ok := ev.change.After.(*gateway.ListenerSet)
		return ok && relabelled(was, is)
	case *gateway.Service:
		return true // policies are attached to its ports
	default:
		return false
	}
}

// listenersChange reports whether a route is on other listeners after the write.
func listenersChange(at *gatewayRouters, re reroutedObject) bool {
	return len(re.before) == 1 && len(re.after) == 1 && !slices.EqualFunc(at.before.ListenersOf(re.before[0]), at.after.ListenersOf(re.after[0]), func(a, b gateway.ListenerMatch) bool { return a.Same(&b) })
}

// mayLoseBetween reports whether policies may apply to one rule, or weaken what applies,
// and not to another one.
func (ev *evaluation) mayLoseBetween(from, to gateway.Served) bool {
	switch {
	case ev.everyKindUnlisted || ev.reattaches() || !from.Listener.Same(to.Listener):
		return true
	case from.Route.Ref() == to.Route.Ref():
		return ev.hasPolicies(from.Route).below || ev.hasPolicies(to.Route).below || ev.bindsLimits(*from.Listener, from.Route)
	default:
		return ev.mayLoseTo(from.Route, to.Route)
	}
}

// mayLoseTo reports whether policies may apply to one of two routes at a listener, and not
// to the other.
func (ev *evaluation) mayLoseTo(a, b *gateway.Route) bool {
	return ev.everyKindUnlisted || a.Kind != b.Kind || a.Namespace != b.Namespace || ev.hasPolicies(a).any || ev.hasPolicies(b).any ||
		slices.ContainsFunc(ev.before.Populated(), func(k *policykind.Kind) bool { return k.Reading(a.Annotations) != k.Reading(b.Annotations) })
}

// routePolicies says where policies are attached to a route.
type routePolicies struct {
	any   bool // to the route, its rules or its backends
	below bool // to its rules or its backends
}

// hasPolicies says where policies of kinds that can have overrides are attached to a
// route.
func (ev *evaluation) hasPolicies(r *gateway.Route) routePolicies {
	if known, ok := ev.requests.policies[r]; ok {
		return known
	}
	var out routePolicies
	for p, t := range ev.before.On(r.Ref()) {
		if k := ev.before.Kind(p.Ref().PolicyKind()); k == nil || k.MayOverride() {
			out.any, out.below = true, out.below || t.Section != ""
		}
	}
	for i := range r.Rules {
		for _, b := range r.Rules[i].Backends {
			for range ev.before.On(b.Object) {
				out.any, out.below = true, true
				break
			}
		}
	}
	if ev.requests.policies == nil {
		ev.requests.policies = make(map[*gateway.Route]routePolicies)
	}
	ev.requests.policies[r] = out
	return out
}

// bindsLimits reports whether a policy above a listener's routes, or on a route, binds to
// rules of routes by conditions of its own.
func (ev *evaluation) bindsLimits(at gateway.ListenerMatch, r *gateway.Route) bool {
	if !slices.ContainsFunc(ev.before.Populated(), (*policykind.Kind).BindsRules) {
		return false
	}
	on := make([]api.Ref, 0, 6) // on the stack: gateways ask for each pair of matches
	on = append(on, r.Ref(), (&gateway.Namespace{Name: r.Namespace}).Ref())
	if g := at.Gateway; g != nil {
		on = append(on, g.Ref(), (&gateway.Class{Name: g.Class}).Ref(), (&gateway.Namespace{Name: g.Namespace}).Ref())
	}
	if at.Service != nil {
		on = append(on, at.Service.Ref(), (&gateway.Namespace{Name: at.Service.Namespace}).Ref())
	}
	if at.Set != nil {
		on = append(on, at.Set.Ref())
	}
	return slices.ContainsFunc(on, ev.bindsOn)
}

// bindsOn reports whether a policy on an object binds to rules of routes.
func (ev *evaluation) bindsOn(object api.Ref) bool {
	if known, ok := ev.requests.binding[object]; ok {
		return known
	}
	binds := false
	for p := range ev.before.On(object) {
		binds = binds || p.Binds
	}
	if ev.requests.binding == nil {
		ev.requests.binding = make(map[api.Ref]bool)
	}
	ev.requests.binding[object] = binds
	return binds
}
