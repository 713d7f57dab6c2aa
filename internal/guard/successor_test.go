package guard_test

import (
	"strings"
	"testing"

	"overrule.dev/overrule/test/worlds"
)

const (
	ruleA = "matches: [{path: {value: /a}}]"
	ruleB = "matches: [{path: {value: /b}}]"
	ruleC = "matches: [{path: {value: /c}}]"
	two   = "[{}, {matches: [{path: {value: /x}}]}]" // the rules of base
)

// at is a policy of infra on a gateway or a listener of it.
func at(gw, section string) string {
	if section != "" {
		section = ", sectionName: " + section
	}
	return policyDoc("Paint", "infra", "top", "targetRefs: [{kind: Gateway, name: "+gw+section+"}]\n"+hard)
}

// onRule is a policy of app on a rule of the route r.
func onRule(section string) string {
	return policyDoc("Paint", "app", "top", "targetRefs: [{kind: HTTPRoute, name: r, sectionName: "+section+"}]\n"+hard)
}

// toParents is the HTTPRoute app/r with these parents.
func toParents(rules string, parents ...string) string {
	return worlds.RouteTo("HTTPRoute", "app", "r", rules, parents...)
}

func section(gw, listener string) string {
	return "{namespace: infra, name: " + gw + ", sectionName: " + listener + "}"
}

// The policy is written, and not its rules but where it is attached. What is
// attached lower than it was could be beaten by what was below it.
func TestRetargetedPolicies(t *testing.T) {
	g, h, r := gatewayDoc("g", "istio", "http", "alt"), gatewayDoc("h", "istio", "http"), routeDoc("r", two, "g")
	onR := policyDoc("Paint", "app", "top", toRoute+hard)
	four := func(policy string) []string {
		return []string{strings.ReplaceAll(evaded(policy)[0], "2 paths", "4 paths")}
	}
	runOverrideCases(t, map[string]overrideCase{
		"to another gateway":                        {before: base(h, at("g", "")), write: at("h", ""), want: evaded("Paint infra/top")},
		"to one of two listeners":                   {before: docs(g, r, at("g", "")), write: at("g", "http"), want: four("Paint infra/top")},
		"from one listener to all":                  {before: docs(g, r, at("g", "http")), write: at("g", "")},
		"to a listener that is not there":           {before: docs(g, routeDoc("r", two, "g"), at("g", "http")), write: at("g", "none"), want: evaded("Paint infra/top")},
		"to another route":                          {before: docs(g, toParents(two, section("g", "http")), routeDoc("s", "[{}]", "g"), onR), write: strings.Replace(onR, "name: r}", "name: s}", 1), of: "Paint app/top", want: evaded("Paint app/top")},
		"to one of its rules":                       {before: docs(g, toParents(two, section("g", "http")), onR), write: onRule("rule-1"), of: "Paint app/top", want: evaded("Paint app/top")},
		"to both of its rules":                      {before: docs(g, r, onR), write: strings.Replace(onRule("rule-1"), "rule-1}", "rule-1}, {kind: HTTPRoute, name: r, sectionName: rule-2}", 1), of: "Paint app/top", want: four("Paint app/top")},
		"to the listeners of the gateway by name":   {before: docs(g, r, at("g", "")), write: strings.Replace(at("g", "http"), "http}", "http}, {kind: Gateway, name: g, sectionName: alt}", 1), want: four("Paint infra/top")},
		"to a gateway more, and a route is on both": {before: docs(g, h, r, at("g", "")), write: strings.Replace(at("g", ""), "name: g}", "name: g}, {kind: Gateway, name: h}", 1)},
	})
}

