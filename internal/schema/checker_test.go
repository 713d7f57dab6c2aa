package schema_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/schema"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/worlds"
)

// refs are the target references in the schemas of the tests.
const refs = `
  targetRefs:
    type: array
    items: {type: object, required: [group, kind, name], properties: {group: {type: string}, kind: {type: string}, name: {type: string}, sectionName: {type: string}}}
`

// named is a kind whose rules are limits and colors by name, and any other field.
var named = worlds.ProfileDoc("Paint", `
blocks: {defaults: [defaults], overrides: [overrides], when: when}
strategy: {field: strategy, bareField: strategy, allowed: [atomic, merge]}
unset: [unset]
rules: [limits.*, deep.*.*]
`)

// newView returns a view with policies on a gateway and on a route on it, with the
// specs gw and route. An empty spec is no policy.
func newView(t testing.TB, profile, schema, gw, route string) *snapshot.View {
	t.Helper()
	all := []string{worlds.GatewayDoc("g", "istio", "http"), worlds.RouteDoc("r", "[{}]", "g")}
	if profile != "" {
		all = append(all, profile)
	}
	if schema != "" {
		all = append(all, worlds.SchemaDoc("Paint", schema))
	}
	if gw != "" {
		all = append(all, worlds.PolicyDoc("Paint", "infra", "high", "targetRefs: [{kind: Gateway, name: g}]\n"+gw))
	}
	if route != "" {
		all = append(all, worlds.PolicyDoc("Paint", "app", "low", "targetRefs: [{kind: HTTPRoute, name: r}]\n"+route))
	}
	return worlds.World(t, worlds.Docs(all...))
}

func unlimited() *effective.Budget { return effective.NewBudget(context.Background(), math.MaxUint64) }

// only returns the one effective policy of a view.
func only(t testing.TB, v *snapshot.View) *effective.Effective {
	t.Helper()
	var out []*effective.Effective
	require.NoError(t, effective.NewEngine().Walk(v, effective.Scope{All: true}, false, unlimited(), func(e *effective.Effective) error {
		out = append(out, e)
		return nil
	}))
	require.Len(t, out, 1)
	return out[0]
}

func verdict(t testing.TB, v *snapshot.View) schema.Verdict {
	t.Helper()
	out, err := schema.NewChecker(true).Check(only(t, v), unlimited())
	require.NoError(t, err)
	return out
}

// texts returns the messages of a verdict.
func texts(v schema.Verdict) []string {
	var out []string
	for _, p := range v.Problems {
		out = append(out, p.Message)
	}
	return out
}

type world struct {
	profile, schema, gateway, route string
	want                            []string
	// unchecked is a part of why something was not checked.
	unchecked string
}

func check(t *testing.T, tests map[string]world) {
	t.Helper()
	for name, w := range tests {
		t.Run(name, func(t *testing.T) {
			v := newView(t, w.profile, w.schema, w.gateway, w.route)
			for _, p := range []string{"infra/high", "app/low"} {
				requireValid(t, v, p)
			}
			got := verdict(t, v)
			assert.Equal(t, w.want, texts(got))
			if w.unchecked == "" {
				assert.Empty(t, got.Unchecked)
			} else {
				assert.Contains(t, got.Unchecked, w.unchecked)
				messages.Golden(t, got.Unchecked)
			}
		})
	}
}

func requireValid(t testing.TB, v *snapshot.View, key string) {
	t.Helper()
	for o := range v.Objects(v.Kinds()[1].Ref()) {
		p, ok := o.(*policykind.Policy)
		require.True(t, ok)
		if p.Ref().Key() == key {
			require.NoError(t, p.Invalid)
		}
	}
}

// specWith is a schema of spec with target references, fields and more.
func specWith(fields, more string) string {
	return fmt.Sprintf("type: object\nrequired: [targetRefs]\n%s\nproperties:%s%s", more, refs, fields)
}

