package guard_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Constraints and the blast radius compare paths by the requests that they serve, not by
// the names of listeners and rules.
func TestSameRequestsUnderOtherNames(t *testing.T) {
	const (
		a, b, c = "matches: [{path: {value: /a}}]", "matches: [{path: {value: /b}}]", "matches: [{path: {value: /c}}]"
		aAndB   = "matches: [{path: {value: /a}}, {path: {value: /b}}]"
	)
	g, h := gatewayDoc("g", "istio", "http"), gatewayDoc("g", "istio", "web")
	r := func(rules string) string { return routeDoc("r", rules, "g") }
	ruleOne := policyDoc("Paint", "app", "one", "targetRefs: [{kind: HTTPRoute, name: r, sectionName: one}]\na: 1")
	onListener := policyDoc("Paint", "infra", "lst", "targetRefs: [{kind: Gateway, name: g, sectionName: http}]\na: 1")
	for name, test := range map[string]struct {
		before, write string
		deny, warn    bool // of the constraint that requires a
		changes       api.Changes
	}{
		"a listener is renamed":                        {docs(g, r("[{"+a+"}]")), h, false, true, api.Changes{}},
		"a listener is renamed, and leaves its policy": {docs(g, onListener, r("[{"+a+"}]")), h, true, false, api.Changes{Paths: 1, Namespaces: 1}},
		"two listeners change their ports": {
			docs(gatewayDoc("g", "istio", "http", "alt"), onListener, r("[{"+a+"}]")), gatewayDoc("g", "istio", "alt", "http"), true, false, api.Changes{Paths: 2, Namespaces: 1},
		},
		"a rule is renamed":              {docs(g, r("[{name: x, "+a+"}, {name: z, "+b+"}]")), r("[{name: new, " + a + "}, {name: z, " + b + "}]"), false, true, api.Changes{}},
		"a rule is split":                {docs(g, r("[{name: x, "+aAndB+"}]")), r("[{name: w, " + a + "}, {name: z, " + b + "}]"), false, true, api.Changes{}},
		"two rules become one":           {docs(g, r("[{name: x, "+a+"}, {name: w, "+b+"}]")), r("[{name: z, " + aAndB + "}]"), false, true, api.Changes{}},
		"a rule for new requests":        {docs(g, r("[{name: x, "+a+"}]")), r("[{name: x, " + a + "}, {name: z, " + b + "}]"), true, true, api.Changes{}},
		"a rule for new and known ones":  {docs(g, r("[{name: x, "+a+"}]")), r("[{name: w, matches: [{path: {value: /a/b}}, {path: {value: /c}}]}, {name: x, " + a + "}]"), true, true, api.Changes{}},
		"a part goes to a rule that has": {docs(g, ruleOne, r("[{name: x, "+aAndB+"}, {name: one, "+c+"}]")), r("[{name: x, " + a + "}, {name: one, matches: [{path: {value: /c}}, {path: {value: /b}}]}]"), false, true, api.Changes{}},
		"a part goes to one that lacks it": {
			docs(g, ruleOne, r("[{name: one, "+aAndB+"}, {name: x, "+c+"}]")), r("[{name: one, " + a + "}, {name: x, matches: [{path: {value: /c}}, {path: {value: /b}}]}]"), true, false, api.Changes{},
		},
		"a part goes to a new one without": {docs(g, ruleOne, r("[{name: one, "+aAndB+"}]")), r("[{name: one, " + a + "}, {name: z, " + b + "}]"), true, false, api.Changes{Paths: 1, Namespaces: 1}},
		"names are swapped":                {docs(g, ruleOne, r("[{name: one, "+a+"}, {name: x, "+b+"}]")), r("[{name: x, " + a + "}, {name: one, " + b + "}]"), true, false, api.Changes{Paths: 2, Namespaces: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			ev := evaluate(t, under(t, need, test.before), test.write)
			var deny, warn bool
			for _, f := range ev.Denials {
				deny = deny || f.Code == api.ReasonRequirementUnmet
			}
			for _, f := range ev.Warnings {
				warn = warn || f.Code == api.ReasonRequirementUnmet
			}
			assert.Equal(t, test.deny, deny, "introduced: %v", findings(t, ev))
			assert.Equal(t, test.warn, warn, "as before: %v", findings(t, ev))
			assert.Equal(t, test.changes, ev.Changes)
		})
	}
}
