package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/test/worlds"
)

// listenersAt80 is gateway g with listeners on one port, by their hostnames.
func listenersAt80(listeners string) string {
	return "kind: Gateway\nmetadata: {namespace: infra, name: g}\nspec: {gatewayClassName: istio, listeners: [" + listeners + "]}"
}

// A route's requests go to a route of another namespace, at a listener that is not the
// first on its port.
func TestRequestsMoveAtTheSecondListenerOfAPort(t *testing.T) {
	const all = "port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}"
	g := listenersAt80("{name: one, hostname: y.example, " + all + "}, {name: two, hostname: x.example, " + all + "}")
	r := func(paths string) string {
		return worlds.RouteTo("HTTPRoute", "app", "r", "[{matches: ["+paths+"]}]", "{namespace: infra, name: g, sectionName: two}")
	}
	onR := policyDoc("Paint", "app", "top", "targetRefs: [{kind: HTTPRoute, name: r}]\n"+hard)
	const a, b = "{path: {value: /a}}", "{path: {value: /b}}"
	runOverrideCases(t, map[string]overrideCase{
		"a catch-all takes what the route gives up": {
			before: docs(g, r(a+", "+b), worlds.RouteTo("HTTPRoute", "other", "every", "[{}]", "{namespace: infra, name: g, sectionName: two}"), onR),
			write:  r(b), of: "Paint app/top", want: evadedOn("Paint app/top", "HTTPRouteRule app/r#rule-1", "HTTPRouteRule other/every#rule-1"),
		},
		"nothing serves it": {before: docs(g, r(a+", "+b), onR), write: r(b), of: "Paint app/top"},
	})
}

// A rule is merged into another one at listeners of which a gateway accepts only one.
func TestRulesMergedAtConflictingListeners(t *testing.T) {
	g := func(port string) string {
		return listenersAt80("{name: one, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}, {name: two, port: " + port + ", protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}")
	}
	const (
		a, both = "{matches: [{path: {value: /a}}]}", "{matches: [{path: {value: /a}}, {path: {value: /b}}]}"
		route   = "kind: HTTPRoute\nmetadata: {namespace: app, name: r, labels: {team: TEAM}}\nspec: {parentRefs: [{namespace: infra, name: g}], rules: [RULES]}"
	)
	onRule := policyDoc("Paint", "app", "top", "targetRefs: [{kind: HTTPRoute, sectionName: rule-1, selector: {matchLabels: {team: red}}}]\n"+hard)
	for name, c := range map[string]struct{ port, code string }{
		"listeners at two ports":  {"81", "Deny"},
		"listeners that conflict": {"80", "Warn"},
	} {
		t.Run(name, func(t *testing.T) {
			v := world(t, docs(g(c.port), strings.NewReplacer("TEAM", "red", "RULES", a+", "+both).Replace(route), onRule))
			got := findingsOf(t, evaluateAs(t, bossAndDev(), "dev", v, change(v, read(t, v, strings.NewReplacer("TEAM", "blue", "RULES", both).Replace(route)))), "Override")
			for _, finding := range got {
				assert.Contains(t, finding, c.code+" OverrideEvaded a Paint app/top: ")
			}
			assert.NotEmpty(t, got)
		})
	}
}