// A route goes where the override is not.
func TestRouteMoves(t *testing.T) {
	g, h, r := gatewayDoc("g", "istio", "http", "alt"), gatewayDoc("h", "istio", "http"), routeDoc("r", two, "g")
	onG := toParents(two, section("g", "http"))
	fromH := evaded("Paint infra/top", "Listener infra/h#http")
	toAlt := evaded("Paint infra/top", "Listener infra/g#alt")
	runOverrideCases(t, map[string]overrideCase{
		"to another gateway":                          {before: docs(g, h, onG, at("g", "")), write: routeDoc("r", two, "h"), want: fromH},
		"from one of two gateways":                    {before: docs(gatewayDoc("g", "istio", "http"), h, routeDoc("r", two, "g", "h"), at("g", "")), write: routeDoc("r", two, "h"), want: fromH},
		"to one gateway more":                         {before: docs(g, h, r, at("g", "")), write: routeDoc("r", two, "g", "h")},
		"to another listener":                         {before: docs(g, onG, at("g", "http")), write: toParents(two, section("g", "alt")), want: toAlt},
		"from the listener with it, by port":          {before: docs(g, r, at("g", "http")), write: toParents(two, "{namespace: infra, name: g, port: 81}"), want: toAlt},
		"nowhere: it is detached":                     {before: docs(g, r, at("g", "")), write: routeDoc("r", two)},
		"nowhere: it is deleted":                      {before: docs(g, r, at("g", "")), delete: r},
		"to a gateway that is not there":              {before: docs(g, r, at("g", "")), write: routeDoc("r", two, "none")},
		"to a gateway with the same policy":           {before: docs(g, h, onG, strings.Replace(at("g", ""), "name: g}", "name: g}, {kind: Gateway, name: h}", 1)), write: routeDoc("r", two, "h")},
		"to a gateway of a policy with another value": {before: docs(g, h, onG, at("g", ""), policyDoc("Paint", "infra", "other", "targetRefs: [{kind: Gateway, name: h}]\noverrides: {strategy: patch, a: 2}")), write: routeDoc("r", two, "h"), want: fromH},
		"with fewer rules":                            {before: docs(g, h, onG, at("g", "")), write: routeDoc("r", "[{}]", "h"), want: evadedOn("Paint infra/top", "HTTPRouteRule app/r#rule-1", "Listener infra/h#http")},
		"to a listener set of another gateway": {
			before: docs(g, h, worlds.SetDoc("app", "s", "h", "lower"), onG, at("g", "")), write: toParents(two, worlds.ToSet("app", "s")),
			want: evaded("Paint infra/top", "Listener app/s#lower"),
		},
		"to a listener set of the same gateway": {
			before: docs(g, worlds.SetDoc("app", "s", "g", "lower"), onG, at("g", "")), write: toParents(two, worlds.ToSet("app", "s")),
		},
	})
}

