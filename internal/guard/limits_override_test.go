package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/test/worlds"
)

// rate is a kind whose limits bind to rules of routes.
var rate = worlds.ProfileDoc("Rate", `rules: [limits.*]
binding: {rules: limits.*, version: v2}
strategy: {allowed: [merge, atomic], field: strategy, bareField: strategy}
blocks: {overrides: [overrides], defaults: [defaults], when: when}`)

// stores are the rules of the tests: GET and POST /toys, and /assets/.
const (
	toysRule   = "{matches: [{path: {value: /toys}, method: GET}, {path: {value: /toys}, method: POST}]}"
	assetsRule = "{matches: [{path: {value: /assets/}}]}"
	stores     = "[" + toysRule + ", " + assetsRule + "]"
)

func rateOf(namespace, name, target, spec string) string {
	return policyDoc("Rate", namespace, name, target+spec)
}

func rateTop(spec string) string { return rateOf("infra", "top", toGateway, spec) }

func rateOwn(spec string) string { return rateOf("app", "own", toRoute, spec) }

// aLimit is a limit with triggers in YAML, of so many requests.
func aLimit(name, triggers string) string {
	if triggers != "" {
		triggers = ", triggers: [" + triggers + "]"
	}
	return name + ": {rates: [{limit: 5, unit: second}]" + triggers + "}"
}

func limitsDoc(all ...string) string { return "limits: {" + strings.Join(all, ", ") + "}" }

func overriding(all ...string) string {
	return "overrides: {strategy: merge, " + limitsDoc(all...) + "}"
}

// triggers.
const (
	onToys   = "{matches: [{path: {value: /toys}}]}"
	onGet    = "{matches: [{path: {value: /toys}, method: GET}]}"
	onAssets = "{matches: [{path: {value: /assets/}}]}"
	onTypo   = "{matches: [{path: {value: /tosy}}]}"
)

// The same limit, with what is taken for granted and without.
const (
	inFull  = "a: {rates: [{limit: 5, unit: second, duration: 1}], triggers: [{matches: [{path: {type: PathPrefix, value: /toys}}, {headers: [{name: b, value: c, type: Exact}]}]}]}"
	inShort = "a: {rates: [{limit: 5, unit: second}], triggers: [{matches: [{path: {value: /toys}}, {headers: [{name: b, value: c}]}]}]}"
)

// bindingWorld is a gateway with a route of the tests' rules.
func bindingWorld(more ...string) string {
	return docs(append([]string{rate, gatewayDoc("g", "istio", "http"), routeDoc("r", stores, "g")}, more...)...)
}

// overrideFindings are the codes of findings about overrides, and the rules.
func overrideFindings(t *testing.T, user, before, write string) []string {
	t.Helper()
	v := world(t, before)
	ev := evaluateAs(t, bossAndDev(), user, v, change(v, read(t, v, write)))
	var out []string
	for _, text := range codes(t, ev) {
		if strings.Contains(text, " Override") && !strings.Contains(text, " Overridden") {
			out = append(out, text)
		}
	}
	return out
}

