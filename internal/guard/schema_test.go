package guard_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
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

// Large policies of others below cannot make a write above them too much: how they merge
// with it is checked up to a limit, and what the write breaks without them is denied.
func TestLargeLowerPoliciesAreNotChecked(t *testing.T) {
	profile := worlds.ProfileDoc("Paint", "blocks: {defaults: [defaults], overrides: [overrides]}\nstrategy: {field: strategy, allowed: [patch]}")
	lower := func(text string) string {
		return policyDoc("Paint", "app", "own", "targetRefs: [{kind: HTTPRoute, name: r}]\nb: 1\ntext: "+text)
	}
	for name, test := range map[string]struct {
		text, write string
		reports     []string
	}{
		"a large one":                    {strings.Repeat("x", 3<<20), "defaults: {strategy: patch, a: 1}", []string{"Warn NotRead"}},
		"a large one, and its own fault": {strings.Repeat("x", 3<<20), "defaults: {strategy: patch, a: 1}\noverrides: {strategy: patch, c: 1, b: 1}", []string{"Deny EffectiveInvalid", "Warn NotRead"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := world(t, docs(profile, oneOf, gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"), lower(test.text)))
			got := codes(t, evaluate(t, v, gatewayPolicy(test.write)))
			got = slices.DeleteFunc(got, func(c string) bool {
				return !strings.HasSuffix(c, "EffectiveInvalid") && !strings.HasSuffix(c, "NotRead")
			})
			slices.Sort(got)
			assert.Equal(t, test.reports, slices.Compact(got))
		})
	}
}