// Hostnames say which listeners take the requests of a route.
func TestRouteHostnameChanges(t *testing.T) {
	gw := func(hosts ...string) string {
		doc := gatewayDoc("g", "istio", []string{"http", "alt"}[:len(hosts)]...)
		for i, name := range []string{"http", "alt"}[:len(hosts)] {
			doc = strings.Replace(doc, "name: "+name+",", "name: "+name+", hostname: '"+hosts[i]+"',", 1)
		}
		return doc
	}
	r := func(labels, hosts string) string {
		return "kind: HTTPRoute\nmetadata: {namespace: app, name: r, labels: {" + labels + "}}\nspec: {hostnames: [" + hosts + "], parentRefs: [{namespace: infra, name: g}], rules: " + two + "}"
	}
	named := func(labels, first, second string) string {
		return "kind: HTTPRoute\nmetadata: {namespace: app, name: r, labels: {" + labels + "}}\nspec: {parentRefs: [{namespace: infra, name: g}], rules: [{name: x, " + first + "}, {name: z, " + second + "}]}"
	}
	red := policyDoc("Paint", "app", "top", "targetRefs: [{kind: HTTPRoute, selector: {matchLabels: {team: red}}}]\n"+hard)
	blue := policyDoc("Paint", "app", "equal", "targetRefs: [{kind: HTTPRoute, selector: {matchLabels: {team: blue}}}]\n"+hard)
	other := "kind: HTTPRoute\nmetadata: {namespace: else, name: o}\nspec: {hostnames: [x.example], parentRefs: [{namespace: infra, name: g}], rules: [{}]}"
	decoy := func(host, path string) string {
		return "kind: HTTPRoute\nmetadata: {namespace: app, name: d, labels: {team: red}}\nspec: {hostnames: [" + host + "], parentRefs: [{namespace: infra, name: g}], rules: [{matches: [{path: {value: " + path + "}}]}]}"
	}
	anyHost := "kind: HTTPRoute\nmetadata: {namespace: else, name: o}\nspec: {parentRefs: [{namespace: infra, name: g}], rules: [{}]}"
	runOverrideCases(t, map[string]overrideCase{
		"a hostname given up moves nothing": {
			before: docs(gw("x.example", "y.example"), r("", "x.example, y.example"), at("g", "http")), write: r("", "y.example"),
		},
		"a listener that takes the same names is left": {
			before: docs(gw("x.example", "*.example"), r("", "x.example, y.example"), at("g", "http")), write: r("", "y.example"),
		},
		"a listener gives up a hostname that another has": {
			before: docs(gw("x.example", "*.example"), r("", "x.example"), at("g", "http")), write: gw("z.example", "*.example"),
			want: evaded("Paint infra/top", "Listener infra/g#alt"),
		},
		"a listener gives up a hostname that no other has": {
			before: docs(gw("x.example", "y.example"), r("", "x.example, y.example"), at("g", "http")), write: gw("z.example", "y.example"),
		},
		"a route changes its label": {
			before: docs(gatewayDoc("g", "istio", "http"), r("team: red", "x.example"), red), write: r("team: blue", "x.example"),
			of: "Paint app/top", want: evaded("Paint app/top"),
		},
		"a route changes its label and its hostname in one write": {
			before: docs(gatewayDoc("g", "istio", "http"), r("team: red", "x.example"), red), write: r("team: blue", "y.example"),
		},
		"a route changes its label, and its rules swap their matches": {
			before: docs(gatewayDoc("g", "istio", "http"), named("team: red", ruleA, ruleB), red), write: named("team: blue", ruleB, ruleA),
			of: "Paint app/top", want: evaded("Paint app/top", "HTTPRouteRule app/r#x"),
		},
		"a hostname is given up beside a route for the one that messages show": {
			before: docs(gatewayDoc("g", "istio", "http"), r("team: red", "'*.example'"), red, decoy("any-host.example", "/"), anyHost), write: r("team: red", "y.other"),
			of: "Paint app/top", want: []string{"OverrideEvaded a Paint app/top: 2 paths, HTTPRouteRule else/o#rule-1"},
		},
		"a rule is removed beside a route for the path that messages show": {
			before: docs(gatewayDoc("g", "istio", "http"), named("team: red", "matches: [{path: {value: /a}}]", ruleB), red, decoy("", "/a/any-path"), anyHost), write: named("team: red", ruleB, "matches: [{path: {value: /c}}]"),
			of: "Paint app/top", want: []string{"OverrideEvaded a Paint app/top: HTTPRoute app/r, HTTPRouteRule app/r#x, HTTPRouteRule else/o#rule-1"},
		},
		"a route changes its label to that of an equal policy, and gives up a hostname that another route has": {
			before: docs(gatewayDoc("g", "istio", "http"), r("team: red", "x.example, y.example"), red, blue, other),
			write:  r("team: blue", "y.example"),
			of:     "Paint app/top", want: []string{"OverrideEvaded a Paint app/top: 2 paths, HTTPRouteRule else/o#rule-1"},
		},
		"a route changes its label, and one of its hostnames": {
			before: docs(gatewayDoc("g", "istio", "http"), r("team: red", "x.example"), red), write: r("team: blue", "y.example, x.example"),
			of: "Paint app/top", want: evaded("Paint app/top"),
		},
	})
}