// An override of a limit holds where it is bound to the rule.
func TestLimitOverridesThatBecomeUnbound(t *testing.T) {
	evaded := func(rule string) []string { return []string{"Deny OverrideEvaded limits." + rule} }
	removed := func(rule string) []string { return []string{"Deny OverrideRemoved limits." + rule} }
	route := func(rules string) string { return routeDoc("r", rules, "g") }
	for name, c := range map[string]struct {
		before, write string
		want          []string
	}{
		"the match that it is bound by is edited": {
			bindingWorld(rateTop(overriding(aLimit("a", onAssets)))), route("[" + toysRule + ", {matches: [{path: {value: /}}]}]"), evaded("a"),
		},
		"the match that it is bound by is another one": {
			bindingWorld(rateTop(overriding(aLimit("a", onAssets)))), route("[" + toysRule + ", {matches: [{path: {value: /static/}}]}]"), nil,
		},
		"the match is edited, and it had no triggers": {
			bindingWorld(rateTop(overriding(aLimit("a", "")))), route("[" + toysRule + ", {matches: [{path: {value: /static/}}]}]"), nil,
		},
		"the match is edited, and it was not bound there": {
			bindingWorld(rateTop(overriding(aLimit("a", onToys)))), route("[" + toysRule + ", {matches: [{path: {value: /static/}}]}]"), nil,
		},
		"one of two matches by which it is bound stays": {
			bindingWorld(rateTop(overriding(aLimit("a", onToys)))), route("[{matches: [{path: {value: /toys}, method: GET}]}, " + assetsRule + "]"), nil,
		},
		"the rules change their places": {
			bindingWorld(rateTop(overriding(aLimit("a", onAssets)))), route("[" + assetsRule + ", " + toysRule + "]"), nil,
		},
		"a rule comes before": {
			bindingWorld(rateTop(overriding(aLimit("a", onAssets)))), route("[{matches: [{path: {value: /new}}]}, " + toysRule + ", " + assetsRule + "]"), nil,
		},
		"the rule gets a name": {
			bindingWorld(rateTop(overriding(aLimit("a", onAssets)))), route("[" + toysRule + ", " + strings.Replace(assetsRule, "{", "{name: assets, ", 1) + "]"), nil,
		},
		"the route is another one by its filters": {
			bindingWorld(rateTop(overriding(aLimit("a", onAssets)))), route("[" + toysRule + ", " + strings.Replace(assetsRule, "{", "{timeouts: {request: 1s}, ", 1) + "]"), nil,
		},
		"the rule goes, and another one takes its match, to which it is bound": {
			bindingWorld(rateTop(overriding(aLimit("a", onAssets)))), route("[" + strings.Replace(toysRule, "matches: [", "matches: [{path: {value: /assets/}}, ", 1) + "]"), nil,
		},
		"a lower limit comes before it on every rule": {
			bindingWorld(rateTop(overriding(aLimit("b", "")))), rateOwn(limitsDoc(aLimit("a", ""))), evaded("b"),
		},
		"a lower limit comes before it on the last rule alone": {
			bindingWorld(rateTop(overriding(aLimit("b", "")))), rateOwn(limitsDoc(aLimit("a", onAssets))), evaded("b"),
		},
		"a lower limit comes before it where it is not bound": {
			bindingWorld(rateTop(overriding(aLimit("b", onToys)))), rateOwn(limitsDoc(aLimit("a", onAssets))), nil,
		},
		"a lower limit comes after it": {
			bindingWorld(rateTop(overriding(aLimit("b", "")))), rateOwn(limitsDoc(aLimit("c", ""))), nil,
		},
		"a lower limit that binds to nothing comes before it": {
			bindingWorld(rateTop(overriding(aLimit("b", "")))), rateOwn(limitsDoc(aLimit("a", onTypo))), nil,
		},
		"a lower override comes before it": {
			bindingWorld(rateTop(overriding(aLimit("b", "")))), rateOwn(overriding(aLimit("a", ""))), evaded("b"),
		},
		"a default of a policy as high comes before it": {
			bindingWorld(rateTop(overriding(aLimit("b", "")))), rateOf("infra", "second", toGateway, "defaults: {strategy: merge, "+limitsDoc(aLimit("a", ""))+"}"), evaded("b"),
		},
		"an override of a policy as high comes before it": {
			bindingWorld(rateTop(overriding(aLimit("b", "")))), rateOf("infra", "second", toGateway, overriding(aLimit("a", ""))), nil,
		},
		"one of its own policy comes before it": {
			bindingWorld(rateTop(overriding(aLimit("b", "")))), rateTop(overriding(aLimit("a", ""), aLimit("b", ""))), nil,
		},
		"its own triggers are edited": {
			bindingWorld(rateTop(overriding(aLimit("a", onAssets)))), rateTop(overriding(aLimit("a", onToys))), removed("a"),
		},
		"it is written without what is taken for granted": {
			bindingWorld(rateTop(overriding(inFull))), rateTop(overriding(inShort)), nil,
		},
		"it is written with what is taken for granted": {
			bindingWorld(rateTop(overriding(inShort))), rateTop(overriding(inFull)), nil,
		},
		"it is written without what is not taken for granted": {
			bindingWorld(rateTop(overriding(strings.Replace(inFull, "duration: 1", "duration: 2", 1)))), rateTop(overriding(inShort)), removed("a"),
		},
		"an atomic override has no lower limits beside it": {
			bindingWorld(rateTop("overrides: {strategy: atomic, " + limitsDoc(aLimit("b", "")) + "}")), rateOwn(limitsDoc(aLimit("a", ""))), nil,
		},
		"it was shadowed before": {
			bindingWorld(rateTop(overriding(aLimit("b", ""))), rateOwn(limitsDoc(aLimit("a", "")))), rateOwn(limitsDoc(aLimit("a", ""), aLimit("c", ""))), nil,
		},
		"it was shadowed before on one rule, and is on both": {
			bindingWorld(rateTop(overriding(aLimit("b", ""))), rateOwn(limitsDoc(aLimit("a", onAssets)))), rateOwn(limitsDoc(aLimit("a", ""))), evaded("b"),
		},
		"it was shadowed before, and a rule of the route becomes so": {
			bindingWorld(rateTop(overriding(aLimit("b", ""))), rateOwn(limitsDoc(aLimit("a", onAssets)))),
			route("[" + strings.Replace(toysRule, "matches: [", "matches: [{path: {value: /assets/}}, ", 1) + ", " + assetsRule + "]"), evaded("b"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, overrideFindings(t, "dev", c.before, c.write))
			var mine []string
			for _, text := range c.want {
				mine = append(mine, strings.Replace(text, "Deny", "Warn", 1))
			}
			assert.Equal(t, mine, overrideFindings(t, "boss", c.before, c.write), "users who are allowed to override are warned")
		})
	}
}