const (
	bareAB = `
  a: {type: string}
  b: {type: string}
  c: {type: integer}
  defaults: {type: object, x-kubernetes-preserve-unknown-fields: true}
  overrides: {type: object, x-kubernetes-preserve-unknown-fields: true}
  strategy: {type: string}
  unset: {type: array, items: {type: string}}
`
	oneOfAB   = "oneOf:\n- {required: [a]}\n- {required: [b]}"
	atMostOne = `x-kubernetes-validations: [{rule: "!(has(self.a) && has(self.b))", message: "at most one of a and b"}]`
)

func TestMergeCombinesOneOfMembers(t *testing.T) {
	oneOf := `"spec" must validate one and only one schema (oneOf). Found more than one valid alternative`
	check(t, map[string]world{
		"a default and a bare rule": {
			schema: specWith(bareAB, oneOfAB), gateway: "defaults: {strategy: patch, a: x}", route: "b: w", want: []string{oneOf},
		},
		"an override and a bare rule": {
			schema: specWith(bareAB, oneOfAB), gateway: "overrides: {strategy: patch, a: x}", route: "b: w", want: []string{oneOf},
		},
		"with the field of a third policy": {
			schema: specWith(bareAB, oneOfAB), gateway: "overrides: {strategy: patch, c: 1}\ndefaults: {strategy: patch, a: x}", route: "b: w", want: []string{oneOf},
		},
		"an atomic override replaces the other": {
			schema: specWith(bareAB, oneOfAB), gateway: "overrides: {a: x}", route: "b: w",
		},
		"an override unsets the other with null": {
			schema: specWith(bareAB, oneOfAB), gateway: "overrides: {strategy: patch, a: x, b: null}", route: "b: w",
		},
		"an override unsets the only one with null": {
			schema: specWith(bareAB, oneOfAB), gateway: "overrides: {strategy: patch, b: null, c: 1}", route: "b: w",
			want: []string{`"spec" must validate one and only one schema (oneOf). Found none valid`, "spec.a: required value"},
		},
		"both set the same one": {
			schema: specWith(bareAB, oneOfAB), gateway: "defaults: {strategy: patch, a: x}", route: "a: w",
		},
		"in CEL": {
			schema: specWith(bareAB, atMostOne), gateway: "defaults: {strategy: patch, a: x}", route: "b: w", want: []string{"spec: at most one of a and b"},
		},
		"in CEL of a named kind": {
			profile: named, schema: specWith(bareAB, atMostOne), gateway: "defaults: {strategy: merge, a: x}", route: "b: w", want: []string{"spec: at most one of a and b"},
		},
		"in CEL, with a message about another field": {
			schema:  specWith(bareAB, `x-kubernetes-validations: [{rule: "!(has(self.a) && has(self.b))", messageExpression: "'not both, with c ' + string(self.c)"}]`),
			gateway: "defaults: {strategy: patch, a: x}", route: "b: w\nc: 7", want: []string{"spec: not both, with c 7"},
		},
		"in CEL, and no rule is broken": {
			schema: specWith(bareAB, atMostOne), gateway: "defaults: {strategy: patch, a: x}", route: "c: 1",
		},
		"unset leaves an invalid rest": {
			profile: named, schema: specWith(bareAB, `x-kubernetes-validations: [{rule: "has(self.a) == has(self.b)", message: "both or none"}]`),
			gateway: "defaults: {strategy: merge, a: x, b: w}", route: "unset: [b]", want: []string{"spec: both or none"},
		},
		"a problem of one policy by itself is ignored": {
			schema: specWith(bareAB, atMostOne), gateway: "defaults: {strategy: patch, a: x, b: w}", route: "c: 1",
		},
		"unless the other contributes to it": {
			schema: specWith(bareAB, atMostOne), gateway: "defaults: {strategy: patch, a: x, b: w}", route: "b: z", want: []string{"spec: at most one of a and b"},
		},
		"maps of both are merged at depth": {
			schema:  specWith("  m: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {deep: {type: object, maxProperties: 1, additionalProperties: {type: string}}}}\n", ""),
			gateway: "defaults: {strategy: patch, m: {deep: {a: x}}}", route: "m: {deep: {b: x}, o: 1}", want: []string{"spec.m.deep: must have at most 1 item"},
		},
		"a single block that is in force is not checked": {
			schema: specWith(bareAB, atMostOne), gateway: "a: x\nb: w", route: "",
		},
	})
}

