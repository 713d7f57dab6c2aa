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
