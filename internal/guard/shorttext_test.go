package guard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/test/worlds"
)

// The short form of a message has the reason, and leaves out details that do not fit into a
// warning.
func TestShortTexts(t *testing.T) {
	long := strings.Repeat("x", 120)
	condition := func(text string) string {
		return "overrides: {strategy: patch, when: 'spec.a > 50" + text + "', a: 50}"
	}
	schema := func(message string) string { return strings.Replace(oneOf, "at most one of a and b", message, 1) }
	merged := func(message string) string {
		return docs(schema(message), base(gatewayPolicy("defaults: {strategy: patch, a: 1}")))
	}
	for name, c := range map[string]struct {
		world, write string
		code         api.ReasonCode
		want         string
	}{
		"a condition that fits":         {base(gatewayPolicy(condition(""))), routePolicy("a: 100"), api.ReasonConstraintViolated, "a is not allowed by Paint infra/top on Gateway infra/g (when: spec.a > 50)"},
		"a condition that does not fit": {base(gatewayPolicy(condition(" && \"" + long + long + "\" != \"\""))), routePolicy("a: 100"), api.ReasonConstraintViolated, "a is not allowed by Paint infra/top on Gateway infra/g"},
		"a merge": {
			merged("no"), routePolicy("strategy: patch\nb: 1"), api.ReasonEffectiveInvalid,
			"the effective Paint on HTTPRoute app/r rule-1 of Gateway infra/g and 1 more path violates its schema: spec: no; it is merged from Paint infra/top and Paint app/own",
		},
		"a merge with a long message": {
			merged(long), routePolicy("strategy: patch\nb: 1"), api.ReasonEffectiveInvalid,
			"the effective Paint on HTTPRoute app/r rule-1 of Gateway infra/g and 1 more path violates its schema: spec: " + long,
		},
		"a merge with a longer message": {
			merged(long + long), routePolicy("strategy: patch\nb: 1"), api.ReasonEffectiveInvalid, "the effective Paint violates its schema: spec: " + long + long,
		},
		"why rules are lost, without details": {
			docs(worlds.ProfileDoc("Seal", "controllers: [example.com/own]\n"), gatewayClass("own", "example.com/own"), gatewayClass("nginx", "gateway.nginx.org/nginx-gateway-controller"),
				gatewayDoc("g", "own", "http"), gatewayDoc("h", "nginx", "http"), routeDoc("r", "[{}]", "g"), policyDoc("Seal", "app", "own", "targetRefs: [{kind: HTTPRoute, name: r}]\na: 1")),
			routeDoc("r", "[{}]", "h"), api.ReasonRulesLost, "HTTPRoute app/r loses a of Seal app/own on 1 path: policies of kind Seal are not read on Gateway infra/h",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ev := evaluate(t, world(t, c.world), c.write)
			all := slices.Concat(ev.Denials, ev.Warnings)
			i := slices.IndexFunc(all, func(f guard.Finding) bool { return f.Code == c.code })
			if assert.GreaterOrEqual(t, i, 0) {
				assert.Equal(t, c.want, all[i].Short)
			}
		})
	}
}

func gatewayClass(name, controller string) string {
	return "kind: GatewayClass\nmetadata: {name: " + name + "}\nspec: {controllerName: " + controller + "}"
}
