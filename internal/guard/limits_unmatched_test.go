package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// toItsRule is the first rule of the route r.
const toItsRule = "targetRefs: [{kind: HTTPRoute, name: r, sectionName: rule-1}]\n"

// limitMessages is all texts about what limits bind to, matches of routes of all
// namespaces included.
func limitMessages(t *testing.T, v *snapshot.View, write string) []string {
	t.Helper()
	var out []string
	for _, text := range messages(evaluateBy(t, &guard.Guard{Engine: effective.NewEngine(), ShowValues: true}, v, write)) {
		_, rest, _ := strings.Cut(text, " ")
		if strings.HasPrefix(rest, "TriggerUnmatched") || strings.HasPrefix(rest, "Limit") {
			out = append(out, text)
		}
	}
	return out
}

// hosted returns a route for hostnames.
func hosted(name, rules, hostnames string) string {
	return strings.Replace(routeDoc(name, rules, "g"), "spec:\n", "spec:\n  hostnames: ["+hostnames+"]\n", 1)
}

// What the writer of a policy learns about limits that bind to nothing, or in part.
func TestUnmatchedTriggers(t *testing.T) {
	const advice = "; use a match that the route has, or add a rule with this match to the route"
	const missing = "no rule has the match PathPrefix /tosy of triggers[0].matches[0], nearest: GET PathPrefix /toys (rule-1), POST PathPrefix /toys (rule-1), PathPrefix /assets/ (rule-2)"
	const missingOnTwo = "no rule has the match PathPrefix /tosy of triggers[0].matches[0], nearest: GET PathPrefix /toys (rule-1 of HTTPRoute app/r), POST PathPrefix /toys (rule-1 of HTTPRoute app/r), PathPrefix /books (rule-1 of HTTPRoute app/s)"
	const all = "TriggerUnmatched: limits.a binds to no rule of HTTPRoute app/r: "
	books := routeDoc("s", "[{matches: [{path: {value: /books}}]}]", "g")
	typo := rateOwn(limitsDoc(aLimit("a", onTypo)))
	onTwo := docs(rate, gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http"), routeDoc("r", stores, "g", "h"))
	for name, c := range map[string]struct {
		before, write string
		want          []string
	}{
		"a typo": {bindingWorld(), typo, []string{"Deny " + all + missing + advice}},
		"a typo that was there before": {
			bindingWorld(typo), rateOwn(limitsDoc(aLimit("a", onTypo), aLimit("b", ""))),
			[]string{"Warn " + all + missing + "; not introduced by this write" + advice},
		},
		"another typo than before": {
			bindingWorld(typo), rateOwn(limitsDoc(aLimit("a", strings.Replace(onTypo, "tosy", "tsoy", 1)))),
			[]string{"Warn " + all + strings.Replace(missing, "tosy", "tsoy", 1) + "; not introduced by this write" + advice},
		},
		"a typo in another limit than before": {
			bindingWorld(typo), rateOwn(limitsDoc(aLimit("b", onTypo))),
			[]string{"Deny " + strings.Replace(all, "limits.a", "limits.b", 1) + missing + advice},
		},
		"a typo where there was none":      {bindingWorld(rateOwn(limitsDoc(aLimit("a", onToys)))), typo, []string{"Deny " + all + missing + advice}},
		"a typo that is fixed":             {bindingWorld(typo), rateOwn(limitsDoc(aLimit("a", onToys))), nil},
		"a limit without triggers":         {bindingWorld(), rateOwn(limitsDoc(aLimit("a", ""))), nil},
		"a limit that is overridden":       {bindingWorld(rateTop(overriding(aLimit("a", "")))), typo, nil},
		"a default that is not taken":      {bindingWorld(rateOwn(limitsDoc(aLimit("a", "")))), rateTop("defaults: {strategy: merge, " + limitsDoc(aLimit("a", onTypo)) + "}"), nil},
		"a policy of no target":            {bindingWorld(), rateOf("app", "own", "targetRefs: [{kind: HTTPRoute, name: none}]\n", limitsDoc(aLimit("a", onTypo))), nil},
		"a policy of a gateway, no routes": {docs(rate, gatewayDoc("g", "istio", "http")), rateTop(limitsDoc(aLimit("a", onTypo))), nil},
		"one match of two": {
			bindingWorld(), rateOwn(limitsDoc(aLimit("a", "{matches: [{path: {value: /tosy}}, {path: {value: /toys}}]}"))),
			[]string{"Warn TriggerUnmatched: limits.a is only partly bound: " + missing + ", on HTTPRoute app/r; requests of its other matches are limited"},
		},
		"one trigger of two": {
			bindingWorld(), rateOwn(limitsDoc(aLimit("a", onAssets+", "+onTypo))),
			[]string{"Warn TriggerUnmatched: limits.a is only partly bound: " + strings.Replace(missing, "triggers[0]", "triggers[1]", 1) + ", on HTTPRoute app/r; requests of its other matches are limited"},
		},
		"no rule of one of two routes": {
			bindingWorld(books), rateTop(limitsDoc(aLimit("a", onToys))),
			[]string{"Warn TriggerUnmatched: limits.a binds to no rule of 1 of 2 routes: HTTPRoute app/s; requests to them are not limited by it"},
		},
		"no rule of two routes": {
			bindingWorld(books), rateTop(limitsDoc(aLimit("a", onTypo))),
			[]string{"Deny TriggerUnmatched: limits.a binds to no rule of HTTPRoute app/r and 1 more route: " + missingOnTwo + advice},
		},
		"no rule, and the first route is one of services": {
			bindingWorld(worlds.RouteTo("GRPCRoute", "app", "a", "[{}]", worlds.ToGateway("g"))), rateTop(limitsDoc(aLimit("a", onTypo))),
			[]string{"Deny TriggerUnmatched: limits.a binds to no rule of GRPCRoute app/a and 1 more route: no rule has the match PathPrefix /tosy of triggers[0].matches[0], nearest: GET PathPrefix /toys (rule-1 of HTTPRoute app/r), POST PathPrefix /toys (rule-1 of HTTPRoute app/r), PathPrefix /assets/ (rule-2 of HTTPRoute app/r)" + advice},
		},
		"no rule of three routes, and the last has the nearest match": {
			docs(rate, gatewayDoc("g", "istio", "http"), routeDoc("a", "[{matches: [{path: {value: /x}}]}]", "g"), routeDoc("b", "[{matches: [{path: {value: /yyyy}}]}]", "g"), routeDoc("c", "[{}, {matches: [{path: {value: /toys}}]}]", "g")),
			rateTop(limitsDoc(aLimit("a", "{matches: [{path: {value: /toyz}}]}"))),
			[]string{"Deny TriggerUnmatched: limits.a binds to no rule of HTTPRoute app/a and 2 more routes: no rule has the match PathPrefix /toyz of triggers[0].matches[0], nearest: PathPrefix /toys (rule-2 of HTTPRoute app/c), PathPrefix /yyyy (rule-1 of HTTPRoute app/b), PathPrefix /x (rule-1 of HTTPRoute app/a)" + advice},
		},
		"no rule of a route of two gateways": {onTwo, typo, []string{"Deny " + all + missing + advice}},
		"no rule of a route of two gateways, both of which it is on": {
			onTwo, rateOf("infra", "top", "targetRefs: [{kind: Gateway, name: g}, {kind: Gateway, name: h}]\n", limitsDoc(aLimit("a", onTypo))), []string{"Deny " + all + missing + advice},
		},
		"a match of another rule than the one it is on": {
			bindingWorld(), rateOf("app", "own", toItsRule, limitsDoc(aLimit("a", onAssets))),
			[]string{"Deny " + all + "the rules with the match PathPrefix /assets/ are not those that it applies to; use a match of the rules that it applies to"},
		},
		"a match of the rule that it is on": {bindingWorld(), rateOf("app", "own", toItsRule, limitsDoc(aLimit("a", onToys))), nil},
		"each of two matches is one of another route": {
			bindingWorld(books), rateTop(limitsDoc(aLimit("a", "{matches: [{path: {value: /toys}}, {path: {value: /books}}]}"))), nil,
		},
		"a hostname outside of the route's": {
			docs(rate, gatewayDoc("g", "istio", "http"), hosted("r", stores, "a.acme.com, b.acme.com")),
			rateOwn(limitsDoc(aLimit("a", "{matches: [{path: {value: /toys}}], hostnames: [c.acme.com]}"))),
			[]string{"Deny TriggerUnmatched: hostname c.acme.com of triggers[0] of limits.a does not match the hostnames of HTTPRoute app/r: a.acme.com, b.acme.com; correct it, or add it to the route's hostnames"},
		},
		"a hostname outside, and one inside": {
			docs(rate, gatewayDoc("g", "istio", "http"), hosted("r", stores, "a.acme.com")),
			rateOwn(limitsDoc(aLimit("a", "{hostnames: [a.acme.com, c.acme.com]}"))),
			[]string{"Deny TriggerUnmatched: hostname c.acme.com of triggers[0] of limits.a does not match the hostnames of HTTPRoute app/r: a.acme.com; correct it, or add it to the route's hostnames"},
		},
		"a hostname that is one of another route of the gateway": {
			docs(rate, gatewayDoc("g", "istio", "http"), hosted("r", stores, "a.acme.com"), hosted("s", stores, "b.acme.com")),
			rateTop(limitsDoc(aLimit("a", "{hostnames: [a.acme.com]}"))),
			[]string{"Warn TriggerUnmatched: limits.a binds to no rule of 1 of 2 routes: HTTPRoute app/s; requests to them are not limited by it"},
		},
		"a hostname of a route for all": {bindingWorld(), rateOwn(limitsDoc(aLimit("a", "{hostnames: [a.acme.com]}"))), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := limitMessages(t, world(t, c.before), c.write)
			assert.Equal(t, c.want, got)
		})
	}
}