func TestSchemaDefaultsAreApplied(t *testing.T) {
	fields := bareAB + "  mode: {type: string, default: soft}\n"
	rule := func(text string) string {
		return fmt.Sprintf(`x-kubernetes-validations: [{rule: %q, message: wrong}]`, text)
	}
	check(t, map[string]world{
		"a default of the schema makes it valid": {
			schema:  specWith(fields, rule("!(has(self.a) && has(self.b)) || has(self.mode) && self.mode == 'soft'")),
			gateway: "defaults: {strategy: patch, a: x}", route: "b: w",
		},
		"an existing value is kept": {
			schema:  specWith(fields, rule("!(has(self.a) && has(self.b)) || self.mode == 'soft'")),
			gateway: "defaults: {strategy: patch, a: x}", route: "b: w\nmode: hard", want: []string{"spec: wrong"},
		},
		"a null that is not nullable is pruned": {
			profile: named,
			schema:  specWith(bareAB+"  limits: {type: object, additionalProperties: {type: object, properties: {x: {type: string}}}}\n", rule("self.limits.all(k, !has(self.limits[k].x))")),
			gateway: "defaults: {strategy: merge, limits: {one: {x: null}}}", route: "limits: {two: {}}",
		},
	})
}

func TestCheckDoesNotModifySpec(t *testing.T) {
	schema := specWith(bareAB+"  limits: {type: object, maxProperties: 2, additionalProperties: {type: object, properties: {unit: {type: string, default: s}}}}\n", "")
	v := newView(t, named, schema, "defaults: {strategy: merge, limits: {one: {}}}", "limits: {two: {}}")
	e := only(t, v)
	assert.Empty(t, verdict(t, v).Problems)
	assert.Equal(t, map[string]any{"limits": map[string]any{"one": map[string]any{}, "two": map[string]any{}}}, e.Spec())
}

func TestCountLimits(t *testing.T) {
	limits := func(more string) string {
		return specWith("  limits: {type: object, "+more+"additionalProperties: {type: integer}}\n", "")
	}
	check(t, map[string]world{
		"too many in a map": {
			profile: named, schema: limits("maxProperties: 2, "), gateway: "defaults: {strategy: merge, limits: {one: 1, two: 2}}", route: "limits: {three: 3}",
			want: []string{"spec.limits: must have at most 2 items"},
		},
		"at the maximum": {
			profile: named, schema: limits("maxProperties: 3, "), gateway: "defaults: {strategy: merge, limits: {one: 1, two: 2}}", route: "limits: {three: 3}",
		},
		"too few in a map": {
			profile: named, schema: limits("minProperties: 2, "), gateway: "defaults: {strategy: merge, limits: {one: 1, two: 2}}", route: "unset: [limits.one]",
			want: []string{"spec.limits: spec.limits in body should have at least 2 properties"},
		},
		"too many among the leaves": {
			schema: limits("maxProperties: 1, "), gateway: "defaults: {strategy: patch, limits: {one: 1}}", route: "limits: {two: 2}",
			want: []string{"spec.limits: must have at most 1 item"},
		},
		"a map that is one value": {
			profile: worlds.ProfileDoc("Paint", "blocks: {defaults: [defaults]}\nstrategy: {field: strategy, allowed: [atomic, patch]}\nwhole: [limits]"),
			schema:  limits("maxProperties: 1, "), gateway: "defaults: {strategy: patch, limits: {one: 1}}", route: "other: 1",
		},
		"a rule about the whole map": {
			profile: named, schema: limits(`maxProperties: 9, x-kubernetes-validations: [{rule: "self.all(k, self[k] < 9) && self.size() < 2", messageExpression: "'there are ' + string(self.size())"}], `),
			gateway: "defaults: {strategy: merge, limits: {one: 1}}", route: "limits: {two: 2}",
			want: []string{"spec.limits: there are 2"},
		},
		"a CEL rule about one limit is not checked": {
			profile: named, schema: specWith(`  limits: {type: object, additionalProperties: {type: integer, x-kubernetes-validations: [{rule: "self < 2"}]}}`+"\n", ""),
			gateway: "defaults: {strategy: merge, limits: {one: 1}}", route: "limits: {two: 2}",
		},
	})
}

