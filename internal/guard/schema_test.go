package guard_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// oneOf is a schema of Paint that allows one of a and b, and three limits.
var oneOf = worlds.SchemaDoc("Paint", `
type: object
x-kubernetes-validations: [{rule: "!(has(self.a) && has(self.b))", message: "at most one of a and b"}]
properties:
  targetRefs: {type: array, items: {type: object, properties: {group: {type: string}, kind: {type: string}, name: {type: string}}}}
  defaults: &block
    type: object
    properties: &rules
      a: {type: integer}
      b: {type: integer}
      c: {type: integer}
      limits: {type: object, maxProperties: 3, additionalProperties: {type: integer}}
      strategy: {type: string}
  overrides: *block
  a: {type: integer}
  b: {type: integer}
  c: {type: integer}
  limits: {type: object, maxProperties: 3, additionalProperties: {type: integer}}
  strategy: {type: string}
`)

// invalid shows what a decision reports about schemas.
func invalid(t testing.TB, ev *guard.Decision) []string {
	t.Helper()
	return findingsOf(t, ev, "EffectiveInvalid")
}

func TestMergedSchemaViolations(t *testing.T) {
	gateways := docs(gatewayDoc("g", "istio", "http"), gatewayDoc("h", "istio", "http"))
	for sentence, c := range map[string]struct {
		world, write string
		want         []string
	}{
		"by the lower policy": {
			docs(oneOf, gateways, routeDoc("r", "[{}]", "g"), gatewayPolicy("defaults: {strategy: patch, a: 1}")), routePolicy("b: 1"),
			[]string{"Deny EffectiveInvalid Paint infra/top: Paint, HTTPRoute app/r rule-1, Gateway infra/g, Paint app/own"},
		},
		"by the higher policy": {
			docs(oneOf, gateways, routeDoc("r", "[{}]", "g"), routePolicy("b: 1")), gatewayPolicy("overrides: {strategy: patch, a: 1}"),
			[]string{"Warn EffectiveInvalid Paint app/own: Paint, HTTPRoute app/r rule-1, Gateway infra/g, Paint infra/top"},
		},
		"by the gateway that lets a route in": {
			docs(oneOf, listening(gatewayDoc("g", "istio", "http"), "http", "from: Same"), routeDoc("r", "[{}]", "g"), gatewayPolicy("defaults: {strategy: patch, a: 1}"), routePolicy("b: 1")), gatewayDoc("g", "istio", "http"),
			[]string{"Warn EffectiveInvalid Paint infra/top: Paint, HTTPRoute app/r rule-1, Gateway infra/g, Paint app/own"},
		},
		"by the higher policy, which others of its level do not fit either": {
			docs(oneOf, gateways, routeDoc("r", "[{}]", "g"), policyDoc("Paint", "infra", "more", toGateway+"defaults: {strategy: patch, b: 1}"), routePolicy("b: 1")), gatewayPolicy("overrides: {strategy: patch, a: 1}"),
			[]string{"Deny EffectiveInvalid Paint app/own: Paint, HTTPRoute app/r rule-1, Gateway infra/g, Paint infra/top"},
		},
		"by the higher policy, and a lower one of its namespace": {
			docs(oneOf, gateways, worlds.RouteTo("HTTPRoute", "infra", "r", "[{}]", worlds.ToGateway("g")), policyDoc("Paint", "infra", "own", toRoute+"b: 1")), gatewayPolicy("overrides: {strategy: patch, a: 1}"),
			[]string{"Deny EffectiveInvalid Paint infra/own: Paint, HTTPRoute infra/r rule-1, Gateway infra/g, Paint infra/top"},
		},
		"by the end of a higher policy": {
			docs(oneOf, gateways, routeDoc("r", "[{}]", "g"), policyDoc("Paint", "infra", "more", toGateway+"defaults: {strategy: patch, a: 1}"), gatewayPolicy("overrides: {strategy: atomic, c: 1}"), routePolicy("strategy: patch\nb: 1")), gatewayPolicy("defaults: {strategy: patch, c: 1}"),
			[]string{"Warn EffectiveInvalid Paint infra/more: Paint, HTTPRoute app/r rule-1, Gateway infra/g, Paint infra/top, Paint app/own"},
		},
		"by a route that comes to the gateway": {
			docs(oneOf, gateways, routeDoc("r", "[{}]", "h"), gatewayPolicy("defaults: {strategy: patch, a: 1}"), routePolicy("b: 1")), routeDoc("r", "[{}]", "g"),
			[]string{"Deny EffectiveInvalid Paint infra/top: Paint, HTTPRoute app/r rule-1, Gateway infra/g, Paint app/own"},
		},
		"on some paths": {
			docs(oneOf, gateways, routeDoc("r", "[{}, {}, {}]", "g"), gatewayPolicy("defaults: {strategy: patch, a: 1}")), routePolicy("b: 1"),
			[]string{"Deny EffectiveInvalid Paint infra/top: Paint, HTTPRoute app/r rule-1, Gateway infra/g, 2, Paint app/own"},
		},
		"in another way on each": {
			docs(oneOf, gateways, routeDoc("r", "[{}]", "g"), gatewayPolicy("defaults: {strategy: patch, a: 1, limits: {one: 1, two: 2}}")), routePolicy("b: 1\nlimits: {three: 3, four: 4}"),
			[]string{
				"Deny EffectiveInvalid Paint infra/top: Paint, HTTPRoute app/r rule-1, Gateway infra/g, spec.limits, 3, Paint app/own",
				"Deny EffectiveInvalid Paint infra/top: Paint, HTTPRoute app/r rule-1, Gateway infra/g, Paint app/own",
			},
		},
		"it was so before, and is no worse": {
			docs(oneOf, gateways, routeDoc("r", "[{}]", "g"), gatewayPolicy("defaults: {strategy: patch, a: 1}"), routePolicy("b: 1")), routePolicy("b: 2"),
			[]string{"Warn EffectiveInvalid Paint infra/top: Paint, HTTPRoute app/r rule-1, Gateway infra/g, Paint app/own"},
		},
		"it was so before, and is better": {
			docs(oneOf, gateways, routeDoc("r", "[{}]", "g"), gatewayPolicy("defaults: {strategy: patch, limits: {one: 1, two: 2}}"), routePolicy("limits: {three: 3, four: 4, five: 5}")),
			routePolicy("limits: {three: 3, four: 4}"),
			[]string{"Warn EffectiveInvalid Paint infra/top: Paint, HTTPRoute app/r rule-1, Gateway infra/g, spec.limits, 3, Paint app/own"},
		},
		"it was so before, and gets worse": {
			docs(oneOf, gateways, routeDoc("r", "[{}]", "g"), gatewayPolicy("defaults: {strategy: patch, limits: {one: 1, two: 2}}"), routePolicy("limits: {three: 3, four: 4}")),
			routePolicy("limits: {three: 3, four: 4, five: 5}"),
			[]string{"Deny EffectiveInvalid Paint infra/top: Paint, HTTPRoute app/r rule-1, Gateway infra/g, spec.limits, 3, Paint app/own"},
		},
		"it was so before, and something else is wrong now": {
			docs(oneOf, gateways, routeDoc("r", "[{}]", "g"), gatewayPolicy("defaults: {strategy: patch, a: 1, limits: {one: 1, two: 2}}"), routePolicy("b: 1")),
			routePolicy("b: 1\nlimits: {three: 3, four: 4}"),
			[]string{
				"Deny EffectiveInvalid Paint infra/top: Paint, HTTPRoute app/r rule-1, Gateway infra/g, spec.limits, 3, Paint app/own",
				"Warn EffectiveInvalid Paint infra/top: Paint, HTTPRoute app/r rule-1, Gateway infra/g, Paint app/own",
			},
		},
		"it is fixed":              {docs(oneOf, gateways, routeDoc("r", "[{}]", "g"), gatewayPolicy("defaults: {strategy: patch, a: 1}"), routePolicy("b: 1")), routePolicy("c: 1"), nil},
		"it fits":                  {docs(oneOf, gateways, routeDoc("r", "[{}]", "g"), gatewayPolicy("defaults: {strategy: patch, a: 1}")), routePolicy("c: 1"), nil},
		"a kind without a schema":  {docs(gateways, routeDoc("r", "[{}]", "g"), gatewayPolicy("defaults: {strategy: patch, a: 1}")), routePolicy("b: 1"), nil},
		"a policy that is alone":   {docs(oneOf, gateways, routeDoc("r", "[{}]", "g")), routePolicy("a: 1\nb: 1"), nil},
		"a route of no such paths": {docs(oneOf, gateways, gatewayPolicy("defaults: {strategy: patch, a: 1}")), routeDoc("r", "[{}]", "g"), nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, c.want, invalid(t, evaluate(t, world(t, c.world), c.write)))
		})
	}
}

