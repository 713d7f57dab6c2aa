package heavy

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
)

// bindingCases have limits that bind to rules of routes by their triggers, with
// very many limits, triggers and rules. The policy has Size.Rules limits, each
// with as many matches as a rule of the route.
func bindingCases() []Case {
	return slices.Concat(boundPolicies(), boundRoutes(), boundGateways())
}

var (
	// bound is one route of 4,096 matches, and 200 limits of 64.
	bound      = Size{Gateways: 1, Listeners: 1, Routes: 1, RouteRules: 64, Matches: 64, Rules: 200}
	boundSmall = Size{Gateways: 1, Listeners: 1, Routes: 1, RouteRules: 2, Matches: 4, Rules: 5}
)

// partlyBound tells this warning, which names no rule of a route, from others of a limit.
const partlyBound = "limits.l0000 is only partly bound"

func says(text string) func(Size) Want { return func(Size) Want { return Want{Says: text} } }

func denies(code api.ReasonCode, text string) func(Size) Want {
	return func(Size) Want { return Want{Denied: code, Says: text} }
}

// boundPolicies are writes of a policy of one such route.
func boundPolicies() []Case {
	put := func(choose chooser) func(*World, Size) Write {
		return func(w *World, s Size) Write {
			boundWorld(w, s)
			w.put(boundRoute(0, s, stated))
			return Write{After: triggeredOn(0, s, choose)}
		}
	}
	listeners := bound
	listeners.Listeners = 64
	return []Case{
		{
			What: "bindings/each", Name: "each of 200 limits chooses all 64 matches of a rule of a route of 64",
			Full: bound, Small: boundSmall, Want: says("is shadowed by limits.l0000"), build: put(ofOneRule),
		},
		{
			What: "bindings/listeners", Name: "the same route is on 64 listeners",
			Full: listeners, Small: boundSmall, Want: says("is shadowed by limits.l0000"), build: put(ofOneRule),
		},
		{
			What: "bindings/none", Representative: true, Name: "none of 64 matches of 200 limits is one of 4,096 of a route",
			Full: bound, Small: boundSmall, build: put(ofNoRule),
			Want: denies(api.ReasonTriggerUnmatched, "HTTPRoute app/r00000"),
		},
		{
			What: "bindings/in-part", Name: "one of 64 matches of each of 200 limits is one of a route",
			Full: bound, Small: boundSmall, Want: says(partlyBound), build: put(ofOneMatch),
		},
		{
			What: "bindings/shadowed", Name: "all of 200 limits match all rules of a route, and the first shadows the others",
			Full: bound, Small: boundSmall, Want: says("limits.l0001 is shadowed by limits.l0000"), build: put(ofEachRule),
		},
		{
			What: "bindings/shared", Name: "200 limits state only methods and headers that half of 4,096 matches share",
			Full: bound, Small: boundSmall, Want: says("limits.l0000 also applies to POST PathPrefix"), build: put(shared),
		},
		{
			What: "bindings/hostnames", Name: "200 limits have triggers of hostnames of which half are outside the route's",
			Full: bound, Small: boundSmall, Want: denies(api.ReasonTriggerUnmatched, "does not match the hostnames of"),
			build: func(w *World, s Size) Write {
				boundWorld(w, s)
				w.put(named(boundRoute(0, s, stated)))
				return Write{After: triggeredOn(0, s, byHostnames)}
			},
		},
	}
}

// boundRoutes are writes of the route.
func boundRoutes() []Case {
	written := func(policy func(s Size) object, left func(s Size, rule, m int) bool) func(*World, Size) Write {
		return func(w *World, s Size) Write {
			boundWorld(w, s)
			w.put(boundRoute(0, s, stated), policy(s))
			return Write{Before: boundRoute(0, s, stated), After: boundRoute(0, s, func(rule, m int) object {
				if left(s, rule, m) {
					return stated(rule, m)
				}
				return stated(rule+s.RouteRules, m)
			})}
		}
	}
	none := func(Size, int, int) bool { return false }
	half := func(s Size, _, m int) bool { return m < s.Matches/2 }
	own := func(choose chooser) func(Size) object {
		return func(s Size) object { return triggeredOn(0, s, choose) }
	}
	return []Case{
		{
			What: "bindings/route", Representative: true, Name: "an edit of a route unbinds all of 200 limits",
			Full: bound, Small: boundSmall, Want: says("limits.l0000 of RateLimitPolicy app/r00000"), build: written(own(ofOneRule), none),
		},
		{
			What: "bindings/route-in-part", Name: "an edit of a route takes half of its matches from each of 200 limits",
			Full: bound, Small: boundSmall, Want: says("limits.l0000 of RateLimitPolicy app/r00000"), build: written(own(ofOneRule), half),
		},
		{
			What: "bindings/route-shared", Name: "half of 4,096 matches of a route are others, and 200 limits hold for them",
			Full: bound, Small: boundSmall, Want: says("limits.l0000 of RateLimitPolicy app/r00000 also applies to"), build: written(own(shared), half),
		},
		{
			What: "bindings/route-overrides", Name: "an edit of a route unbinds 200 limits that its gateway overrides with",
			Full: bound, Small: boundSmall, Want: denies(api.ReasonOverrideEvaded, "limits.l0000"),
			build: func(w *World, s Size) Write {
				boundWorld(w, s)
				w.put(boundRoute(0, s, stated), limitsOn(0, "edge", object{"overrides": block(triggered(s, ofOneRule), "merge", "")}))
				return Write{Before: boundRoute(0, s, stated), After: boundRoute(0, s, func(rule, m int) object {
					match := stated(rule, m)
					delete(match, "method") // the rules serve the same requests, and more
					return match
				})}
			},
		},
	}
}

// boundGateways are writes of the policy of a gateway with 1,000 routes.
func boundGateways() []Case {
	full := Size{Gateways: 1, Listeners: 1, Routes: 1000, RouteRules: 1, Matches: 64, Rules: 200}
	small := Size{Gateways: 1, Listeners: 2, Routes: 3, RouteRules: 2, Matches: 4, Rules: 5}
	defaults := func(s Size) object {
		return limitsOn(0, "edge", object{"defaults": block(triggered(s, ofOneMatch), "merge", "")})
	}
	routes := func(w *World, s Size) {
		boundWorld(w, s)
		for i := range s.Routes {
			w.put(boundRoute(i, s, stated))
		}
	}
	return []Case{
		{
			What: "bindings/gateway", Representative: true, Name: "200 limits that choose rules are put on a gateway of 1,000 routes",
			Full: full, Small: small, Want: says(partlyBound),
			build: func(w *World, s Size) Write {
				routes(w, s)
				return Write{After: defaults(s)}
			},
		},
		{
			What: "bindings/gateway-own", Name: "200 limits that choose rules are put on a gateway of 1,000 routes with policies of their own",
			Full: full, Small: small, Want: says(partlyBound),
			build: func(w *World, s Size) Write {
				routes(w, s)
				ownPolicies(w, s)
				return Write{After: defaults(s)}
			},
		},
	}
}
