package guard_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/test/worlds"
)

// dye is a kind whose policies may be on everything from the class to the
// backends.
var dye = worlds.ClassProfileDoc("inherited", "Dye", `targets: {fields: [targetRefs], unnamedRules: true, namespaces: free, classFrom: ["*"]}
levels: [GatewayClass, GatewayNamespace, Gateway, ListenerSet, Listener, RouteNamespace, Route, Rule, Backend]
shortPaths: true
strategy: {allowed: [merge]}
blocks: {overrides: [overrides]}`)

func dyed(namespace, name, targets string) string {
	return policyDoc("Dye", namespace, name, "targetRefs: ["+targets+"]\noverrides: {a: 1}")
}

// Evaluating losses counts against the budget as all else does.
func TestOverrideLossBudget(t *testing.T) {
	costly := policyDoc("Paint", "infra", "of-h", "targetRefs: [{kind: Gateway, name: h}]\noverrides: {strategy: patch, b: 1, when: '[1, 2, 3].all(x, x > 0)'}")
	v := world(t, docs(gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http"), routeDoc("r", two, "g", "h"), at("g", ""), costly))
	g, h := v.Gateway("infra", "g"), v.Gateway("infra", "h")
	for name, c := range map[string]guard.Change{
		"where the traffic goes":        {Operation: guard.Delete, Before: g},
		"what goes with a new owner":    {Operation: guard.Update, Before: g, After: g, Owner: "ConfigMap infra/x"},
		"the paths of the object after": {Operation: guard.Create, After: h},
	} {
		t.Run(name, func(t *testing.T) {
			ev, err := (&guard.Guard{Engine: effective.NewEngine(), Budget: 1}).Evaluate(t.Context(), v, c, nil)
			require.NoError(t, err)
			assert.Equal(t, []string{"Deny TooMuch"}, codes(t, ev))
		})
	}
	ev, err := (&guard.Guard{Engine: effective.NewEngine(), Budget: 1}).Evaluate(t.Context(), v, guard.Change{Operation: guard.Delete, Before: h}, nil)
	require.NoError(t, err)
	assert.NotContains(t, codes(t, ev), "Deny TooMuch", "what the paths before cost is not for the writer to pay")
}