func TestSplitLists(t *testing.T) {
	listed := worlds.ProfileDoc("Paint", "blocks: {defaults: [defaults]}\nstrategy: {field: strategy, allowed: [atomic, patch]}\nlists: [{path: items, key: name}]")
	items := func(more string) string {
		return specWith("  items: {type: array, "+more+"items: {type: object, properties: {name: {type: string}, port: {type: integer}, a: {type: string}, b: {type: string}}}}\n", "")
	}
	check(t, map[string]world{
		"too many items": {
			profile: listed, schema: items("maxItems: 1, "), gateway: "defaults: {strategy: patch, items: [{name: one}]}", route: "items: [{name: two}]",
			want: []string{"spec.items: must have at most 1 item"},
		},
		"two items with one key of the schema": {
			profile: listed, schema: items("x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [port], "),
			gateway: "defaults: {strategy: patch, items: [{name: one, port: 1}]}", route: "items: [{name: two, port: 1}]",
			want: []string{`spec.items[1]: Duplicate value: {"port":1}`},
		},
		"a rule about the list": {
			profile: listed, schema: items(`maxItems: 9, x-kubernetes-validations: [{rule: "self.exists_one(i, has(i.a))", message: "one with a"}], `),
			gateway: "defaults: {strategy: patch, items: [{name: one, a: x}]}", route: "items: [{name: two, a: x}]", want: []string{"spec.items: one with a"},
		},
		"two fields of one item": {
			profile: listed,
			schema:  specWith(`  items: {type: array, items: {type: object, properties: {name: {type: string}, a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: "!has(self.a) || !has(self.b)", message: "not both"}]}}`+"\n", ""),
			gateway: "defaults: {strategy: patch, items: [{name: one, a: x}]}", route: "items: [{name: one, b: x}]", want: []string{"spec.items[0]: not both"},
		},
	})
}

