package guard_test

import (
	"testing"

	"overrule.dev/overrule/test/worlds"
)

// A rule sends its requests to another Service than the one with the override.
func TestRouteBackendChanges(t *testing.T) {
	g, h := gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http")
	const b1, b2, b3 = "{name: b1, port: 80}", "{name: b2, port: 80}", "{name: b3, port: 80}"
	const off1, off2 = "{name: b1, port: 80, weight: 0}", "{name: b2, port: 80, weight: 0}"
	onService := func(more string) string {
		return dyed("app", "top", `{group: "", kind: Service, name: b1`+more)
	}
	services := docs(dye, worlds.ServiceDoc("app", "b1", 80), worlds.ServiceDoc("app", "b2", 80), worlds.ServiceDoc("app", "b3", 80))
	rule := func(more, backends string) string { return "{" + more + "backendRefs: [" + backends + "]}" }
	r := func(backends string, gateways ...string) string {
		return routeDoc("r", "["+rule("", backends)+"]", gateways...)
	}
	rules := func(list string) string { return routeDoc("r", "["+list+"]", "g") }
	one, both := onService("}"), onService(`}, {group: "", kind: Service, name: b2}`)
	named := func(name, matches, backends string) string {
		return rule("name: "+name+", "+matches+", ", backends)
	}
	const ab = "matches: [{path: {value: /a}}, {path: {value: /b}}]"
	lost := func(to string) []string {
		return evadedOn("Dye app/top", "Service app/b1#80", "Service app/"+to+"#80")
	}
	ways := map[string]overrideCase{
		"to another one":                                 {before: docs(services, g, r(b1, "g"), one), write: r(b2, "g"), want: lost("b2")},
		"to another one that does not exist":             {before: docs(services, g, r(b1, "g"), one), write: r("{name: none, port: 80}", "g"), want: lost("none")},
		"to another one with the same policy":            {before: docs(services, g, r(b1, "g"), both), write: r(b2, "g")},
		"to another one, and the policy is on the route": {before: docs(services, g, r(b1, "g"), dyed("app", "top", "{kind: HTTPRoute, name: r}")), write: r(b2, "g")},
		"to an object of a kind that is not read":        {before: docs(services, g, r(b1, "g"), one), write: r("{group: example.com, kind: Bucket, name: b}", "g"), want: evadedOn("Dye app/top", "Service app/b1#80", "Bucket app/b")},
		"to one more":                  {before: docs(services, g, r(b1, "g"), one), write: r(b1+", "+b2, "g")},
		"to one that was there before": {before: docs(services, g, r(b1+", "+b2, "g"), one), write: r(b2, "g"), want: lost("b2")},
		"to a new one with the policy, beside one without that was there before": {
			before: docs(services, g, r(b1+", "+b3, "g"), both), write: r(b2+", "+b3, "g"),
		},
		"to none":                              {before: docs(services, g, r(b1, "g"), one), write: r("", "g")},
		"from one of weight 0":                 {before: docs(services, g, r(off1+", "+b2, "g"), one), write: r(b2, "g")},
		"to one of weight 0":                   {before: docs(services, g, r(b1, "g"), one), write: r(off2, "g")},
		"to another one, by the weights alone": {before: docs(services, g, r(b1+", "+off2, "g"), one), write: r(off1+", "+b2, "g"), want: lost("b2")},
		"the weights become 0":                 {before: docs(services, g, r(b1+", "+off2, "g"), one), write: r(off1+", "+off2, "g")},
		"one of two references gets weight 0":  {before: docs(services, g, r(b1+", "+b1+", "+b2, "g"), one), write: r(off1+", "+b1+", "+b2, "g")},
		"to another one on another gateway": {
			before: docs(services, g, h, r(b1, "g"), one), write: r(b2, "h"), want: evadedOn("Dye app/top", "Service app/b1#80", "Listener infra/h#http"),
		},
		"a match goes to a rule with another one": {
			before: docs(services, g, rules(named("x", ab, b1)+", "+named("z", ruleC, b2)), one),
			write:  rules(named("x", ruleA, b1) + ", " + named("z", "matches: [{path: {value: /c}}, {path: {value: /b}}]", b2)), want: lost("b2"),
		},
		"a match goes to a rule with the same one": {
			before: docs(services, g, rules(named("x", ab, b1)+", "+named("z", ruleC, b1)), one),
			write:  rules(named("x", ruleA, b1) + ", " + named("z", "matches: [{path: {value: /c}}, {path: {value: /b}}]", b1)),
		},
		"the rule goes, and another one stays": {
			before: docs(services, g, rules(named("x", ruleA, b1)+", "+named("z", ruleB, b2)), one), write: rules(named("z", ruleB, b2)),
		},
		"the rule is renamed and edited": {
			before: docs(services, g, rules(named("x", ruleA, b1)+", "+named("z", ruleB, b2)), one),
			write:  rules(named("new", ruleC, b3) + ", " + named("z", ruleB, b2)), // nothing serves /a any more
		},
	}
	for name, w := range ways {
		w.of = "Dye app/top"
		t.Run(name, w.run)
	}
}
