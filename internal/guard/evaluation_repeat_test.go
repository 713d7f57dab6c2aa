package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
)

// What is denied is not lost among warnings, however many.
func TestViolationAmongManyLosses(t *testing.T) {
	const many = 10_001
	var own, other strings.Builder
	for i := range many {
		fmt.Fprintf(&own, "a%05d: 1, ", i)
		fmt.Fprintf(&other, "a%05d: 2, ", i)
	}
	v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"),
		gatewayPolicy("overrides: {strategy: patch, when: 'spec.z > 50', z: 50}"),
		policyDoc("Paint", "app", "fill", toRoute+"overrides: {strategy: patch, "+strings.TrimSuffix(other.String(), ", ")+"}")))
	ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(t.Context(), v,
		change(v, read(t, v, routePolicy("defaults: {strategy: patch, "+own.String()+"z: 100}"))), nil)
	require.NoError(t, err)
	require.True(t, ev.Denied())
	assert.Equal(t, "z", ev.Denials[0].Rule)
}

// What is found is said in one order, with the same example.
func TestFindingsHaveOneOrder(t *testing.T) {
	const a, b = "matches: [{path: {value: /a}}]", "matches: [{path: {value: /b}}]"
	r := func(rules string) string { return routeDoc("r, creationTimestamp: '2026-01-01T00:00:00Z'", rules, "g") }
	v := world(t, docs(plainKinds, gatewayDoc("g", "istio", "http"), r("[{matches: [{path: {value: /c}}]}]"), routeDoc("s", "[{"+a+"}, {"+b+"}]", "g")))
	for range 20 {
		ev := evaluate(t, v, policyDoc("AtListener", "app", "p", "targetRefs: [{kind: Gateway, name: g, namespace: infra}, {kind: Gateway, name: h, namespace: infra}]\na: 1"))
		require.Len(t, ev.Warnings, 2)
		assert.Equal(t, []string{"spec.targetRefs[0]", "spec.targetRefs[1]"}, []string{ev.Warnings[0].Field, ev.Warnings[1].Field})
		ev = evaluate(t, v, r("[{"+a+"}, {"+b+"}]"))
		require.Len(t, ev.Warnings, 1)
		assert.Equal(t, "GET http://any-host/a", ev.Warnings[0].Request)
	}
}