// What shadows an override that was not bound there before is no loss: it never held.
func TestLimitOverridesShadowedFromTheStart(t *testing.T) {
	denied, warned := []string{"Deny OverrideWeakened limits.a"}, []string{"Warn OverrideWeakened limits.a"}
	for name, c := range map[string]struct {
		before, write string
		want          []string
	}{
		"the override meets existing limits or gates": {
			docs(rate, gatewayDoc("g", "istio", "http"), routeDoc("r", "["+toysRule+"]", "g"), rateOwn(limitsDoc(aLimit("a", "")))),
			rateTop(overriding(aLimit("b", ""))), warned,
		},
		"the route comes under the override": {
			docs(rate, gatewayDoc("g", "istio", "http"), routeDoc("r", "["+toysRule+"]"), rateTop(overriding(aLimit("b", ""))), rateOwn(limitsDoc(aLimit("a", "")))),
			routeDoc("r", "["+toysRule+"]", "g"), denied,
		},
		"the route comes under the override, which is bound first": {
			docs(rate, gatewayDoc("g", "istio", "http"), routeDoc("r", "["+toysRule+"]"), rateTop(overriding(aLimit("b", ""))), rateOwn(limitsDoc(aLimit("c", "")))),
			routeDoc("r", "["+toysRule+"]", "g"), nil,
		},
		"the override comes before what was there": {
			docs(rate, gatewayDoc("g", "istio", "http"), routeDoc("r", "["+toysRule+"]", "g"), rateOwn(limitsDoc(aLimit("c", "")))),
			rateTop(overriding(aLimit("b", ""))), nil,
		},
		"a rule comes to the route, to which a lower limit is bound": {
			docs(rate, gatewayDoc("g", "istio", "http"), routeDoc("r", "["+toysRule+"]", "g"), rateTop(overriding(aLimit("b", ""))), rateOwn(limitsDoc(aLimit("a", onAssets)))),
			routeDoc("r", stores, "g"), denied,
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, overrideFindings(t, "dev", c.before, c.write))
			assert.Equal(t, warningsOf(c.want), overrideFindings(t, "boss", c.before, c.write), "who may override is warned")
		})
	}
}

// The traffic of a rule goes to one on which a lower limit comes first.
func TestLowerLimitTakesTrafficOfOverride(t *testing.T) {
	before := bindingWorld(rateTop(overriding(aLimit("b", onAssets))), rateOwn("defaults: {strategy: merge, "+limitsDoc(aLimit("a", onGet))+"}"))
	write := routeDoc("r", "["+strings.Replace(toysRule, "matches: [", "matches: [{path: {value: /assets/}}, ", 1)+"]", "g")
	assert.Contains(t, overrideFindings(t, "dev", before, write), "Deny OverrideEvaded limits.b")
	assert.Contains(t, overrideFindings(t, "boss", before, write), "Warn OverrideEvaded limits.b")
}

