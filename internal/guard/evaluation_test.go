package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
)

const (
	toGateway = "targetRefs: [{kind: Gateway, name: g}]\n"
	toRoute   = "targetRefs: [{kind: HTTPRoute, name: r}]\n"
	toRule    = "targetRefs: [{kind: HTTPRoute, name: r, sectionName: rule-1}]\n"
)

func gatewayPolicy(spec string) string { return policyDoc("Paint", "infra", "top", toGateway+spec) }

func routePolicy(spec string) string { return policyDoc("Paint", "app", "own", toRoute+spec) }

// base is a gateway g with a route r of two rules on it.
func base(more ...string) string {
	return docs(append([]string{gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}, {matches: [{path: {value: /x}}]}]", "g")}, more...)...)
}

const clip = "overrides: {strategy: patch, when: 'spec.a > 50', a: 50}"

// SEMANTICS section 8: writes of gateways and routes, and deletions.
func TestOtherWrites(t *testing.T) {
	paint := base(gatewayPolicy("overrides: {strategy: patch, a: 1}"), routePolicy("a: 2"))
	t.Run("a gateway that lets routes in", func(t *testing.T) {
		v := world(t, paint).With(put(t, world(t, paint), gatewayDoc("g", "istio")))
		assert.Equal(t, []string{
			"Warn BlastRadius: Gateway infra/g, Paint, 2 paths, 1 namespace",
			"Warn Overridden a Paint app/own: 2 paths, Paint infra/top",
		}, findings(t, evaluate(t, v, gatewayDoc("g", "istio", "http"))))
	})
	t.Run("a policy deleted", func(t *testing.T) {
		ev := deleted(t, world(t, paint), paintRef("infra", "top"))
		assert.Equal(t, []string{
			"Deny OverrideRemoved a Paint infra/top: 2 paths",
		}, findings(t, ev))
		assert.Equal(t, api.Changes{Paths: 2, Namespaces: 1}, ev.Changes)
		assert.Nil(t, ev.After.Get(paintRef("infra", "top")))
	})
	t.Run("a rule inserted in front takes requests from one with the same policies", func(t *testing.T) {
		ev := evaluate(t, world(t, paint), routeDoc("r", "[{matches: [{path: {value: /new}}]}, {}, {matches: [{path: {value: /x}}]}]", "g"))
		assert.Equal(t, api.Changes{}, ev.Changes)
	})
	t.Run("a route is warned of conditions that it brings, not of existing ones", func(t *testing.T) {
		v := world(t, base(gatewayPolicy("overrides: {strategy: patch, when: 'spec.c.max > 50', x: 1}"), routePolicy("c: {unit: s}")))
		assert.Equal(t, []string{"Warn ConditionSkipped"}, codes(t, evaluate(t, v.With(del(routeRef("r"))), routeDoc("r", "[{}]", "g"))))
		assert.Empty(t, codes(t, evaluate(t, v, routeDoc("r", "[{}]", "g"))), "the second rule is gone, to one with the same policies")
	})
}

// Losses of others are reported one by one up to a number.
func TestManyOtherLossesAreCounted(t *testing.T) {
	spec := ""
	for _, name := range "abcdefghijklmopqrstuvwxz" { // 24 rules; n and y are booleans
		spec += string(name) + ": 1\n"
	}
	ev := evaluate(t, world(t, base(routePolicy(spec))), gatewayPolicy("overrides: {strategy: patch, "+strings.NewReplacer(": 1\n", ": 2, ").Replace(spec)+"}"))
	assert.Len(t, ev.Warnings, 22)
	assert.Contains(t, findings(t, ev), "Warn Overridden: 4")

	ev = evaluate(t, world(t, base(routePolicy(spec))), gatewayPolicy("overrides: {strategy: atomic, zz: 1}"))
	var shown []string
	for _, f := range guard.OmitRepeated(ev.Warnings) {
		if f.Code == api.ReasonOverridden {
			shown = append(shown, finding(f))
		}
	}
	assert.Equal(t, []string{"Warn Overridden Paint app/own: 24 rules, 2 paths, Paint infra/top"}, shown)
	assert.Len(t, ev.Warnings, 22, "20 of the rules, all of them, and BlastRadius")
}