func TestLocationOfEffectiveSpec(t *testing.T) {
	inDefault := worlds.ProfileDoc("Paint", "content: default\nstrategy: {allowed: [patch]}")
	onlyBlocks := worlds.ProfileDoc("Paint", "blocks: {defaults: [default], overrides: [override]}\nstrategy: {field: strategy, allowed: [merge]}")
	block := "{type: object, properties: {a: {type: string}, b: {type: string}, strategy: {type: string}}, required: [strategy], maxProperties: 2, " + atMostOne + "}"
	check(t, map[string]world{
		"at the address of the content": {
			profile: inDefault, schema: specWith("  default: {type: object, properties: {a: {type: string}, b: {type: string}}, "+atMostOne+"}\n", ""),
			gateway: "default: {a: x}", route: "default: {b: w}", want: []string{"spec.default: at most one of a and b"},
		},
		"with a CEL rule above it": {
			profile: inDefault, schema: specWith("  default: {type: object, properties: {a: {type: string}, b: {type: string}}}\n",
				`x-kubernetes-validations: [{rule: "!has(self.default.a) || !has(self.default.b)", message: "not both"}]`),
			gateway: "default: {a: x}", route: "default: {b: w}", want: []string{"spec: not both"},
		},
		"in a block, if the kind has no bare rules": {
			profile: onlyBlocks, schema: specWith("  default: "+block+"\n  override: "+block+"\n", ""),
			gateway: "default: {a: x}", route: "override: {b: w}", want: []string{"spec.default: at most one of a and b"},
		},
		"in the block that has the fields": {
			profile: onlyBlocks, schema: specWith("  default: {type: object, properties: {a: {type: string}}}\n  override: "+block+"\n", ""),
			gateway: "default: {a: x}", route: "override: {b: w}", want: []string{"spec.override: at most one of a and b"},
		},
		"none, if no location has all the fields": {
			profile: onlyBlocks, schema: specWith("  default: {type: object, properties: {a: {type: string}}, minProperties: 9}\n  override: {type: object, properties: {b: {type: string}}, minProperties: 9}\n", ""),
			gateway: "default: {a: x}", route: "override: {b: w}",
		},
		"in what keeps unknown fields": {
			schema:  specWith(bareAB, "x-kubernetes-preserve-unknown-fields: true\n"+`x-kubernetes-validations: [{rule: "!has(self.a) || !has(self.b)", message: "not both"}]`),
			gateway: "defaults: {strategy: patch, a: x, more: 1}", route: "b: w", want: []string{"spec: not both"},
		},
	})
}

func TestFieldsOutsideRulesAreIgnored(t *testing.T) {
	bareOr := func(more string) string { return specWith(bareAB, more) }
	check(t, map[string]world{
		"a rule that blocks and bare rules exclude each other": {
			schema: bareOr(`x-kubernetes-validations: [{rule: "!(has(self.defaults) && (has(self.a) || has(self.b)))", message: "wrong"}]`), gateway: "defaults: {strategy: patch, a: x}", route: "b: w",
		},
		"a CEL rule that requires a block": {
			schema:  bareOr(`x-kubernetes-validations: [{rule: "has(self.defaults) || has(self.overrides) || !has(self.b) && !has(self.c)", message: "a block"}, {rule: "has(self.overrides) || !has(self.b) || !has(self.c)", message: "b or c"}]`),
			gateway: "defaults: {strategy: patch, c: 1}", route: "b: w", want: []string{"spec: b or c"},
		},
		"a required field outside the rules": {
			schema: "type: object\nrequired: [targetRefs, strategy, unset]\nmaxProperties: 5\nproperties:" + refs + bareAB, gateway: "defaults: {strategy: patch, c: 1}", route: "b: w",
		},
		"an error of the target reference": {
			schema:  "type: object\nmaxProperties: 9\nproperties:\n  targetRefs: {type: array, maxItems: 0, items: {type: object}}\n" + bareAB + `x-kubernetes-validations: [{rule: "!has(self.a) || !has(self.b)", message: wrong, fieldPath: .targetRefs}]`,
			gateway: "defaults: {strategy: patch, a: x}", route: "b: w",
		},
		"a problem that each policy has by itself": {
			schema:  bareOr("anyOf: [{required: [defaults]}, {required: [overrides]}]\n" + `x-kubernetes-validations: [{rule: "size(self.targetRefs) == 7 && (has(self.a) || has(self.b))", message: "seven"}]`),
			gateway: "defaults: {strategy: patch, a: x}", route: "b: w",
		},
	})
}