// What the writer of something else learns about limits.
func TestWritesUnbindLimits(t *testing.T) {
	const restore = "; keep the matches that bind it, or edit the policy as well"
	unboundByHost := func(limit string) []string {
		return []string{"Warn TriggerUnmatched: " + limit + " of Rate app/own is no longer bound to any rule of HTTPRoute app/r: no request for its hostnames reaches it; keep the hostnames that bind it, or edit the policy as well"}
	}
	unbound := func(limit string) []string {
		return []string{"Warn TriggerUnmatched: " + limit + " of Rate app/own is no longer bound to any rule of HTTPRoute app/r" + restore}
	}
	route := func(rules string) string { return routeDoc("r", rules, "g") }
	static := "{matches: [{path: {value: /static/}}]}"
	own := func(all ...string) string { return bindingWorld(rateOwn(limitsDoc(all...))) }
	for name, c := range map[string]struct {
		before, write string
		want          []string
	}{
		"a match is edited": {own(aLimit("a", onAssets)), route("[" + toysRule + ", " + static + "]"), unbound("limits.a")},
		"a rule goes":       {own(aLimit("a", onAssets)), route("[" + toysRule + "]"), unbound("limits.a")},
		"a rule goes from a route of two gateways": {
			docs(rate, gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http"), routeDoc("r", stores, "g", "h"), rateOwn(limitsDoc(aLimit("a", onAssets)))),
			routeDoc("r", "["+toysRule+"]", "g", "h"), unbound("limits.a"),
		},
		"the route goes from its gateway":     {own(aLimit("a", onAssets)), routeDoc("r", stores), nil},
		"the match is another rule's now":     {own(aLimit("a", onAssets)), route("[" + strings.Replace(toysRule, "matches: [", "matches: [{path: {value: /assets/}}, ", 1) + "]"), []string{"Warn LimitWidened: limits.a of Rate app/own is now also bound to HTTPRouteRule app/r#rule-1"}},
		"a match of a limit without triggers": {own(aLimit("a", "")), route("[" + toysRule + ", " + static + "]"), nil},
		"a limit that matched nothing before": {own(aLimit("a", onTypo)), route("[" + toysRule + ", " + static + "]"), nil},
		"a match is taken from a rule of two": {own(aLimit("a", onToys)), route("[{matches: [{path: {value: /toys}, method: GET}]}, " + assetsRule + "]"), nil},
		"one of a limit's matches is edited": {
			own(aLimit("a", "{matches: [{path: {value: /toys}}, {path: {value: /assets/}}]}")), route("[" + toysRule + ", " + static + "]"),
			[]string{"Warn TriggerUnmatched: limits.a of Rate app/own no longer finds its match PathPrefix /assets/ in any rule of HTTPRoute app/r" + restore},
		},
		"two limits lose their rules": {
			own(aLimit("a", onAssets), aLimit("b", onToys)), route("[" + static + "]"), append(unbound("limits.a"), unbound("limits.b")...),
		},
		"the route's hostnames leave it out": {
			docs(rate, gatewayDoc("g", "istio", "http"), hosted("r", stores, "a.acme.com, b.acme.com"), rateOwn(limitsDoc(aLimit("a", "{hostnames: [a.acme.com]}")))),
			hosted("r", stores, "b.acme.com"), unboundByHost("limits.a"),
		},
		"the listener's hostname leaves it out": {
			docs(rate, gatewayDoc("g", "istio", "http"), routeDoc("r", stores, "g"), rateOwn(limitsDoc(aLimit("a", "{hostnames: [a.acme.com]}")))),
			strings.Replace(gatewayDoc("g", "istio", "http"), "{name: http,", "{name: http, hostname: b.acme.com,", 1), unboundByHost("limits.a"),
		},
		"a shadowed limit that matches nothing any more": {
			own(aLimit("a", ""), aLimit("b", onAssets)), route("[" + toysRule + ", " + static + "]"), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, limitMessages(t, world(t, c.before), c.write))
		})
	}
}

func TestLimitKeepsUnmatchedHostname(t *testing.T) {
	outside := "{hostnames: [b.acme.com]}"
	before := docs(rate, gatewayDoc("g", "istio", "http"), hosted("r", stores, "a.acme.com"), rateOwn(limitsDoc(aLimit("a", outside+", "+onToys))))
	assert.Equal(t, []string{"Deny TriggerUnmatched limits.a"}, codes(evaluate(t, world(t, before), rateOwn(limitsDoc(aLimit("a", outside)))))[:1])
}
