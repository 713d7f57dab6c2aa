package guard_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
)

// manyHidden is a world in which a lower limit comes before so many overrides, and
// the findings about these.
func manyHidden(n int, action string) (top string, reported []string) {
	var overrides []string
	for i := range n {
		overrides = append(overrides, aLimit(fmt.Sprintf("z%02d", i), ""))
		if i < 20 {
			reported = append(reported, fmt.Sprintf("%s OverrideWeakened limits.a Rate infra/top: Rate app/own, limits.z%02d", action, i))
		}
	}
	if n > 20 {
		reported = append(reported, fmt.Sprintf("%s OverrideWeakened: %d", action, n-20))
	}
	return rateTop(overriding(overrides...)), reported
}

// Of very many the first twenty are reported by name, and how many more there are.
func TestManyDisplacedOverridesAreCounted(t *testing.T) {
	route, own := routeDoc("r", stores, "g"), rateOwn(limitsDoc(aLimit("a", "")))
	for _, n := range []int{20, 21, 45} {
		t.Run(fmt.Sprintf("the route comes under %d of them", n), func(t *testing.T) {
			top, want := manyHidden(n, "Deny")
			v := world(t, docs(rate, gatewayDoc("g", "istio", "http"), routeDoc("r", stores), own, top))
			assert.Equal(t, want, findingsOf(t, evaluate(t, v, route), "OverrideWeakened"))
		})
		t.Run(fmt.Sprintf("%d of them come to the route", n), func(t *testing.T) {
			top, want := manyHidden(n, "Warn")
			v := world(t, docs(rate, gatewayDoc("g", "istio", "http"), route, own))
			assert.Equal(t, want, findingsOf(t, evaluate(t, v, top), "OverrideWeakened"))
		})
	}
}

// An audit reports no more of each path than a write.
func TestAuditCountsDisplacedOverrides(t *testing.T) {
	top, _ := manyHidden(23, "Deny")
	v := world(t, docs(rate, gatewayDoc("g", "istio", "http"), routeDoc("r", "["+assetsRule+"]", "g"), rateOwn(limitsDoc(aLimit("a", ""))), top))
	got, err := (&guard.Guard{Engine: effective.NewEngine()}).Violations(t.Context(), v, effective.Scope{All: true})
	require.NoError(t, err)
	require.Len(t, got, 21)
	for _, one := range got {
		assert.Equal(t, api.ReasonOverrideWeakened, one.Code)
	}
	assert.Equal(t, []string{"3"}, names(got[20].Message))
}
