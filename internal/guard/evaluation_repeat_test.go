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

// A change is evaluated several times where others are in flight, by one engine
// that remembers: each time with the same result.
func TestEvaluationIsRepeatable(t *testing.T) {
	over := policyDoc("Paint", "infra", "old", "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: g}]\n"+
		"overrides: {strategy: patch, when: 'spec.a > 50', a: 50}")
	v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"), over))
	for name, write := range map[string]string{
		"a gateway's policy that breaks a constraint": gatewayPolicy("a: 100"),
		"a route's policy that breaks one":            routePolicy("a: 100"),
		"one that unsets what an override sets":       gatewayPolicy("unset: [a]\na: 100"),
	} {
		t.Run(name, func(t *testing.T) {
			g := &guard.Guard{Engine: effective.NewEngine()}
			c := change(v, read(t, v, write))
			first, err := g.Evaluate(t.Context(), v, c, nil)
			require.NoError(t, err)
			require.True(t, first.Denied())
			for range 3 {
				again, err := g.Evaluate(t.Context(), v, c, nil)
				require.NoError(t, err)
				assert.Equal(t, messages(first), messages(again))
			}
		})
	}
}

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
