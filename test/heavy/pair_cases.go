package heavy

import "fmt"

// pairCases are policies of very many rules, which a naive implementation would
// compare in pairs.
func pairCases() []Case {
	return []Case{alternatives(), gates(), groups(), lists()}
}

func authOn(name string, spec object) object {
	return policy(kuadrant, "AuthPolicy", "infra", name, "Gateway", gatewayName(0), spec)
}

func routeAuth(i int, spec object) object {
	return policy(kuadrant, "AuthPolicy", "app", routeName(i), "HTTPRoute", routeName(i), spec)
}

func authentication(n int, prefix string, value int) object {
	return object{"rules": object{"authentication": many(n, prefix, object{"priority": value})}}
}

// alternatives has as many authentication rules on a route as its gateway
// overrides.
func alternatives() Case {
	return Case{
		What: "pairs/alternatives", Representative: true, Name: "2,000 alternatives of a route stand beside 2,000 overrides of its gateway, and are edited",
		Full:  Size{Gateways: 1, Listeners: 2, Routes: 1, RouteRules: 1, Rules: 2000},
		Small: Size{Gateways: 1, Listeners: 2, Routes: 1, RouteRules: 1, Rules: 10},
		Want:  func(Size) Want { return Want{Says: "rules.authentication.held0000"} },
		build: func(w *World, s Size) Write {
			crowdedCluster(w, s)
			w.put(authOn("held", object{"overrides": block(authentication(s.Rules, "held", 1), "merge", "")}))
			w.put(routeAuth(0, authentication(s.Rules, "more", 1)))
			return Write{Before: routeAuth(0, authentication(s.Rules, "more", 1)), After: routeAuth(0, authentication(s.Rules, "more", 2))}
		},
	}
}

// gates is one rule that gates very many.
func gates() Case {
	return Case{
		What: "pairs/gate", Name: "a gate of a route's policy decides about 2,000 overrides of its gateway on 500 routes",
		Full:  Size{Gateways: 1, Listeners: 1, Routes: 500, RouteRules: 1, Rules: 2000},
		Small: Size{Gateways: 1, Listeners: 2, Routes: 2, RouteRules: 1, Rules: 10},
		Want:  func(Size) Want { return Want{Says: "decides whether limits.l0000"} },
		build: func(w *World, s Size) Write {
			crowdedCluster(w, s)
			for i := range s.Routes {
				gate := []any{object{"predicate": fmt.Sprintf("request.path == '/%d'", i)}}
				w.put(routeLimits(i, object{"limits": object{"own": rates(i)}, "when": gate}))
			}
			return Write{After: huge(s, "overrides", "merge", 10)}
		},
	}
}

// groups replaces one group of rules by another.
func groups() Case {
	content := func(s Size, group string) object {
		return object{"defaults": block(object{"rules": object{group: many(s.Rules, "r", object{"a": 1}), "callbacks": many(s.Rules, "c", object{"a": 1})}}, "merge", "")}
	}
	return Case{
		What: "pairs/groups", Name: "2,000 rules of one group become those of another on 500 routes",
		Full:  Size{Gateways: 1, Listeners: 1, Routes: 500, RouteRules: 1, Rules: 2000},
		Small: Size{Gateways: 1, Listeners: 2, Routes: 2, RouteRules: 1, Rules: 10},
		Want: func(s Size) Want {
			return Want{Says: fmt.Sprintf("changes on %d paths in 1 namespace (%d lose authentication)", s.paths(), s.paths())}
		},
		build: func(w *World, s Size) Write {
			crowdedCluster(w, s)
			for i := range s.Routes {
				w.put(routeAuth(i, object{"rules": object{"metadata": object{fmt.Sprintf("own%d", i): object{"a": i}}}}))
			}
			w.put(authOn("groups", content(s, "authentication")))
			return Write{Before: authOn("groups", content(s, "authentication")), After: authOn("groups", content(s, "authorization"))}
		},
	}
}

// lists are merged item by item, and together exceed the limit.
func lists() Case {
	list := func(namespace, name, kind, target string, spec object) object {
		return policy(example, "ListPolicy", namespace, name, kind, target, spec)
	}
	return Case{
		What: "pairs/lists", Name: "lists of 1,000 items of 500 routes are merged with one of 1,000 items of their gateway",
		Full:  Size{Gateways: 1, Listeners: 1, Routes: 500, RouteRules: 1, Rules: 1000},
		Small: Size{Gateways: 1, Listeners: 2, Routes: 2, RouteRules: 1, Rules: 800},
		Want: func(Size) Want {
			return Want{Says: "spec.items: "} // by lists of another namespace below: a warning
		},
		build: func(w *World, s Size) Write {
			crowdedCluster(w, s)
			w.putAlike(list("app", routeName(0), "HTTPRoute", routeName(0), items(s.Rules, "route")), s.Routes)
			return Write{After: list("infra", "lists", "Gateway", gatewayName(0), object{"defaults": block(items(s.Rules, "gateway"), "patch", "")})}
		},
	}
}