// Rules of a route are the same ones by their matches, then by their names.
func TestRuleMoves(t *testing.T) {
	g := gatewayDoc("g", "istio", "http")
	r := func(rules string) string { return routeDoc("r", rules, "g") }
	named := "[{name: x, " + ruleA + "}, {name: z, " + ruleB + "}]"
	unnamed := "[{" + ruleA + "}, {" + ruleB + "}]"
	runOverrideCases(t, map[string]overrideCase{
		"the rule is renamed":                   {before: docs(g, r(named), onRule("x")), write: r("[{name: new, " + ruleA + "}, {name: z, " + ruleB + "}]"), of: "Paint app/top", want: evadedOn("Paint app/top", "HTTPRouteRule app/r#x", "HTTPRouteRule app/r#new")},
		"the rule loses its name":               {before: docs(g, r(named), onRule("x")), write: r("[{" + ruleA + "}, {name: z, " + ruleB + "}]"), of: "Paint app/top", want: evadedOn("Paint app/top", "HTTPRouteRule app/r#x", "HTTPRouteRule app/r#rule-1")},
		"two rules swap their names":            {before: docs(g, r(named), onRule("x")), write: r("[{name: z, " + ruleA + "}, {name: x, " + ruleB + "}]"), of: "Paint app/top", want: evadedOn("Paint app/top", "HTTPRouteRule app/r#x", "HTTPRouteRule app/r#z")},
		"two rules swap their places":           {before: docs(g, r(named), onRule("x")), write: r("[{name: z, " + ruleB + "}, {name: x, " + ruleA + "}]")},
		"the rule gives some matches to no one": {before: docs(g, r(named), onRule("x")), write: r("[{name: x, " + ruleC + "}, {name: z, " + ruleB + "}]")},
		"the rule gives one of two matches to another one": {
			before: docs(g, r("[{name: x, matches: [{path: {value: /a}}, {path: {value: /b}}]}, {name: z, "+ruleC+"}]"), onRule("x")),
			write:  r("[{name: x, matches: [{path: {value: /a}}]}, {name: z, matches: [{path: {value: /c}}, {path: {value: /b}}]}]"),
			of:     "Paint app/top", want: evadedOn("Paint app/top", "HTTPRouteRule app/r#x", "HTTPRouteRule app/r#z"),
		},
		"the rule gives up a match that another one had, too": {
			before: docs(g, r("[{name: x, matches: [{path: {value: /a}}, {path: {value: /b}}]}, {name: z, "+ruleB+"}]"), onRule("x")),
			write:  r("[{name: x, matches: [{path: {value: /a}}]}, {name: z, " + ruleB + "}]"),
			of:     "Paint app/top", want: evadedOn("Paint app/top", "HTTPRouteRule app/r#x", "HTTPRouteRule app/r#z"),
		},
		"the rule gives up a match that another one had, too, and came first": {
			before: docs(g, r("[{name: z, "+ruleB+"}, {name: x, matches: [{path: {value: /a}}, {path: {value: /b}}]}]"), onRule("x")),
			write:  r("[{name: z, " + ruleB + "}, {name: x, matches: [{path: {value: /a}}]}]"),
		},
		"the rule gives a match to a new one": {
			before: docs(g, r("[{name: x, matches: [{path: {value: /a}}, {path: {value: /b}}]}]"), onRule("x")),
			write:  r("[{name: x, matches: [{path: {value: /a}}]}, {name: new, " + ruleB + "}]"),
			of:     "Paint app/top", want: evadedOn("Paint app/top", "HTTPRouteRule app/r#x", "HTTPRouteRule app/r#new"),
		},
		"the rule shares a match with a new one": {
			before: docs(g, r(named), onRule("x")), write: r("[{name: x, " + ruleA + "}, {name: z, " + ruleB + "}, {name: new, " + ruleA + "}]"),
		},
		"the rule is deleted, and others stay": {
			before: docs(g, r("[{name: z, "+ruleB+"}, {name: x, "+ruleA+"}]"), onRule("x")), write: r("[{name: z, " + ruleB + "}]"),
		},
		"the rule is deleted, and one for all paths stays": {
			before: docs(g, r("[{name: z}, {name: x, "+ruleA+"}]"), onRule("x")), write: r("[{name: z}]"),
			of: "Paint app/top", want: evadedOn("Paint app/top", "HTTPRouteRule app/r#x", "HTTPRouteRule app/r#z"),
		},
		"the only rule is deleted":    {before: docs(g, r("[{name: x, "+ruleA+"}]"), onRule("x")), write: r("[]")},
		"a rule is inserted in front": {before: docs(g, r(unnamed), at("g", "")), write: r("[{" + ruleC + "}, {" + ruleA + "}, {" + ruleB + "}]")},
		"a rule is inserted in front of a named one": {
			before: docs(g, r(named), onRule("x")), write: r("[{" + ruleC + "}, {name: x, " + ruleA + "}, {name: z, " + ruleB + "}]"),
		},
		"a rule is inserted in front of one that is known by its place": {
			before: docs(g, r(unnamed), onRule("rule-1")), write: r("[{" + ruleC + "}, {" + ruleA + "}, {" + ruleB + "}]"),
			of: "Paint app/top", want: evadedOn("Paint app/top", "HTTPRouteRule app/r#rule-1", "HTTPRouteRule app/r#rule-2"),
		},
		"another rule takes the name that one is known by": {
			before: docs(g, r(unnamed), onRule("rule-1")), write: r("[{" + ruleA + "}, {name: rule-1, " + ruleB + "}]"),
			of: "Paint app/top", want: evadedOn("Paint app/top", "HTTPRouteRule app/r#rule-1"),
		},
		"the route has a policy on the gateway, and a rule is deleted": {
			before: docs(g, r(named), at("g", "")), write: r("[{name: z, " + ruleB + "}]"),
		},
	})
}
