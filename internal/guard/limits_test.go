package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/guard"
)

// Who shadows whom, and on what: reported when either is written, or when it happens
// so.
func TestShadowedLimits(t *testing.T) {
	merging := func(all ...string) string { return "defaults: {strategy: merge, " + limitsDoc(all...) + "}" }
	second := func(spec string) string { return rateOf("app", "second", toRoute, spec) }
	onGetAndRest := bindingWorld(rateOwn(merging(aLimit("a", onGet), aLimit("b", ""))))
	for name, c := range map[string]struct {
		before, write string
		want          []string
	}{
		"one limit of a policy another one": {
			bindingWorld(), rateOwn(limitsDoc(aLimit("a", onAssets), aLimit("b", ""))),
			[]string{"Warn LimitShadowed limits.b (Rate app/own): limits.a, rule-2, HTTPRoute app/r"},
		},
		"on each rule": {
			bindingWorld(), rateOwn(limitsDoc(aLimit("a", ""), aLimit("b", ""))),
			[]string{"Warn LimitShadowed limits.b (Rate app/own): limits.a, rule-1, HTTPRoute app/r, 1"},
		},
		"two limits a third one": {
			bindingWorld(), rateOwn(limitsDoc(aLimit("a", onToys), aLimit("b", onAssets), aLimit("c", ""))),
			[]string{
				"Warn LimitShadowed limits.c (Rate app/own): limits.a, rule-1, HTTPRoute app/r",
				"Warn LimitShadowed limits.c (Rate app/own): limits.b, rule-2, HTTPRoute app/r",
			},
		},
		"one limit two others: the bound one shadows both": {
			bindingWorld(), rateOwn(limitsDoc(aLimit("a", onAssets), aLimit("b", onAssets), aLimit("c", onAssets))),
			[]string{
				"Warn LimitShadowed limits.b (Rate app/own): limits.a, rule-2, HTTPRoute app/r",
				"Warn LimitShadowed limits.c (Rate app/own): limits.a, rule-2, HTTPRoute app/r",
			},
		},
		"none, on rules of their own":  {bindingWorld(), rateOwn(limitsDoc(aLimit("a", onAssets), aLimit("b", onToys))), nil},
		"one limit that is overridden": {bindingWorld(rateTop("overrides: {strategy: atomic, " + limitsDoc(aLimit("a", "")) + "}")), rateOwn(limitsDoc(aLimit("b", ""))), nil},
		"a limit of another policy, which is written": {
			bindingWorld(rateOwn(merging(aLimit("b", "")))), second(merging(aLimit("a", onAssets))),
			[]string{"Warn LimitShadowed limits.b Rate app/own: limits.a, Rate app/second, rule-2, HTTPRoute app/r"},
		},
		"a limit of the policy that is written": {
			bindingWorld(rateOwn(merging(aLimit("a", onAssets)))), second(merging(aLimit("b", ""))),
			[]string{"Warn LimitShadowed limits.b Rate app/own: Rate app/second, limits.a, rule-2, HTTPRoute app/r"},
		},
		"what was so before is not reported to others":   {onGetAndRest, rateTop(merging(aLimit("b", ""))), nil},
		"what was so before is not reported for a route": {onGetAndRest, routeDoc("r", "["+toysRule+", "+strings.Replace(assetsRule, "{", "{timeouts: {request: 1s}, ", 1)+"]", "g"), nil},
		"what was so before is reported to their writer": {
			onGetAndRest, rateOwn(merging(aLimit("a", onToys), aLimit("b", ""))),
			[]string{"Warn LimitShadowed limits.b (Rate app/own): limits.a, rule-1, HTTPRoute app/r"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, limitFindings(t, world(t, c.before), c.write))
		})
	}
}