func TestTargetReferenceIsValid(t *testing.T) {
	profile := func(fields string) string {
		return worlds.ClassProfileDoc("inherited", "Paint", "targets: {fields: ["+fields+"]}\nblocks: {defaults: [defaults]}\nstrategy: {field: strategy, allowed: [patch]}")
	}
	one := "  targetRef: {type: object, properties: {group: {type: string}, kind: {type: string}, name: {type: string}, sectionName: {type: string}}}\n"
	rule := func(text string) string {
		return fmt.Sprintf("x-kubernetes-validations: [{rule: %q, message: wrong}]\n", text)
	}
	isRoute := "self.targetRef.group == 'gateway.networking.k8s.io' && self.targetRef.kind == 'HTTPRoute' && self.targetRef.name == 'r' && !has(self.targetRef.sectionName)"
	check(t, map[string]world{
		"an object": {
			profile: profile("targetRef, targetRefs"), schema: "type: object\n" + rule("!has(self.a) || !has(self.b) || "+isRoute) + "properties:\n" + one + bareAB,
			gateway: "defaults: {a: x}", route: "b: w",
		},
		"a list": {
			profile: profile("targetRef, targetRefs"), schema: specWith(bareAB, rule("!has(self.a) || !has(self.b) || self.targetRefs.exists_one(t, t.kind == 'HTTPRoute' && t.name == 'r')")),
			gateway: "defaults: {a: x}", route: "b: w",
		},
		"only one of two, the one that is required": {
			profile: profile("targetRef, targetRefs"), schema: specWith(one+bareAB, rule("!has(self.a) || !has(self.b) || !has(self.targetRef) && has(self.targetRefs)")),
			gateway: "defaults: {a: x}", route: "b: w",
		},
		"or the first": {
			profile: profile("targetRef, targetRefs"), schema: "type: object\n" + rule("!has(self.a) || !has(self.b) || has(self.targetRef) && !has(self.targetRefs)") + "properties:" + refs + one + bareAB,
			gateway: "defaults: {a: x}", route: "b: w",
		},
	})
}

// In kinds without spec, the effective spec is checked as fields of the object. One of named
// rules is not checked.
func TestContentIsTheObject(t *testing.T) {
	verdictOf := func(profile, high, low string) []string {
		policy := func(namespace, name, target, fields string) string {
			return fmt.Sprintf("kind: Paint\nmetadata: {namespace: %s, name: %s}\ntargetRefs: [{kind: %s}]\n%s", namespace, name, target, fields)
		}
		return texts(verdict(t, worlds.World(t, worlds.Docs(worlds.GatewayDoc("g", "istio", "http"), worlds.RouteDoc("r", "[{}]", "g"),
			worlds.ClassProfileDoc("inherited", "Paint", "targets: {fields: [targetRefs]}\ncontent: .\nstrategy: {allowed: [merge]}\n"+profile),
			"kind: Schema\nof: Paint\nschema: {type: object, required: [targetRefs], x-kubernetes-preserve-unknown-fields: true, properties: {metadata: {type: object}, "+
				"targetRefs: {type: array, items: {type: object}}, a: {type: string}, b: {type: string}}, "+atMostOne+"}",
			policy("infra", "high", "Gateway, name: g", high), policy("app", "low", "HTTPRoute, name: r", low)))))
	}
	assert.Equal(t, []string{"at most one of a and b"}, verdictOf("", "a: x", "b: w"))
	assert.Empty(t, verdictOf("named: {field: n}", "n: a", "n: b"))
}

func TestUnchecked(t *testing.T) {
	check(t, map[string]world{
		"a kind without a schema": {gateway: "defaults: {strategy: patch, a: x}", route: "b: w"},
		"a schema that is not structural": {
			schema: "oneOf: [{properties: {a: {}}}]", gateway: "defaults: {strategy: patch, a: x}", route: "b: w",
			unchecked: "structural",
		},
		"a kind that collects": {
			profile: worlds.ProfileDoc("Paint", "sameTarget: collect"), schema: specWith(bareAB, "maxProperties: 1"), gateway: "a: x", route: "b: w",
		},
		"a schema without a spec": {
			schema: "x-kubernetes-preserve-unknown-fields: true", gateway: "defaults: {strategy: patch, a: x}", route: "b: w",
		},
		"an empty effective spec": {
			schema: specWith(bareAB, "minProperties: 3"), gateway: "overrides: {strategy: patch, b: null}", route: "b: w",
		},
		"cost limit exceeded": {
			schema:  specWith("  a: {type: string}\n  b: {type: string}\n", `x-kubernetes-validations: [{rule: "self.a.split('').all(x, self.a.split('').all(y, self.b.split('').all(z, x == z || y == z || true)))"}]`),
			gateway: "defaults: {strategy: patch, a: " + long("x", 200) + "}", route: "b: " + long("x", 200),
			unchecked: "cost limit of 100000",
		},
	})
}

