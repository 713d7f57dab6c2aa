package heavy

import (
	api "overrule.dev/overrule/api/v1alpha1"
)

// optionCases use options of the administrator.
func optionCases() []Case {
	return []Case{blastRadius(), constrained(), targets()}
}

// blastRadius hashes every path that changes.
func blastRadius() Case {
	return Case{
		What: "options/blast-radius", Name: "a policy of 2,000 rules over 5,000 routes goes beyond what one write may change",
		Full:        Size{Gateways: 1, Listeners: 2, Routes: 5000, RouteRules: 1, Rules: 2000},
		Small:       Size{Gateways: 1, Listeners: 2, Routes: 5, RouteRules: 2, Rules: 30},
		BlastRadius: 10,
		Want: func(Size) Want {
			return Want{Denied: api.ReasonBlastRadius, Says: "more than the 10 allowed without acknowledgement"}
		},
		build: func(w *World, s Size) Write {
			crowdedCluster(w, s)
			ownPolicies(w, s)
			return Write{After: huge(s, "overrides", "merge", 10)}
		},
	}
}

// constrained evaluates a constraint on each path.
func constrained() Case {
	constraint := newObject("overrule.dev/v1alpha1", "ClusterPolicyConstraint", "", "named", object{
		"policyKind": object{"group": kuadrant, "kind": "RateLimitPolicy"}, "enforcement": "Deny",
		"validations": []any{object{
			"expression": "has(effective.limits) && effective.limits.all(name, l, l.rates.all(r, r.limit < 1000)) && path.size() > 0",
			"message":    "limits stay below 1000",
		}},
	})
	return Case{
		What: "options/constraint", Name: "a constraint is asked on 100,000 paths by a write that breaks it",
		Full:  Size{Gateways: 1, Listeners: 20, Routes: 5000, RouteRules: 1},
		Small: Size{Gateways: 1, Listeners: 3, Routes: 7, RouteRules: 2},
		Want: func(Size) Want {
			return Want{Denied: api.ReasonRequirementUnmet, Says: "limits stay below 1000"}
		},
		build: func(w *World, s Size) Write {
			crowdedCluster(w, s)
			for i := range s.Routes {
				w.put(routeLimits(i, object{"limits": object{"login": rates(20), "own": rates(i % 100)}}))
			}
			w.put(constraint)
			return Write{After: busyLimits(5000)}
		},
	}
}

// targets has the maximum number of targets of a policy.
func targets() Case {
	return Case{
		What: "options/targets", Name: "a policy is put on 16 gateways of 64 listeners with 300 routes",
		Full:  Size{Gateways: 16, Listeners: 64, Routes: 300, RouteRules: 1},
		Small: Size{Gateways: 3, Listeners: 2, Routes: 4, RouteRules: 1},
		Want:  reaches("ListPolicy"),
		build: func(w *World, s Size) Write {
			crowdedCluster(w, s)
			refs := make([]any, s.Gateways)
			for g := range refs {
				refs[g] = object{"group": gatewayAPI, "kind": "Gateway", "name": gatewayName(g)}
			}
			spec := items(10, "item")
			spec["targetRefs"] = refs
			return Write{After: newObject(example+"/v1", "ListPolicy", "infra", "everywhere", spec)}
		},
	}
}
