package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
)

// defaulting is a block of defaults beside others.
func defaulting(all ...string) string {
	return "defaults: {strategy: merge, " + limitsDoc(all...) + "}"
}

// An override that is shadowed already is not free to all: what comes before it is
// reported for the next lower policy, too.
func TestLimitsBeforeDisplacedOverride(t *testing.T) {
	toys := overriding(aLimit("toys", onToys))
	second := func(spec string) string { return rateOf("app", "second", toRoute, spec) }
	weakened := func(limit string) []string { return []string{"Deny OverrideWeakened limits." + limit} }
	behindDefault := []string{rateTop(toys), rateOf("infra", "second", toGateway, defaulting(aLimit("b", "")))}
	behindOwn := []string{rateTop(defaulting(aLimit("b", "")) + "\n" + toys)}
	behindLower := []string{rateTop(toys), rateOwn(defaulting(aLimit("a", "")))}
	for name, c := range map[string]struct {
		before []string
		write  string
		want   []string
	}{
		"by a default as high, and a lower limit comes":           {behindDefault, rateOwn(defaulting(aLimit("a", ""))), weakened("a")},
		"by a default of its own policy, and a lower limit comes": {behindOwn, rateOwn(defaulting(aLimit("a", ""))), weakened("a")},
		"by a default, and a lower limit comes after that":        {behindDefault, rateOwn(defaulting(aLimit("c", ""))), nil},
		"by a default, and a lower limit comes on another rule":   {behindDefault, rateOwn(defaulting(aLimit("a", onAssets))), nil},
		"by a lower limit, which is edited":                       {behindLower, rateOwn(defaulting(strings.Replace(aLimit("a", ""), "5", "500", 1))), nil},
		"by a lower limit, which gets another name":               {behindLower, rateOwn(defaulting(aLimit("b", ""))), nil},
		"by a lower limit, and another of its policy comes":       {behindLower, rateOwn(defaulting(aLimit("A", ""), aLimit("a", ""))), nil},
		"by a lower limit, and one of another policy comes":       {behindLower, second(defaulting(aLimit("A", ""))), weakened("A")},
		"by a lower limit, and one of another comes after it":     {behindLower, second(defaulting(aLimit("b", ""))), nil},
		"by a lower limit, which goes, and another one was there": {append(behindLower[:2:2], second(defaulting(aLimit("b", "")))), rateOwn(defaulting(aLimit("x", ""))), nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := bindingWorld(c.before...)
			assert.Equal(t, c.want, overrideFindings(t, "dev", before, c.write))
			assert.Equal(t, warningsOf(c.want), overrideFindings(t, "boss", before, c.write), "who may override is warned")
		})
	}
}

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

// warningsOf turns denials into warnings.
func warningsOf(denied []string) []string {
	var out []string
	for _, text := range denied {
		out = append(out, strings.Replace(text, "Deny ", "Warn ", 1))
	}
	return out
}