func TestUnboundOverrideMessage(t *testing.T) {
	v := world(t, bindingWorld(rateTop(overriding(aLimit("a", onAssets)))))
	c := change(v, read(t, v, routeDoc("r", "["+toysRule+", {matches: [{path: {value: /}}]}]", "g")))
	assert.Equal(t, []string{"Deny OverrideEvaded limits.a Rate infra/top: HTTPRoute app/r, HTTPRouteRule app/r#rule-2"}, findingsOf(t, evaluateAs(t, bossAndDev(), "dev", v, c), "Override"))
	assert.Equal(t, []string{"Warn OverrideEvaded limits.a Rate infra/top: HTTPRoute app/r, HTTPRouteRule app/r#rule-2"}, findingsOf(t, evaluateAs(t, bossAndDev(), "boss", v, c), "Override"))
}

// Hostnames alone take the override's limit from its rule.
func TestUnboundOverrideMessageForHostnames(t *testing.T) {
	const onHost = "{matches: [{path: {value: /assets/}}], hostnames: [a.acme.com]}"
	const lost = "OverrideEvaded limits.a Rate infra/top: HTTPRoute app/r, HTTPRouteRule app/r#rule-2" // the golden file tells why
	v := world(t, docs(rate, gatewayDoc("g", "istio", "http"), hosted("r", stores, "a.acme.com, b.acme.com"), rateTop(overriding(aLimit("a", onHost)))))
	for name, doc := range map[string]string{
		"the route gives one up":               hosted("r", stores, "b.acme.com"),
		"the listener has another one":         strings.Replace(gatewayDoc("g", "istio", "http"), "{name: http,", "{name: http, hostname: b.acme.com,", 1),
		"the match goes, and not the hostname": hosted("r", "["+toysRule+", {matches: [{path: {value: /}}]}]", "a.acme.com, b.acme.com"),
		"the match goes, and the hostname":     hosted("r", "["+toysRule+", {matches: [{path: {value: /}}]}]", "b.acme.com"),
	} {
		t.Run(name, func(t *testing.T) {
			write := change(v, read(t, v, doc))
			assert.Equal(t, []string{"Deny " + lost}, findingsOf(t, evaluateAs(t, bossAndDev(), "dev", v, write), "Override"))
			assert.Equal(t, []string{"Warn " + lost}, findingsOf(t, evaluateAs(t, bossAndDev(), "boss", v, write), "Override"))
		})
	}
	all := hosted("r", stores, "a.acme.com, b.acme.com, c.acme.com")
	assert.Empty(t, findingsOf(t, evaluateAs(t, bossAndDev(), "dev", v, change(v, read(t, v, all))), "Override"), "the hostname stays")
}

// A rule becomes one that an override's limit matches, behind one of a lower policy:
// it was in force before and bound to nothing there.
func TestOverrideMatchesAnotherRuleBehindLowerLimit(t *testing.T) {
	before := bindingWorld(rateTop(overriding(aLimit("b", onToys))), rateOwn(limitsDoc(aLimit("a", onAssets))))
	write := routeDoc("r", "["+toysRule+", {matches: [{path: {value: /assets/}}, {path: {value: /toys}, method: PUT}]}]", "g")
	assert.Equal(t, []string{"Deny OverrideWeakened limits.a"}, overrideFindings(t, "dev", before, write))
}

// The override is written as it was, and its own policy's default shadows it.
func TestOverrideBehindDefaultOfItsPolicy(t *testing.T) {
	before := bindingWorld(rateTop(overriding(aLimit("b", ""))))
	write := rateTop("defaults: {strategy: merge, " + limitsDoc(aLimit("a", "")) + "}\n" + overriding(aLimit("b", "")))
	assert.Equal(t, []string{"Deny OverrideRemoved limits.b"}, overrideFindings(t, "dev", before, write))
}
