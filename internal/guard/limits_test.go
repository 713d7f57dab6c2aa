package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/guard"
)

// Of very many findings the first are reported, and how many more there are.
func TestManyLimitsAreCounted(t *testing.T) {
	var all []string
	for i := range 30 {
		all = append(all, aLimit(fmt.Sprintf("l%02d", i), onAssets))
	}
	got := limitFindings(t, world(t, bindingWorld()), rateOwn(limitsDoc(all...)))
	require.Len(t, got, 21)
	assert.Equal(t, "Warn LimitShadowed: 9", got[20])
}

// The same objects in any order give the same words.
func TestLimitFindingsAreOrdered(t *testing.T) {
	before := bindingWorld(rateOwn("defaults: {strategy: merge, "+limitsDoc(aLimit("d", onAssets), aLimit("b", onGet), aLimit("c", ""))+"}"), routeDoc("s", stores, "g"))
	write := rateTop("defaults: {strategy: merge, " + limitsDoc(aLimit("a", onGet), aLimit("e", onAssets), aLimit("f", onTypo)) + "}")
	first := limitFindings(t, world(t, before), write)
	require.NotEmpty(t, first)
	for range 20 {
		require.Equal(t, first, limitFindings(t, world(t, before), write))
	}
}

// A deletion of a policy is reported for what it takes from others alone.
func TestDeletedPolicyHasNoLimitFindings(t *testing.T) {
	v := world(t, bindingWorld(rateOwn(limitsDoc(aLimit("a", onGet), aLimit("b", onTypo)))))
	ref := v.Get(read(t, v, rateOwn(limitsDoc(aLimit("a", "")))).Ref()).Ref()
	assert.Equal(t, []string{"Warn RulesLost limits.a"}, codes(t, deleted(t, v, ref)))
	assert.Empty(t, findings(t, &guard.Decision{}))
}

// A condition that another policy meets puts a limit with triggers in the place of one without.
func TestLimitGetsTriggers(t *testing.T) {
	top := rateTop("defaults: {strategy: merge, " + limitsDoc(aLimit("a", "")) + "}\noverrides: {strategy: merge, when: 'has(spec.limits.b)', " + limitsDoc(aLimit("a", onGet)) + "}")
	v := world(t, bindingWorld(top, rateOwn("defaults: {strategy: merge, "+limitsDoc(aLimit("c", ""))+"}")))
	assert.NotPanics(t, func() { evaluate(t, v, rateOwn("defaults: {strategy: merge, "+limitsDoc(aLimit("b", ""))+"}")) })
}

func TestRouteWriteNamesPolicyOfShadowedLimits(t *testing.T) {
	before := bindingWorld(rateOwn(limitsDoc(aLimit("a", onAssets), aLimit("b", onToys))))
	got := limitFindings(t, world(t, before), routeDoc("r", "["+strings.Replace(toysRule, "matches: [", "matches: [{path: {value: /assets/}}, ", 1)+", "+assetsRule+"]", "g"))
	assert.Len(t, got, 2)
	assert.Equal(t, "Warn LimitShadowed limits.b Rate app/own: limits.a, rule-1, HTTPRoute app/r", got[0])
}

func TestManyMatchesAreCounted(t *testing.T) {
	var matches []string
	for i := range 30 {
		matches = append(matches, fmt.Sprintf("{path: {value: /p%02d}}", i))
	}
	got := limitFindings(t, world(t, docs(rate, gatewayDoc("g", "istio", "http"), routeDoc("r", "[{matches: ["+strings.Join(matches, ", ")+"]}]", "g"))), rateOwn(limitsDoc(aLimit("a", "{matches: [{path: {value: /p00}}]}"))))
	require.Len(t, got, 21)
	assert.Equal(t, "Warn LimitWidened: 9", got[20])
}