func long(text string, n int) string {
	out := ""
	for range n {
		out += text
	}
	return out
}

// expired returns a budget whose context is canceled.
func expired(t testing.TB) *effective.Budget {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return effective.NewBudget(ctx, math.MaxUint64)
}

func TestCheckStopsAtBudget(t *testing.T) {
	e := only(t, newView(t, "", specWith(bareAB, atMostOne), "defaults: {strategy: patch, a: x}", "b: w"))
	c := schema.NewChecker(true)
	_, err := c.Check(e, expired(t))
	require.ErrorIs(t, err, effective.ErrTooMuch)
	v, err := c.Check(e, effective.NewBudget(t.Context(), 0))
	require.NoError(t, err, "a cost up to includedCost is not charged")
	assert.Equal(t, []string{"spec: at most one of a and b"}, texts(v))
	again, err := c.Check(e, expired(t))
	require.NoError(t, err, "a cached verdict costs nothing")
	assert.Equal(t, v, again)
	none, err := c.Check(nil, expired(t))
	require.NoError(t, err)
	assert.Empty(t, none)
}

func TestCostAboveIncludedIsCharged(t *testing.T) {
	crd := specWith("  a: {type: string}\n  b: {type: string}\n", `x-kubernetes-validations: [{rule: "self.a.split('').all(x, self.b.split('').all(y, x == y))"}]`)
	e := only(t, newView(t, "", crd, "defaults: {strategy: patch, a: "+long("x", 20)+"}", "b: "+long("x", 20)))
	c := schema.NewChecker(true)
	_, err := c.Check(e, effective.NewBudget(t.Context(), 100))
	require.ErrorIs(t, err, effective.ErrTooMuch)
	_, err = c.Check(e, effective.NewBudget(t.Context(), 10_000))
	require.NoError(t, err)
}

// A count that grows makes things worse, one that shrinks does not.
func TestVerdictHas(t *testing.T) {
	counted := func(more string) string {
		return specWith("  limits: {type: object, "+more+", additionalProperties: {type: integer}}\n", "")
	}
	four := specWith(bareAB+"  d: {type: string}\n", "oneOf: [{required: [a]}, {required: [b]}, {required: [c]}, {required: [d]}]")
	for name, c := range map[string]struct{ schema, gateway, better, worse string }{
		"too many": {
			counted("maxProperties: 1"), "defaults: {strategy: merge, limits: {one: 1}}", "limits: {two: 1}", "limits: {two: 1, three: 1}",
		},
		"too few": {
			counted("minProperties: 3"), "defaults: {strategy: merge, limits: {one: 1, two: 1, three: 1}}", "unset: [limits.one]", "unset: [limits.one, limits.two]",
		},
		"too many of a one-of": {four, "defaults: {strategy: merge, a: x}", "b: x", "b: x\nc: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			better, worse := verdict(t, newView(t, named, c.schema, c.gateway, c.better)), verdict(t, newView(t, named, c.schema, c.gateway, c.worse))
			require.Len(t, better.Problems, 1)
			require.Len(t, worse.Problems, 1)
			assert.Equal(t, better.Problems[0].Message, worse.Problems[0].Message)
			assert.True(t, worse.Has(better.Problems[0]))
			assert.False(t, better.Has(worse.Problems[0]))
			assert.True(t, better.Has(better.Problems[0]))
			assert.False(t, schema.Verdict{}.Has(better.Problems[0]))
		})
	}
}
