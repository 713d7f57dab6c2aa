package guard_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
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

const twoListeners = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: g}
spec:
  gatewayClassName: istio
  listeners:
  - {name: one, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - {name: two, port: 80, protocol: HTTP, hostname: shop.example.com, allowedRoutes: {namespaces: {from: All}}}
`

func listenerRoute(name, section string, day int, path string) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: app, name: %s, creationTimestamp: "2025-01-%02dT00:00:00Z"}
spec:
  parentRefs: [{namespace: infra, name: g, sectionName: %s}]
  hostnames: [shop.example.com]
  rules: [{matches: [{path: {value: /%s}}]}]
`, name, day, section, path)
}

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
		"RulesLost, how much of a list remains": {
			func(v string) string {
				return base(gatewayPolicy("defaults: {strategy: patch, b: [" + strings.Repeat("1, ", len(v)) + "1]}"))
			}, routePolicy("strategy: patch\nb: [1]"), "replaces b of Paint infra/top"},
		"Unreached, a policy": {
			func(v string) string {
				return docs(twoListeners, listenerRoute("older", "two", 1, v), listenerRoute("newer", "one", 2, v))
			}, policyDoc("Paint", "infra", "top", "targetRefs: [{kind: Gateway, name: g, sectionName: one}]\na: 1"), "the policy has no effect: no request reaches"},
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
			require.NotEmpty(t, hash)
			return hash
		}
		assert.Equal(t, hash("guessed", "overrides: {strategy: patch, b: 1}"), hash("secret", "overrides: {strategy: patch, b: 1}"))
		assert.NotEqual(t, hash("guessed", "overrides: {strategy: patch, b: 1}"), hash("guessed", "overrides: {strategy: patch, b: 2}"), "what is written has a part in it")
	})
}

// What a user is answered who writes a policy does not depend on whether its values are
// those of policies that the user may not read: no guess is confirmed.
func TestAnswersDoNotConfirmGuessesInRandomWorlds(t *testing.T) {
	said := 0
	for seed := range rounds(t, 200) {
		d := newGenerator(seed)
		kinds := d.kinds()
		w := newPlainWorld(d, kinds)
		p := d.policy(kinds)
		p.Namespace = "app"
		n := 100
		guessed, secret := w, w
		for _, o := range all[plainPolicy](w) {
			guessed = guessed.with(o.key(), valued(o, func() int { return 1 }))
			secret = secret.with(o.key(), valued(o, func() int {
				if n++; o.Namespace != "app" {
					return n
				}
				return 1
			}))
		}
		c := plainChange{after: valued(p, func() int { return 1 })}
		if o, ok := get[plainPolicy](guessed, p.key()); ok {
			c.before = o
		}
		answer := func(w plainWorld) []string {
			v := w.view(t)
			g := &guard.Guard{Engine: effective.NewEngine(), BlastRadius: 1}
			ev, err := g.Evaluate(t.Context(), v, c.change(t, v), nil)
			require.NoError(t, err)
			said += len(messages(ev))
			return append(messages(ev), fmt.Sprint(ev.Changes))
		}
		require.Equal(t, answer(guessed), answer(secret), "seed %d: %s\nin\n%s", seed, c, w)
	}
	assert.Greater(t, said, 200)
}

// valued is a policy without conditions and with other values.
func valued(p plainPolicy, value func() int) plainPolicy {
	p = copied(p)
	for _, b := range []*plainBlock{&p.Defaults, &p.Bare, &p.Overrides} {
		b.When = ""
		for _, rule := range slices.Sorted(maps.Keys(b.Rules)) {
			b.Rules[rule] = value()
		}
	}
	return p
}