// What only the paths are written of does not change what is in force.
func TestUnchangedSchemaViolationIsNotReported(t *testing.T) {
	v := world(t, docs(oneOf, gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"), gatewayPolicy("defaults: {strategy: patch, a: 1}"), routePolicy("b: 1")))
	assert.Empty(t, invalid(t, evaluate(t, v, routeDoc("r", "[{matches: [{path: {value: /x}}]}]", "g"))))
}

func TestProfileSetsActionOfSchemaViolations(t *testing.T) {
	profile := worlds.ProfileDoc("Paint", "blocks: {defaults: [defaults]}\nstrategy: {field: strategy, allowed: [patch]}\nactions: {EffectiveInvalid: Audit}")
	v := world(t, docs(profile, oneOf, gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"), routePolicy("b: 1"), gatewayPolicy("defaults: {a: 1}")))
	ev := evaluate(t, v.With(snapshot.Delete(paintRef("app", "own"))), routePolicy("b: 1"))
	require.Len(t, ev.Audits, 1)
	assert.Equal(t, api.ReasonEffectiveInvalid, ev.Audits[0].Code)
	ev = evaluate(t, v.With(snapshot.Delete(routeRef("r"))), routeDoc("r", "[{}]", "g"))
	require.Len(t, ev.Audits, 1, "whatever is written")
	ev = evaluate(t, v, routePolicy("b: 2"))
	assert.Empty(t, ev.Audits)
	assert.Len(t, invalid(t, ev), 1, "an existing violation is reported")
}

func TestUncheckedSchemaIsReported(t *testing.T) {
	v := world(t, docs(worlds.SchemaDoc("Paint", "oneOf: [{properties: {a: {}}}]"), gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"),
		gatewayPolicy("defaults: {strategy: patch, a: 1}")))
	ev := evaluate(t, v, routePolicy("b: 1"))
	assert.False(t, ev.Denied())
	var reported []string
	for _, f := range ev.Warnings {
		if f.Code == api.ReasonNotRead {
			reported = append(reported, f.What)
		}
	}
	require.Len(t, reported, 1)
	assert.Contains(t, reported[0], "effective policies of Paint.example.com are not validated against its CRD: the schema is not structural: ")
}

func TestManySchemaViolationsAreCounted(t *testing.T) {
	fields, rules, lower, higher := "", "", "", ""
	for i := range 25 {
		fields += fmt.Sprintf("  a%02d: {type: integer}\n  b%02d: {type: integer}\n", i, i)
		rules += fmt.Sprintf("- {rule: \"!(has(self.a%02d) && has(self.b%02d))\", message: \"not both of %02d\"}\n", i, i, i)
		lower += fmt.Sprintf("a%02d: 1\n", i)
		higher += fmt.Sprintf(", b%02d: 1", i)
	}
	schema := worlds.SchemaDoc("Paint", "type: object\nx-kubernetes-validations:\n"+rules+"properties:\n"+fields+"  defaults: {type: object, x-kubernetes-preserve-unknown-fields: true}\n")
	v := world(t, docs(schema, gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"), gatewayPolicy("defaults: {strategy: patch"+higher+"}")))
	all := invalid(t, evaluate(t, v, routePolicy(lower)))
	require.Len(t, all, 21)
	assert.Contains(t, all, "Deny EffectiveInvalid: 5")
	assert.Contains(t, all[1], ", 00, ")
}

func TestSchemaCheckTimeout(t *testing.T) {
	v := world(t, docs(oneOf, gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"), gatewayPolicy("defaults: {strategy: patch, a: 1}")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(ctx, v, change(v, read(t, v, routePolicy("b: 1"))), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"Deny TooMuch"}, codes(t, ev)[:1])
}

// A definition that is edited changes what is valid.
func TestStricterDefinitionIsEvaluated(t *testing.T) {
	objects := docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"), gatewayPolicy("defaults: {strategy: patch, a: 1}"), routePolicy("b: 1"))
	loose, strict := world(t, docs(worlds.SchemaDoc("Paint", "type: object\nproperties: {a: {type: integer}, b: {type: integer}}"), objects)), world(t, docs(oneOf, objects))
	definition := &policykind.Definition{}
	definition.Name = "paints.example.com"
	change := guard.Change{Operation: guard.Update, Before: definition, After: definition}
	for sentence, c := range map[string]struct {
		before, after *snapshot.View
		denied        bool
		want          int
	}{
		"it allows less":             {loose, strict, true, 1},
		"it allows what it did":      {strict, world(t, docs(oneOf, objects)), false, 1},
		"it allows more":             {strict, loose, false, 0},
		"what is wrong is not asked": {world(t, objects), loose, false, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			g := &guard.Guard{Engine: effective.NewEngine(), KindReader: rereading{after: c.after}}
			ev, err := g.Evaluate(t.Context(), c.before, change, nil)
			require.NoError(t, err)
			assert.Equal(t, c.denied, ev.Denied())
			assert.Len(t, invalid(t, ev), c.want)
		})
	}
}
