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
