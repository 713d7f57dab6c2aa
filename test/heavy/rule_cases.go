package heavy

import "fmt"

// huge is a gateway's policy with very many rules in one block.
func huge(s Size, of, strategy string, limit int) object {
	spec := limits(s.Rules, "l", limit)
	spec["limits"].(object)["login"] = rates(limit)
	return limitsOn(0, "huge", object{of: block(spec, strategy, "")})
}

// ruleCases are policies with very many rules.
func ruleCases() []Case {
	full := Size{Gateways: 1, Listeners: 2, Routes: 5000, RouteRules: 1, Rules: 2000}
	small := Size{Gateways: 1, Listeners: 2, Routes: 5, RouteRules: 2, Rules: 30}
	shared := full
	shared.Listeners = 1
	return append(losingCases(shared, small), []Case{
		{
			What: "rules/overrides", Representative: true, Name: "a policy of 2,000 overrides is put on a gateway of 5,000 routes",
			Full: full, Small: small, Want: reaches("RateLimitPolicy"),
			build: func(w *World, s Size) Write {
				crowdedCluster(w, s)
				ownPolicies(w, s)
				return Write{After: huge(s, "overrides", "merge", 10)}
			},
		},
		{
			What: "rules/overrides-edited", Name: "a policy of 2,000 overrides of a gateway of 5,000 routes is edited in all of them",
			Full: full, Small: small, Want: removed,
			build: func(w *World, s Size) Write {
				crowdedCluster(w, s)
				ownPolicies(w, s)
				w.put(huge(s, "overrides", "merge", 10))
				return Write{Before: huge(s, "overrides", "merge", 10), After: huge(s, "overrides", "merge", 11)}
			},
		},
		{
			What: "rules/defaults-edited", Name: "a policy of 2,000 defaults of a gateway of 5,000 routes is edited in all of them",
			Full: full, Small: small, Want: reaches("RateLimitPolicy"),
			build: func(w *World, s Size) Write {
				crowdedCluster(w, s)
				ownPolicies(w, s)
				w.put(huge(s, "defaults", "merge", 10))
				return Write{Before: huge(s, "defaults", "merge", 10), After: huge(s, "defaults", "merge", 11)}
			},
		},
		{
			What: "rules/hundred-policies", Representative: true, Name: "a hundred policies of 100 rules are on a gateway of 5,000 routes, and another one comes",
			Full:  Size{Gateways: 1, Listeners: 1, Routes: 5000, RouteRules: 1, Policies: 100, Rules: 100},
			Small: Size{Gateways: 1, Listeners: 2, Routes: 3, RouteRules: 1, Policies: 4, Rules: 5},
			Want:  reaches("RateLimitPolicy"),
			build: func(w *World, s Size) Write {
				crowdedCluster(w, s)
				ownPolicies(w, s)
				for p := range s.Policies {
					w.put(limitsOn(0, fmt.Sprintf("p%03d", p), object{"overrides": block(limits(s.Rules, fmt.Sprintf("p%03d-", p), 10), "merge", "")}))
				}
				return Write{After: huge(s, "overrides", "merge", 10)}
			},
		},
		{
			What: "rules/equal-policies", Name: "a hundred policies on one gateway say the same in 100 rules",
			Full:  Size{Gateways: 1, Listeners: 1, Routes: 500, RouteRules: 1, Policies: 100, Rules: 100},
			Small: Size{Gateways: 1, Listeners: 2, Routes: 3, RouteRules: 1, Policies: 4, Rules: 5},
			Want:  reaches("RateLimitPolicy"),
			build: func(w *World, s Size) Write {
				crowdedCluster(w, s)
				ownPolicies(w, s)
				for p := range s.Policies {
					w.put(limitsOn(0, fmt.Sprintf("p%03d", p), object{"overrides": block(limits(s.Rules, "same", 10), "merge", "")}))
				}
				return Write{After: huge(s, "overrides", "merge", 10)}
			},
		},
	}...)
}

// losingCases are routes whose policies lose all of very many rules.
func losingCases(full, small Size) []Case {
	return []Case{{
		What: "rules/all-lost", Name: "5,000 routes lose 2,000 rules each to a policy of their gateway",
		Full: full, Small: small, Want: reaches("RateLimitPolicy"),
		build: func(w *World, s Size) Write {
			crowdedCluster(w, s)
			w.putAlike(routeLimits(0, limits(s.Rules, "l", 5)), s.Routes)
			return Write{After: huge(s, "overrides", "merge", 10)}
		},
	}, {
		What: "rules/class-over-all-lost", Name: "the class of a gateway is edited whose routes have lost 2,000 rules each",
		Full: full, Small: small, Want: func(Size) Want { return Want{} },
		build: func(w *World, s Size) Write {
			crowdedCluster(w, s)
			w.putAlike(routeLimits(0, limits(s.Rules, "l", 5)), s.Routes)
			w.put(huge(s, "overrides", "merge", 10))
			return Write{Before: class("before"), After: class("after")}
		},
	}}
}
