package worlds

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
)

// bindingCases have limits that bind to rules of routes by their triggers, with
// very many limits, triggers and rules. The policy has Shape.Rules limits, each
// with as many matches as a rule of the route.
func bindingCases() []Heavy {
	// bound is one route of 4,096 matches, and 200 limits of 64.
	bound := Shape{Gateways: 1, Listeners: 1, Routes: 1, RouteRules: 64, Matches: 64, Rules: 200}
	small := Shape{Gateways: 1, Listeners: 1, Routes: 1, RouteRules: 2, Matches: 4, Rules: 5}
	gateways := Shape{Gateways: 1, Listeners: 1, Routes: 1000, RouteRules: 1, Matches: 64, Rules: 200}
	fewer := Shape{Gateways: 1, Listeners: 2, Routes: 3, RouteRules: 2, Matches: 4, Rules: 5}
	all := slices.Concat(sized(boundPolicies(bound), bound, small), sized(boundRoutes(), bound, small), sized(boundGateways(), gateways, fewer))
	for i := range all {
		if all[i].route == nil {
			all[i].route = boundRoute
		}
	}
	return all
}

// partlyBound tells this warning, which names no rule of a route, from others of a limit.
const partlyBound = "limits.l0000 is only partly bound"

// boundPolicies are writes of a policy of one such route.
func boundPolicies(bound Shape) []Heavy {
	listeners := bound
	listeners.Listeners = 64
	return []Heavy{
		{
			What: "bindings/each", Name: "each of 200 limits chooses all 64 matches of a rule of a route of 64",
			Want: says("is shadowed by limits.l0000"), write: create(triggeredOn(ofOneRule)),
		},
		{
			What: "bindings/listeners", Name: "the same route is on 64 listeners",
			Full: listeners, Want: says("is shadowed by limits.l0000"), write: create(triggeredOn(ofOneRule)),
		},
		{
			What: "bindings/none", Representative: true, Name: "none of 64 matches of 200 limits is one of 4,096 of a route",
			Want: denies(api.ReasonTriggerUnmatched, "HTTPRoute app/r00000"), write: create(triggeredOn(ofNoRule)),
		},
		{
			What: "bindings/in-part", Name: "one of 64 matches of each of 200 limits is one of a route",
			Want: says(partlyBound), write: create(triggeredOn(ofOneMatch)),
		},
		{
			What: "bindings/shadowed", Name: "all of 200 limits match all rules of a route, and the first shadows the others",
			Want: says("limits.l0001 is shadowed by limits.l0000"), write: create(triggeredOn(ofEachRule)),
		},
		{
			What: "bindings/shared", Name: "200 limits state only methods and headers that half of 4,096 matches share",
			Want: says("limits.l0000 also applies to POST PathPrefix"), write: create(triggeredOn(shared)),
		},
		{
			What: "bindings/hostnames", Name: "200 limits have triggers of hostnames of which half are outside the route's",
			Want: denies(api.ReasonTriggerUnmatched, "does not match the hostnames of"), write: create(triggeredOn(byHostnames)),
			route: func(s Shape, i int) Object { s.Hostnames = 16; return boundRoute(s, i) },
		},
	}
}

// boundRoutes are writes of the route.
func boundRoutes() []Heavy {
	// leaving edits the matches of each rule from the n-th of the shape on.
	leaving := func(n func(Shape) int) func(Shape) Write {
		return update(func(s Shape) Object { return boundRoute(s, 0) }, func(s Shape) Object {
			return numbered(s, 0, func(rule, m int) Object {
				if m < n(s) {
					return stated(rule, m)
				}
				return stated(rule+s.RouteRules, m)
			})
		})
	}
	none := func(Shape) int { return 0 }
	half := func(s Shape) int { return s.Matches / 2 }
	const loses = "limits.l0000 of RateLimitPolicy app/r00000"
	return []Heavy{
		{
			What: "bindings/route", Representative: true, Name: "an edit of a route unbinds all of 200 limits",
			Want: says(loses), put: []func(Shape) []Object{one(triggeredOn(ofOneRule))}, write: leaving(none),
		},
		{
			What: "bindings/route-in-part", Name: "an edit of a route takes half of its matches from each of 200 limits",
			Want: says(loses), put: []func(Shape) []Object{one(triggeredOn(ofOneRule))}, write: leaving(half),
		},
		{
			What: "bindings/route-shared", Name: "half of 4,096 matches of a route are others, and 200 limits hold for them",
			Want: says(loses + " also applies to"), put: []func(Shape) []Object{one(triggeredOn(shared))}, write: leaving(half),
		},
		{
			What: "bindings/route-overrides", Name: "an edit of a route unbinds 200 limits that its gateway overrides with",
			Want: denies(api.ReasonOverrideEvaded, "limits.l0000"),
			put: []func(Shape) []Object{one(func(s Shape) Object {
				return gatewayLimits(0, "edge", "overrides", merged(triggered(s, ofOneRule), ""))
			})},
			write: update(func(s Shape) Object { return boundRoute(s, 0) }, func(s Shape) Object {
				return numbered(s, 0, func(rule, m int) Object {
					match := stated(rule, m)
					delete(match, "method") // the rules serve the same requests, and more
					return match
				})
			}),
		},
	}
}

