package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/worlds"
)

// quoting is a schema whose messages quote values.
var quoting = worlds.SchemaDoc("Paint", `
type: object
x-kubernetes-validations:
- {rule: "!(has(self.a) && has(self.b))", message: "at most one of a and b", messageExpression: "'not a beside ' + string(self.b)"}
- {rule: "!(has(self.a) && has(self.b)) || self.m[self.b] == self.a", message: "m has b"}
properties:
  targetRefs: {type: array, items: {type: object, properties: {group: {type: string}, kind: {type: string}, name: {type: string}}}}
  defaults: &block
    type: object
    properties: {a: {type: string}, b: {type: string}, m: {type: object, additionalProperties: {type: string}}, strategy: {type: string}}
  overrides: *block
  a: {type: string}
  b: {type: string}
  m: {type: object, additionalProperties: {type: string}}
  strategy: {type: string}
`)

// What a write is answered depends on no value of another object, save the verdict of
// a condition or schema and the value that a conditional override sets: worlds that
// differ in such a value alone get the same texts.
func TestMessagesDoNotDiscloseValues(t *testing.T) {
	const (
		below = "strategy: patch\nb: %s\nc: 1"
		above = "defaults: {strategy: patch, b: %s}"
	)
	gw := func(when string) string {
		return gatewayPolicy("overrides: {strategy: patch, when: '" + when + "', a: 50}")
	}
	for name, c := range map[string]struct {
		world func(value string) string
		write string
		// has is a part of the texts.
		has string
	}{
		"EffectiveInvalid, the tenant reads the platform": {
			func(v string) string { return docs(quoting, base(gatewayPolicy(fmt.Sprintf(above, v)))) }, routePolicy("strategy: patch\na: x\nm: {x: z}"), "spec: at most one of a and b"},
		"EffectiveInvalid, the platform reads the tenant": {
			func(v string) string { return docs(quoting, base(routePolicy("strategy: patch\nm: {x: z}\nb: "+v))) }, gatewayPolicy("overrides: {strategy: patch, a: x}"), "rule cannot be evaluated: m has b"},
		"ConditionSkipped, a conversion": {
			func(v string) string { return base(routePolicy(fmt.Sprintf(below, v))) }, gw("duration(spec.b) > duration(\"1s\")"), "the reason is not shown"},
		"ConditionSkipped, a key": {
			func(v string) string { return base(routePolicy(fmt.Sprintf(below, v))) }, gw("spec[spec.b] > 1"), "refers to a key, which is not set"},
		"ConditionSkipped, a key in a loop": {
			func(v string) string { return base(routePolicy(fmt.Sprintf(below, v))) }, gw("[1].exists(i, spec[spec.b] > i)"), "the reason is not shown"},
		"ConstraintViolated, whose value is overridden itself": {
			func(v string) string {
				return base(gw("spec.a > 50"), policyDoc("Paint", "infra", "above", toGateway+"overrides: {strategy: patch, a: "+v+"}"))
			}, routePolicy("strategy: patch\na: 100"), "it would be replaced by the value of Paint infra/above"},
		"TriggerUnmatched": {
			func(v string) string {
				return docs(rate, gatewayDoc("g", "istio", "http"), routeDoc("a", "[{matches: [{path: {value: /"+v+"}}]}]", "g"))
			}, rateTop(limitsDoc(aLimit("a", "{matches: [{path: {value: /toyz}}]}"))), "TriggerUnmatched"},
		"LimitWidened": {
			func(v string) string {
				return docs(rate, gatewayDoc("g", "istio", "http"), routeDoc("a", "[{matches: [{path: {value: /toyz}}, {path: {value: /"+v+"}}]}]", "g"))
			}, rateTop(limitsDoc(aLimit("a", "{matches: [{path: {value: /toyz}}]}"))), "limits.a also applies to (not shown)"},
		"Overridden": {
			func(v string) string { return base(gatewayPolicy("overrides: {strategy: patch, b: " + v + "}")) }, routePolicy("strategy: patch\nb: 1"), "b has no effect"},
		"OverrideRemoved": {
			func(v string) string { return base(gatewayPolicy("overrides: {strategy: patch, b: " + v + "}")) }, gatewayPolicy("defaults: {strategy: patch, c: 1}"), "OverrideRemoved"},
	} {
		t.Run(name, func(t *testing.T) {
			want := messages(evaluate(t, world(t, c.world("guessed")), c.write))
			assert.Contains(t, strings.Join(want, "\n"), c.has)
			for _, value := range []string{"secret", "other"} {
				assert.Equal(t, want, messages(evaluate(t, world(t, c.world(value)), c.write)))
			}
		})
	}
	t.Run("BlastRadius", func(t *testing.T) {
		hash := func(value, write string) string {
			v := world(t, base(shopRoute("g"), routePolicy("strategy: patch\nb: "+value)))
			_, hash := acknowledged(t, v, change(v, read(t, v, gatewayPolicy(write))), 1, "")
			require.Len(t, hash, 16)
			return hash
		}
		assert.Equal(t, hash("guessed", "overrides: {strategy: patch, b: 1}"), hash("secret", "overrides: {strategy: patch, b: 1}"))
		assert.NotEqual(t, hash("guessed", "overrides: {strategy: patch, b: 1}"), hash("guessed", "overrides: {strategy: patch, b: 2}"), "what is written has a part in it")
	})
}
