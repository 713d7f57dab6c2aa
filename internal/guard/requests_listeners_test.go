package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// listenersAt80 is gateway g with listeners on one port, by their hostnames.
func listenersAt80(listeners string) string {
	return "kind: Gateway\nmetadata: {namespace: infra, name: g}\nspec: {gatewayClassName: istio, listeners: [" + listeners + "]}"
}

// A rule is merged into another one, also at listeners of which the second one takes
// nothing.
func TestRulesMergedAtConflictingListeners(t *testing.T) {
	g := func(port string) string {
		return listenersAt80("{name: one, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}, {name: two, port: " + port + ", protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}")
	}
	const (
		a, both = "{matches: [{path: {value: /a}}]}", "{matches: [{path: {value: /a}}, {path: {value: /b}}]}"
		route   = "kind: HTTPRoute\nmetadata: {namespace: app, name: r, labels: {team: TEAM}}\nspec: {parentRefs: [{namespace: infra, name: g}], rules: [RULES]}"
	)
	onRule := policyDoc("Paint", "app", "top", "targetRefs: [{kind: HTTPRoute, sectionName: rule-1, selector: {matchLabels: {team: red}}}]\n"+hard)
	for name, port := range map[string]string{"listeners at two ports": "81", "listeners that conflict": "80"} {
		t.Run(name, func(t *testing.T) {
			v := world(t, docs(g(port), strings.NewReplacer("TEAM", "red", "RULES", a+", "+both).Replace(route), onRule))
			got := findingsOf(t, evaluateAs(t, bossAndDev(), "dev", v, change(v, read(t, v, strings.NewReplacer("TEAM", "blue", "RULES", both).Replace(route)))), "Override")
			for _, finding := range got {
				assert.Contains(t, finding, "Deny OverrideEvaded a Paint app/top: ")
			}
			assert.NotEmpty(t, got)
		})
	}
}