// boundGateways are writes of the policy of a gateway with 1,000 routes.
func boundGateways() []Heavy {
	defaults := create(func(s Shape) Object {
		return gatewayLimits(0, "edge", "defaults", merged(triggered(s, ofOneMatch), ""))
	})
	return []Heavy{
		{
			What: "bindings/gateway", Representative: true, Name: "200 limits that choose rules are put on a gateway of 1,000 routes",
			Want: says(partlyBound), write: defaults,
		},
		{
			What: "bindings/gateway-own", Name: "200 limits that choose rules are put on a gateway of 1,000 routes with policies of their own",
			Want: says(partlyBound), put: []func(Shape) []Object{own}, write: defaults,
		},
	}
}

// numbered returns a route with other matches.
func numbered(s Shape, i int, match func(rule, m int) Object) Object {
	r := s.Route(i)
	Spec(r)["rules"] = list(s.RouteRules, func(at int) Object {
		return Object{"matches": list(s.Matches, func(m int) Object { return match(at, m) })}
	})
	return r
}

func boundRoute(s Shape, i int) Object { return numbered(s, i, stated) }

// stated returns a match of a route's rule: every second one has another method,
// all have a header.
func stated(rule, m int) Object {
	return parse(`{"path":{"type":"PathPrefix","value":"/shop/v1/departments/%d/toys/%d"},"method":%q,"headers":[{"name":"x-tenant","value":"acme"}]}`,
		rule, m, []string{"GET", "POST"}[m%2])
}

// triggers is the number of triggers of a limit, which share its matches.
const triggers = 4

// chooser returns the content of a trigger of a limit by their numbers.
type chooser func(s Shape, limit, trigger int) Object

// triggered returns limits with triggers, all different.
func triggered(s Shape, choose chooser) Object {
	all := make(Object, s.Rules)
	for l := range s.Rules {
		all[fmt.Sprintf("l%04d", l)] = Object{
			"rates":    []any{Object{"limit": 10 + l, "unit": "minute"}},
			"triggers": list(triggers, func(t int) Object { return choose(s, l, t) }),
		}
	}
	return limits(all)
}

func triggeredOn(choose chooser) func(Shape) Object {
	return func(s Shape) Object { return ownLimits(0, triggered(s, choose)) }
}

// matching returns a trigger with its share of the limit's matches.
func matching(match func(s Shape, limit, m int) Object) chooser {
	return func(s Shape, limit, trigger int) Object {
		share := s.Matches / triggers
		return Object{"matches": list(share, func(m int) Object { return match(s, limit, trigger*share+m) })}
	}
}

var (
	// ofOneRule selects all matches of a rule of the route.
	ofOneRule = matching(func(s Shape, limit, m int) Object { return stated(limit%s.RouteRules, m) })
	// ofEachRule selects one match of each of as many rules as there are matches.
	ofEachRule = matching(func(s Shape, limit, m int) Object { return stated(m%s.RouteRules, (limit+m)%s.Matches) })
	// ofNoRule states matches that are similar to those of the route.
	ofNoRule = matching(func(s Shape, limit, m int) Object { return stated(limit+s.RouteRules, m+s.Matches) })
	// ofOneMatch states one match of the route, and others that no rule has.
	ofOneMatch = matching(func(s Shape, limit, m int) Object {
		if m == 0 {
			return stated(limit%s.RouteRules, limit%s.Matches)
		}
		return stated(limit+s.RouteRules, m+s.Matches)
	})
	// shared states what half of the matches of each rule have in common.
	shared = matching(func(_ Shape, _, m int) Object {
		if m%2 == 0 {
			return Object{"method": "GET"}
		}
		return parse(`{"method":"GET","headers":[{"name":"x-tenant","value":"acme"}]}`)
	})
)

// byHostnames selects requests by their hostnames only; every second one is not a
// hostname of the route.
func byHostnames(s Shape, limit, trigger int) Object {
	return Object{"hostnames": list(s.Matches, func(i int) string {
		return fmt.Sprintf("h%02d.example.%s", (limit+trigger+i/2)%s.Matches, []string{"com", "org"}[i%2])
	})}
}
