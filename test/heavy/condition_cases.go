package heavy

import (
	"fmt"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// atLimit is a condition whose cost is just below the limit (cel.Limit) with the
// rates of atLimitRates, and that is true.
const atLimit = "spec.limits.login.rates.all(a, spec.limits.login.rates.all(b, a.limit + b.limit >= 0))"

// atLimitRates is the number of rates for that.
const atLimitRates = 30

func manyRates(n int) object {
	list := make([]int, n)
	for i := range list {
		list[i] = 100 + i
	}
	return rates(list...)
}

// conditionCases are policies with expensive conditions.
func conditionCases() []Case {
	full := Size{Gateways: 1, Listeners: 1, Routes: 5000, RouteRules: 1, Policies: 100, Rules: 100}
	small := Size{Gateways: 1, Listeners: 2, Routes: 2, RouteRules: 1, Policies: 3, Rules: 2}
	hundred := func(w *World, s Size, when string) {
		for p := range s.Policies {
			w.put(limitsOn(0, fmt.Sprintf("p%03d", p), object{"overrides": block(limits(s.Rules, fmt.Sprintf("p%03d-", p), 10), "merge", when)}))
		}
	}
	dear := func(w *World, s Size) {
		crowdedCluster(w, s)
		for i := range s.Routes {
			w.put(routeLimits(i, object{"limits": object{"login": manyRates(atLimitRates), "own": rates(i)}}))
		}
	}
	return []Case{
		{
			What: "conditions/one", Name: "a condition at the cost limit is put on a gateway of 5,000 routes",
			Full: full, Small: small, Want: reaches("RateLimitPolicy"),
			build: func(w *World, s Size) Write {
				dear(w, s)
				return Write{After: limitsOn(0, "dear", object{"overrides": block(limits(s.Rules, "dear", 10), "merge", atLimit)})}
			},
		},
		{
			What: "conditions/hundred", Name: "a hundred conditions at the cost limit are on a gateway, and a route's policy is edited",
			Full: full, Small: small, Want: func(Size) Want { return Want{} },
			build: func(w *World, s Size) Write {
				dear(w, s)
				hundred(w, s, atLimit)
				was := routeLimits(0, object{"limits": object{"login": manyRates(atLimitRates), "own": rates(0)}})
				is := routeLimits(0, object{"limits": object{"login": manyRates(atLimitRates), "own": rates(1)}})
				return Write{Before: was, After: is}
			},
		},
		{
			What: "conditions/hundred-class", Representative: true, Name: "a hundred conditions at the cost limit are on a gateway of 5,000 routes, and its class is edited",
			Full: full, Small: small, Want: func(Size) Want { return Want{} },
			build: func(w *World, s Size) Write {
				dear(w, s)
				hundred(w, s, atLimit)
				return Write{Before: class("before"), After: class("after")}
			},
		},
		{
			What: "conditions/failing", Name: "no condition of a hundred policies can be evaluated on 5,000 routes",
			Full: full, Small: small, Want: func(Size) Want {
				return Want{Says: "the condition of the overrides of RateLimitPolicy infra/p000 cannot be evaluated"}
			},
			build: func(w *World, s Size) Write {
				crowdedCluster(w, s)
				for i := range s.Routes {
					w.put(routeLimits(i, object{"limits": object{"login": object{"rates": "none"}, "own": rates(i)}}))
				}
				hundred(w, s, "spec.limits.login.rates.exists(r, r.limit > 50)")
				return Write{After: huge(s, "overrides", "merge", 10)}
			},
		},
		{
			What: "conditions/long", Name: "a condition as long as a policy may be is put on a gateway of 5,000 routes",
			Full: full, Small: small, Want: func(Size) Want {
				return Want{Denied: api.ReasonInvalid, Says: "infra/long"}
			},
			build: func(w *World, s Size) Write {
				dear(w, s)
				long := "true" + strings.Repeat(" && (spec.a == 1 || true)", 40_000)
				return Write{After: limitsOn(0, "long", object{"overrides": block(limits(s.Rules, "l", 10), "merge", long)})}
			},
		},
	}
}
