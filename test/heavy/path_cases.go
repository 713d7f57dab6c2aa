package heavy

import (
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
)

// crowdedCluster adds gateways with routes on all listeners, each route with its
// own policy.
func crowdedCluster(w *World, s Size) {
	w.put(class("before"), namespaceApp("ours"))
	for g := range s.Gateways {
		w.put(gateway(g, s.Listeners))
	}
	for i := range s.Routes {
		w.put(route(i, s.Gateways, s.RouteRules, max(s.Matches, 1)))
	}
}

// ownPolicies adds a different policy to each route.
func ownPolicies(w *World, s Size) {
	for i := range s.Routes {
		w.put(routeLimits(i, object{"limits": object{"login": rates(20 + i%30), "own": rates(i)}}))
	}
}

// busy adds a crowded cluster with policies, and overrides on the first gateway.
func busy(w *World, s Size) {
	crowdedCluster(w, s)
	ownPolicies(w, s)
	w.put(busyLimits(10))
}

func busyLimits(login int) object {
	return limitsOn(0, "edge", object{"overrides": block(object{"limits": object{"login": rates(login)}}, "merge", "")})
}

// changes is the warning about the number of changed paths.
func changes(kind string, paths int) string {
	return fmt.Sprintf("effective policy of %s changes on %d paths in 1 namespace", kind, paths)
}

// reaches expects that all paths of the routes have another effective policy,
// including those of the first gateway's listeners where they count.
func reaches(kind string) func(Size) Want {
	return func(s Size) Want { return Want{Says: changes(kind, s.paths())} }
}

// removed expects that the login limit, an override, is removed from all paths.
func removed(s Size) Want {
	return Want{Denied: api.ReasonOverrideRemoved, Says: fmt.Sprintf(" %d paths", s.paths())}
}

// pathCases are writes that affect very many paths.
func pathCases() []Case {
	full := Size{Gateways: 1, Listeners: 64, Routes: 5000, RouteRules: 1}
	five := full
	five.RouteRules = 5
	small := Size{Gateways: 1, Listeners: 3, Routes: 7, RouteRules: 2}
	nothing := func(Size) Want { return Want{} }
	return []Case{
		{
			What: "listeners/policy", Representative: true, Name: "a policy is put on a gateway of 64 listeners and 5,000 routes",
			Full: full, Small: small, Want: reaches("RateLimitPolicy"),
			build: func(w *World, s Size) Write {
				crowdedCluster(w, s)
				ownPolicies(w, s)
				return Write{After: busyLimits(10)}
			},
		},
		{
			What: "listeners/policy-5-rules", Name: "a policy of a gateway of 64 listeners and 5,000 routes of five rules is edited",
			Full: five, Small: small, Want: removed,
			build: func(w *World, s Size) Write {
				busy(w, s)
				return Write{Before: busyLimits(10), After: busyLimits(11)}
			},
		},
		{
			What: "listeners/policy-deleted", Name: "overrides of a gateway of 64 listeners and 5,000 routes are deleted",
			Full: full, Small: small, Want: removed,
			build: func(w *World, s Size) Write {
				busy(w, s)
				return Write{Before: busyLimits(10)}
			},
		},
		{
			What: "listeners/policy-deleted-alike", Name: "overrides of a gateway of 64 listeners are deleted, of which one of 5,000 routes serves all requests",
			Full: full, Small: small, Want: removed,
			build: func(w *World, s Size) Write {
				busy(w, s)
				rules := route(0, s.Gateways, s.RouteRules, 1)["spec"].(object)["rules"]
				for i := 1; i < s.Routes; i++ {
					alike := route(i, s.Gateways, s.RouteRules, 1)
					alike["spec"].(object)["rules"] = rules
					w.put(alike)
				}
				return Write{Before: busyLimits(10)}
			},
		},
		{
			What: "listeners/gateway", Name: "a gateway of 64 listeners and 5,000 routes loses a listener",
			Full: full, Small: small,
			Want: func(s Size) Want { return Want{Says: changes("RateLimitPolicy", s.Routes*s.RouteRules)} },
			build: func(w *World, s Size) Write {
				busy(w, s)
				return Write{Before: gateway(0, s.Listeners), After: gateway(0, s.Listeners-1)}
			},
		},
		{
			What: "listeners/gateway-deleted", Name: "a gateway of 64 listeners and 5,000 routes of five rules is deleted",
			Full: five, Small: small, Want: reaches("RateLimitPolicy"),
			build: func(w *World, s Size) Write {
				busy(w, s)
				return Write{Before: gateway(0, s.Listeners)}
			},
		},
		{
			What: "listeners/class", Name: "the class of a gateway of 64 listeners and 5,000 routes of five rules is edited",
			Full: five, Small: small, Want: nothing,
			build: func(w *World, s Size) Write {
				busy(w, s)
				return Write{Before: class("before"), After: class("after")}
			},
		},
		{
			What: "listeners/namespace-label", Name: "a namespace of 5,000 routes loses the label that 64 listeners ask for",
			Full: full, Small: small, Want: reaches("RateLimitPolicy"),
			build: func(w *World, s Size) Write {
				busy(w, s)
				return Write{Before: namespaceApp("ours"), After: namespaceApp("theirs")}
			},
		},
		{
			What: "listeners/namespace-deleted", Name: "a namespace of 5,000 routes on 64 listeners is deleted",
			Full: full, Small: small, Want: reaches("RateLimitPolicy"),
			build: func(w *World, s Size) Write {
				busy(w, s)
				return Write{Before: namespaceApp("ours")}
			},
		},
	}
}

// routeCases are writes of one route that is on very many listeners.
func routeCases() []Case {
	full := Size{Gateways: 32, Listeners: 64, Routes: 1, RouteRules: 16, Matches: 64}
	small := Size{Gateways: 3, Listeners: 2, Routes: 1, RouteRules: 3, Matches: 2}
	world := func(w *World, s Size) {
		crowdedCluster(w, s)
		for g := range s.Gateways {
			w.put(limitsOn(g, gatewayName(g), object{"overrides": block(object{"limits": object{"login": rates(10 + g)}}, "merge", "")}))
		}
	}
	return []Case{
		{
			What: "gateways/route", Representative: true, Name: "a route of 16 rules and 1,024 matches on 32 gateways of 64 listeners gets a rule in front",
			Full: full, Small: small,
			Want: func(s Size) Want { return Want{Says: changes("RateLimitPolicy", s.Gateways*s.Listeners)} },
			build: func(w *World, s Size) Write {
				world(w, s)
				was, is := route(0, s.Gateways, s.RouteRules, s.Matches), route(0, s.Gateways, s.RouteRules, s.Matches)
				spec := is["spec"].(object)
				spec["rules"] = append([]any{routeRule(0, 99, s.Matches)}, spec["rules"].([]any)...)
				spec["hostnames"] = hostnames(16)
				return Write{Before: was, After: is}
			},
		},
		{
			What: "gateways/route-policy", Name: "a route of 16 rules on 32 gateways of 64 listeners gets a policy",
			Full: full, Small: small,
			Want: func(s Size) Want { return Want{Says: "limits.login has no effect"} },
			build: func(w *World, s Size) Write {
				world(w, s)
				return Write{After: routeLimits(0, object{"limits": object{"login": rates(20)}})}
			},
		},
	}
}

func hostnames(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = fmt.Sprintf("h%02d.example.com", i)
	}
	return out
}