// What limits hold for beyond what they ask for.
func TestWidenedLimits(t *testing.T) {
	own := func(all ...string) string { return rateOwn(limitsDoc(all...)) }
	route := func(rules string) string { return routeDoc("r", rules, "g") }
	wider := strings.Replace(assetsRule, "matches: [", "matches: [{path: {value: /static/}}, ", 1)
	const byRoute = "Warn LimitWidened limits.a Rate app/own: PathPrefix /static/, rule-2, HTTPRoute app/r"
	for name, c := range map[string]struct {
		before, write string
		want          []string
	}{
		"the policy is written: the rule's other match": {
			bindingWorld(), own(aLimit("a", onGet)),
			[]string{"Warn LimitWidened limits.a: POST PathPrefix /toys, rule-1, HTTPRoute app/r"},
		},
		"it was so before, and the policy is written again": {
			bindingWorld(own(aLimit("a", onGet))), own(aLimit("a", onGet), aLimit("b", onAssets)),
			[]string{"Warn LimitWidened limits.a: POST PathPrefix /toys, rule-1, HTTPRoute app/r"},
		},
		"all matches are asked for":               {bindingWorld(), own(aLimit("a", onToys)), nil},
		"all matches are asked for one by one":    {bindingWorld(), own(aLimit("a", onGet+", {matches: [{method: POST}]}")), nil},
		"no triggers ask for nothing":             {bindingWorld(), own(aLimit("a", "")), nil},
		"hostnames alone ask for every rule":      {bindingWorld(), own(aLimit("a", "{hostnames: [a.acme.com]}")), nil},
		"a shadowed limit holds for nothing":      {bindingWorld(), rateOwn(limitsDoc(aLimit("a", onToys), aLimit("b", onGet))), []string{"Warn LimitShadowed limits.b (Rate app/own): limits.a, rule-1, HTTPRoute app/r"}},
		"a route's rule gains a match":            {bindingWorld(own(aLimit("a", onAssets))), route("[" + toysRule + ", " + wider + "]"), []string{byRoute}},
		"a rule gains one, without triggers":      {bindingWorld(own(aLimit("a", ""))), route("[" + toysRule + ", " + wider + "]"), nil},
		"a rule to which it is not bound":         {bindingWorld(own(aLimit("a", onToys))), route("[" + toysRule + ", " + wider + "]"), nil},
		"a rule loses a match":                    {bindingWorld(own(aLimit("a", onGet))), route("[{matches: [{path: {value: /toys}, method: GET}]}, " + assetsRule + "]"), nil},
		"the route's matches are in other order":  {bindingWorld(own(aLimit("a", onGet))), route("[{matches: [{path: {value: /toys}, method: POST}, {path: {value: /toys}, method: GET}]}, " + assetsRule + "]"), nil},
		"what was beside is reported to no other": {bindingWorld(own(aLimit("a", onGet))), rateTop("defaults: {strategy: merge, " + limitsDoc(aLimit("b", onAssets)) + "}"), nil},
		"a rule comes that it is bound to": {
			bindingWorld(own(aLimit("a", onGet))), route("[" + toysRule + ", " + assetsRule + ", {matches: [{path: {value: /toys}, method: GET, headers: [{name: b, value: c}]}]}]"),
			[]string{"Warn LimitWidened limits.a Rate app/own: HTTPRouteRule app/r#rule-3"},
		},
		"a bound rule gains a match that its triggers choose": {
			bindingWorld(own(aLimit("a", onToys))), route("[{matches: [" + getToys + ", " + postToys + ", " + putToys + "]}, " + assetsRule + "]"),
			[]string{"Warn LimitWidened limits.a Rate app/own: PUT PathPrefix /toys, rule-1, HTTPRoute app/r"},
		},
		"a rule's matches become others that its triggers choose": {
			bindingWorld(own(aLimit("a", onToys))), route("[{matches: [" + putToys + "]}, " + assetsRule + "]"), nil,
		},
		"one of a rule's matches becomes another that its triggers choose": {
			bindingWorld(own(aLimit("a", onToys))), route("[{matches: [" + getToys + ", " + putToys + "]}, " + assetsRule + "]"), nil,
		},
		"a rule's matches become one that its triggers choose, and one beside": {
			bindingWorld(own(aLimit("a", onToys))), route("[{matches: [" + putToys + ", {path: {value: /static/}}]}, " + assetsRule + "]"),
			[]string{"Warn LimitWidened limits.a Rate app/own: PathPrefix /static/, rule-1, HTTPRoute app/r"},
		},
		"a match beside becomes another one beside": {
			bindingWorld(own(aLimit("a", onGet))), route("[{matches: [" + getToys + ", " + putToys + "]}, " + assetsRule + "]"),
			[]string{"Warn LimitWidened limits.a Rate app/own: PUT PathPrefix /toys, rule-1, HTTPRoute app/r"},
		},
		"a rule is split, and both parts are chosen": {
			bindingWorld(own(aLimit("a", onToys))), route("[{matches: [" + getToys + "]}, {matches: [" + postToys + "]}, " + assetsRule + "]"), nil,
		},
		"a rule is split, and one part is chosen": {
			bindingWorld(own(aLimit("a", onGet))), route("[{matches: [" + getToys + "]}, {matches: [" + postToys + "]}, " + assetsRule + "]"), nil,
		},
		"a rule is split, and a part gains a match": {
			bindingWorld(own(aLimit("a", onToys))), route("[{matches: [" + getToys + "]}, {matches: [" + postToys + ", " + putToys + "]}, " + assetsRule + "]"),
			[]string{"Warn LimitWidened limits.a Rate app/own: HTTPRouteRule app/r#rule-2"},
		},
		"a rule comes that every limit without triggers is bound to": {
			bindingWorld(own(aLimit("a", ""))), route("[" + toysRule + ", " + assetsRule + ", {matches: [{path: {value: /x}}]}]"), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, limitFindings(t, world(t, c.before), c.write))
		})
	}
}

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
	assert.Empty(t, codes(t, deleted(t, v, ref)))
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
