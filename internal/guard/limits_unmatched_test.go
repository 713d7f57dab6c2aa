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

// limitFindings shows the findings about what limits bind to, matches of routes of all
// namespaces included.
func limitFindings(t *testing.T, v *snapshot.View, write string) []string {
	t.Helper()
	var out []string
	for _, text := range findings(t, evaluateBy(t, &guard.Guard{Engine: effective.NewEngine(), ShowValues: true}, v, write)) {
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
	books := routeDoc("s", "[{matches: [{path: {value: /books}}]}]", "g")
	typo := rateOwn(limitsDoc(aLimit("a", onTypo)))
	onTwo := docs(rate, gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http"), routeDoc("r", stores, "g", "h"))
	for name, c := range map[string]struct {
		before, write string
		want          []string
	}{
		"a typo": {bindingWorld(), typo, []string{"Deny TriggerUnmatched limits.a: HTTPRoute app/r, PathPrefix /tosy, triggers[0].matches[0], GET PathPrefix /toys (rule-1), POST PathPrefix /toys (rule-1), PathPrefix /assets/ (rule-2)"}},
		"a typo that was there before": {
			bindingWorld(typo), rateOwn(limitsDoc(aLimit("a", onTypo), aLimit("b", ""))),
			[]string{"Warn TriggerUnmatched limits.a: HTTPRoute app/r, PathPrefix /tosy, triggers[0].matches[0], GET PathPrefix /toys (rule-1), POST PathPrefix /toys (rule-1), PathPrefix /assets/ (rule-2)"},
		},
		"another typo than before": {
			bindingWorld(typo), rateOwn(limitsDoc(aLimit("a", strings.Replace(onTypo, "tosy", "tsoy", 1)))),
			[]string{"Warn TriggerUnmatched limits.a: HTTPRoute app/r, PathPrefix /tsoy, triggers[0].matches[0], GET PathPrefix /toys (rule-1), POST PathPrefix /toys (rule-1), PathPrefix /assets/ (rule-2)"},
		},
		"a typo in another limit than before": {
			bindingWorld(typo), rateOwn(limitsDoc(aLimit("b", onTypo))),
			[]string{"Deny TriggerUnmatched limits.b: HTTPRoute app/r, PathPrefix /tosy, triggers[0].matches[0], GET PathPrefix /toys (rule-1), POST PathPrefix /toys (rule-1), PathPrefix /assets/ (rule-2)"},
		},
		"a typo where there was none":      {bindingWorld(rateOwn(limitsDoc(aLimit("a", onToys)))), typo, []string{"Deny TriggerUnmatched limits.a: HTTPRoute app/r, PathPrefix /tosy, triggers[0].matches[0], GET PathPrefix /toys (rule-1), POST PathPrefix /toys (rule-1), PathPrefix /assets/ (rule-2)"}},
		"a typo that is fixed":             {bindingWorld(typo), rateOwn(limitsDoc(aLimit("a", onToys))), nil},
		"a limit without triggers":         {bindingWorld(), rateOwn(limitsDoc(aLimit("a", ""))), nil},
		"a limit that is overridden":       {bindingWorld(rateTop(overriding(aLimit("a", "")))), typo, nil},
		"a default that is not taken":      {bindingWorld(rateOwn(limitsDoc(aLimit("a", "")))), rateTop("defaults: {strategy: merge, " + limitsDoc(aLimit("a", onTypo)) + "}"), nil},
		"a policy of no target":            {bindingWorld(), rateOf("app", "own", "targetRefs: [{kind: HTTPRoute, name: none}]\n", limitsDoc(aLimit("a", onTypo))), nil},
		"a policy of a gateway, no routes": {docs(rate, gatewayDoc("g", "istio", "http")), rateTop(limitsDoc(aLimit("a", onTypo))), nil},
		"one match of two": {
			bindingWorld(), rateOwn(limitsDoc(aLimit("a", "{matches: [{path: {value: /tosy}}, {path: {value: /toys}}]}"))),
			[]string{"Warn TriggerUnmatched limits.a: PathPrefix /tosy, triggers[0].matches[0], GET PathPrefix /toys (rule-1), POST PathPrefix /toys (rule-1), PathPrefix /assets/ (rule-2), HTTPRoute app/r"},
		},
		"one trigger of two": {
			bindingWorld(), rateOwn(limitsDoc(aLimit("a", onAssets+", "+onTypo))),
			[]string{"Warn TriggerUnmatched limits.a: PathPrefix /tosy, triggers[1].matches[0], GET PathPrefix /toys (rule-1), POST PathPrefix /toys (rule-1), PathPrefix /assets/ (rule-2), HTTPRoute app/r"},
		},
		"no rule of one of two routes": {
			bindingWorld(books), rateTop(limitsDoc(aLimit("a", onToys))),
			[]string{"Warn TriggerUnmatched limits.a: 1, 2 routes, HTTPRoute app/s"},
		},
		"no rule of two routes": {
			bindingWorld(books), rateTop(limitsDoc(aLimit("a", onTypo))),
			[]string{
				"Deny TriggerUnmatched limits.a: HTTPRoute app/r, 1, PathPrefix /tosy, triggers[0].matches[0], GET PathPrefix /toys, rule-1, POST PathPrefix /toys, PathPrefix /books, HTTPRoute app/s",
			},
		},
		"no rule, and the first route is one of services": {
			bindingWorld(worlds.RouteTo("GRPCRoute", "app", "a", "[{}]", worlds.ToGateway("g"))), rateTop(limitsDoc(aLimit("a", onTypo))),
			[]string{
				"Deny TriggerUnmatched limits.a: GRPCRoute app/a, 1, PathPrefix /tosy, triggers[0].matches[0], GET PathPrefix /toys, rule-1, HTTPRoute app/r, POST PathPrefix /toys, PathPrefix /assets/, rule-2",
			},
		},
		"no rule of three routes, and the last has the nearest match": {
			docs(rate, gatewayDoc("g", "istio", "http"), routeDoc("a", "[{matches: [{path: {value: /x}}]}]", "g"), routeDoc("b", "[{matches: [{path: {value: /yyyy}}]}]", "g"), routeDoc("c", "[{}, {matches: [{path: {value: /toys}}]}]", "g")),
			rateTop(limitsDoc(aLimit("a", "{matches: [{path: {value: /toyz}}]}"))),
			[]string{
				"Deny TriggerUnmatched limits.a: HTTPRoute app/a, 2, PathPrefix /toyz, triggers[0].matches[0], PathPrefix /toys, rule-2, HTTPRoute app/c, PathPrefix /yyyy, rule-1, HTTPRoute app/b, PathPrefix /x",
			},
		},
		"no rule of a route of two gateways": {onTwo, typo, []string{"Deny TriggerUnmatched limits.a: HTTPRoute app/r, PathPrefix /tosy, triggers[0].matches[0], GET PathPrefix /toys (rule-1), POST PathPrefix /toys (rule-1), PathPrefix /assets/ (rule-2)"}},
		"no rule of a route of two gateways, both of which it is on": {
			onTwo, rateOf("infra", "top", "targetRefs: [{kind: Gateway, name: g}, {kind: Gateway, name: h}]\n", limitsDoc(aLimit("a", onTypo))), []string{
				"Deny TriggerUnmatched limits.a: HTTPRoute app/r, PathPrefix /tosy, triggers[0].matches[0], GET PathPrefix /toys (rule-1), POST PathPrefix /toys (rule-1), PathPrefix /assets/ (rule-2)",
			},
		},
		"a match of another rule than the one it is on": {
			bindingWorld(), rateOf("app", "own", toItsRule, limitsDoc(aLimit("a", onAssets))),
			[]string{"Deny TriggerUnmatched limits.a: HTTPRoute app/r, PathPrefix /assets/"},
		},
		"a match of the rule that it is on": {bindingWorld(), rateOf("app", "own", toItsRule, limitsDoc(aLimit("a", onToys))), nil},
		"each of two matches is one of another route": {
			bindingWorld(books), rateTop(limitsDoc(aLimit("a", "{matches: [{path: {value: /toys}}, {path: {value: /books}}]}"))), nil,
		},
		"a hostname outside of the route's": {
			docs(rate, gatewayDoc("g", "istio", "http"), hosted("r", stores, "a.acme.com, b.acme.com")),
			rateOwn(limitsDoc(aLimit("a", "{matches: [{path: {value: /toys}}], hostnames: [c.acme.com]}"))),
			[]string{"Deny TriggerUnmatched limits.a: c.acme.com, triggers[0], HTTPRoute app/r, a.acme.com, b.acme.com"},
		},
		"a hostname outside, and one inside": {
			docs(rate, gatewayDoc("g", "istio", "http"), hosted("r", stores, "a.acme.com")),
			rateOwn(limitsDoc(aLimit("a", "{hostnames: [a.acme.com, c.acme.com]}"))),
			[]string{"Deny TriggerUnmatched limits.a: c.acme.com, triggers[0], HTTPRoute app/r, a.acme.com"},
		},
		"a hostname that is one of another route of the gateway": {
			docs(rate, gatewayDoc("g", "istio", "http"), hosted("r", stores, "a.acme.com"), hosted("s", stores, "b.acme.com")),
			rateTop(limitsDoc(aLimit("a", "{hostnames: [a.acme.com]}"))),
			[]string{"Warn TriggerUnmatched limits.a: 1, 2 routes, HTTPRoute app/s"},
		},
		"a hostname of a route for all": {bindingWorld(), rateOwn(limitsDoc(aLimit("a", "{hostnames: [a.acme.com]}"))), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := limitFindings(t, world(t, c.before), c.write)
			assert.Equal(t, c.want, got)
		})
	}
}

// What the writer of something else learns about limits.
func TestWritesUnbindLimits(t *testing.T) {
	unbound := func(limit string) []string { // golden: by its matches or by its hostnames
		return []string{"Warn TriggerUnmatched " + limit + " Rate app/own: HTTPRoute app/r"}
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
		"the match is another rule's now":     {own(aLimit("a", onAssets)), route("[" + strings.Replace(toysRule, "matches: [", "matches: [{path: {value: /assets/}}, ", 1) + "]"), []string{"Warn LimitWidened limits.a Rate app/own: HTTPRouteRule app/r#rule-1"}},
		"a match of a limit without triggers": {own(aLimit("a", "")), route("[" + toysRule + ", " + static + "]"), nil},
		"a limit that matched nothing before": {own(aLimit("a", onTypo)), route("[" + toysRule + ", " + static + "]"), nil},
		"a match is taken from a rule of two": {own(aLimit("a", onToys)), route("[{matches: [{path: {value: /toys}, method: GET}]}, " + assetsRule + "]"), nil},
		"one of a limit's matches is edited": {
			own(aLimit("a", "{matches: [{path: {value: /toys}}, {path: {value: /assets/}}]}")), route("[" + toysRule + ", " + static + "]"),
			[]string{"Warn TriggerUnmatched limits.a Rate app/own: PathPrefix /assets/, HTTPRoute app/r"},
		},
		"two limits lose their rules": {
			own(aLimit("a", onAssets), aLimit("b", onToys)), route("[" + static + "]"), append(unbound("limits.a"), unbound("limits.b")...),
		},
		"the route's hostnames leave it out": {
			docs(rate, gatewayDoc("g", "istio", "http"), hosted("r", stores, "a.acme.com, b.acme.com"), rateOwn(limitsDoc(aLimit("a", "{hostnames: [a.acme.com]}")))),
			hosted("r", stores, "b.acme.com"), unbound("limits.a"),
		},
		"the listener's hostname leaves it out": {
			docs(rate, gatewayDoc("g", "istio", "http"), routeDoc("r", stores, "g"), rateOwn(limitsDoc(aLimit("a", "{hostnames: [a.acme.com]}")))),
			strings.Replace(gatewayDoc("g", "istio", "http"), "{name: http,", "{name: http, hostname: b.acme.com,", 1), unbound("limits.a"),
		},
		"a shadowed limit that matches nothing any more": {
			own(aLimit("a", ""), aLimit("b", onAssets)), route("[" + toysRule + ", " + static + "]"), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, limitFindings(t, world(t, c.before), c.write))
		})
	}
}

func TestLimitKeepsUnmatchedHostname(t *testing.T) {
	outside := "{hostnames: [b.acme.com]}"
	before := docs(rate, gatewayDoc("g", "istio", "http"), hosted("r", stores, "a.acme.com"), rateOwn(limitsDoc(aLimit("a", outside+", "+onToys))))
	assert.Equal(t, []string{"Deny TriggerUnmatched limits.a"}, codes(t, evaluate(t, world(t, before), rateOwn(limitsDoc(aLimit("a", outside)))))[:1])
}
