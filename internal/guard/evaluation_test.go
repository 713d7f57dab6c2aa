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

// SEMANTICS section 8, the writes of a policy.
func TestPolicyWrites(t *testing.T) {
	tests := map[string]struct {
		before, write string
		want          []string
	}{
		"nothing to say": {base(), routePolicy("a: 1"), nil},
		"Invalid: it cannot be read": {
			base(), routePolicy("overrides: 1"),
			[]string{`Deny Invalid: Paint app/own, spec.overrides, Invalid, "number"`},
		},
		"Invalid: its condition does not compile": {
			base(), routePolicy("overrides: {when: '1 +', a: 1}"), []string{`Deny Invalid: Paint app/own, spec.overrides.when, Invalid, "1 +", 1:4, Syntax, '<EOF>', {'[', '{', '(', '.', '!', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}`},
		},
		"Invalid before the write stays editable": {
			base(routePolicy("overrides: 1")), routePolicy("overrides: 2"), []string{`Warn Invalid: Paint app/own, spec.overrides, Invalid, "number"`},
		},
		"Invalid is not the same as it was valid before": {
			base(routePolicy("a: 1")), routePolicy("overrides: 2"), []string{`Deny Invalid: Paint app/own, spec.overrides, Invalid, "number"`},
		},
		"TargetNotFound: no such object": {
			base(), policyDoc("Paint", "app", "own", "targetRefs: [{kind: HTTPRoute, name: none}]\na: 1"),
			[]string{"Warn TargetNotFound: HTTPRoute app/none"},
		},
		"TargetNotFound: no such section": {
			base(), policyDoc("Paint", "app", "own", "targetRefs: [{kind: HTTPRoute, name: r, sectionName: none}]\na: 1"),
			[]string{"Warn TargetNotFound: HTTPRoute app/r, none"},
		},
		"TargetNotFound: another namespace": {
			base(), policyDoc("Paint", "app", "own", "targetRefs: [{kind: Gateway, name: g, namespace: infra}]\na: 1"),
			[]string{"Warn TargetNotFound: Paint"},
		},
		"UnsetOverride: a rule that an override sets": {
			base(gatewayPolicy("overrides: {strategy: patch, a: 1}")), routePolicy("b: 2\nunset: [a]"),
			[]string{"Deny UnsetOverride a Paint infra/top"},
		},
		"UnsetOverride: an atomic one, by a prefix": {
			base(gatewayPolicy("overrides: {c: {a: 1, b: 1}}")), routePolicy("unset: [c]"),
			[]string{"Deny UnsetOverride c.a Paint infra/top", "Deny UnsetOverride c.b Paint infra/top"},
		},
		"UnsetOverride: unset before the write is not introduced": {
			base(gatewayPolicy("overrides: {strategy: patch, a: 1}"), routePolicy("unset: [a]")), routePolicy("b: 2\nunset: [a]"),
			[]string{"Warn UnsetOverride a Paint infra/top"},
		},
		"UnsetOverride: on a path that the write adds": {
			base(gatewayPolicy("overrides: {strategy: patch, a: 1}"), policyDoc("Paint", "app", "own", toRule+"unset: [a]")), routePolicy("unset: [a]"),
			[]string{"Deny UnsetOverride a Paint infra/top"},
		},
		"no UnsetOverride of a default": {base(gatewayPolicy("defaults: {strategy: patch, a: 1}")), routePolicy("unset: [a]"), nil},
		"no UnsetOverride of a default beside an override": {
			base(gatewayPolicy("defaults: {strategy: patch, a: 1}\noverrides: {strategy: patch, b: 1}")), routePolicy("unset: [a]"), nil,
		},
		"no UnsetOverride of a lower policy's": {
			base(routePolicy("overrides: {a: 1}")), gatewayPolicy("unset: [a]"), nil,
		},
		"no UnsetOverride where the override's condition is not met": {
			base(gatewayPolicy("overrides: {strategy: patch, when: 'has(spec.b)', a: 1}")), routePolicy("unset: [a]"), nil,
		},
		"ConstraintViolated: replaced by another value": {
			base(gatewayPolicy(clip)), routePolicy("a: 100"),
			[]string{"Deny ConstraintViolated a Paint infra/top: Invalid, 100, Gateway infra/g, spec.a > 50, 50"},
		},
		"ConstraintViolated: removed": {
			base(gatewayPolicy("overrides: {when: 'spec.a > 50', b: 1}")), routePolicy("a: 100"),
			[]string{"Deny ConstraintViolated a Paint infra/top: Invalid, 100, Gateway infra/g, spec.a > 50"},
		},
		"ConstraintViolated: removed by a null": {
			base(gatewayPolicy("overrides: {strategy: patch, when: 'spec.a > 50', a: null}")), routePolicy("a: 100"),
			[]string{"Deny ConstraintViolated a Paint infra/top: Invalid, 100, Gateway infra/g, spec.a > 50"},
		},
		"ConditionSkipped: overrides that cannot be evaluated apply": {
			base(gatewayPolicy("overrides: {strategy: patch, when: 'spec.a > 50', b: 50}")), routePolicy("a: many"),
			[]string{"Warn ConditionSkipped Paint infra/top: spec.a > 50"},
		},
		"ConstraintViolated: a value that the condition cannot read": {
			base(gatewayPolicy(clip)), routePolicy("a: many"), []string{`Deny ConstraintViolated a Paint infra/top: Invalid, "many", Gateway infra/g, spec.a > 50, 50`, "Warn ConditionSkipped Paint infra/top: spec.a > 50"},
		},
		"ConstraintViolated before the write is not introduced": {
			base(gatewayPolicy(clip), routePolicy("a: 100")), routePolicy("a: 200"), []string{"Warn ConstraintViolated a Paint infra/top: Invalid, 200, Gateway infra/g, spec.a > 50, 50"},
		},
		"ConstraintViolated: kept before, broken now": {
			base(gatewayPolicy(clip), routePolicy("a: 10")), routePolicy("a: 100"), []string{"Deny ConstraintViolated a Paint infra/top: Invalid, 100, Gateway infra/g, spec.a > 50, 50"},
		},
		"ConstraintViolated: another constraint than before": {
			base(gatewayPolicy("overrides: {strategy: patch, when: 'spec.k == 1', a: 50}"),
				policyDoc("Paint", "infra", "second", toGateway+"overrides: {strategy: patch, when: 'spec.k == 2', a: 60}"),
				routePolicy("k: 1\na: 100")),
			routePolicy("k: 2\na: 100"), []string{"Deny ConstraintViolated a Paint infra/second: Invalid, 100, Gateway infra/g, spec.k == 2, 60"},
		},
		"ConstraintViolated: on a path that the write adds": {
			base(gatewayPolicy(clip), policyDoc("Paint", "app", "own", toRule+"a: 100")), routePolicy("a: 100"), []string{"Deny ConstraintViolated a Paint infra/top: Invalid, 100, Gateway infra/g, spec.a > 50, 50"},
		},
		"ConstraintViolated: unconditional before, conditional now": {
			base(gatewayPolicy("overrides: {strategy: patch, a: 1, when: 'spec.k == 1'}"),
				policyDoc("Paint", "infra", "a-lower", "targetRefs: [{kind: Gateway, name: g, sectionName: http}]\ndefaults: {strategy: patch, z: 1}"),
				routePolicy("k: 0\na: 5")),
			routePolicy("k: 1\na: 5"), []string{"Deny ConstraintViolated a Paint infra/top: Invalid, 5, Gateway infra/g, spec.k == 1, 1"},
		},
		"no ConstraintViolated where the value is the same": {
			base(gatewayPolicy("overrides: {strategy: patch, when: 'spec.a > 50', a: 100}")), routePolicy("a: 100"), []string{"Warn Overridden a Paint infra/top: Gateway infra/g"},
		},
		"no ConstraintViolated by a lower policy: a default gives way": {
			base(routePolicy("b: 1\noverrides: {strategy: patch, when: 'spec.b == 1', a: 5}")), gatewayPolicy("defaults: {strategy: patch, a: 1}"),
			nil,
		},
		"Overridden: by an unconditional override": {
			base(gatewayPolicy("overrides: {strategy: patch, a: 1}")), routePolicy("a: 2\nb: 2"),
			[]string{"Warn Overridden a Paint infra/top: Gateway infra/g"},
		},
		"Overridden on some paths alone": {
			base(policyDoc("Paint", "app", "top", toRoute+"overrides: {strategy: patch, a: 1}"),
				gatewayDoc("h", "istio", "http"), routeDoc("s", "[{}]", "h"),
				policyDoc("Paint", "infra", "gate", "targetRefs: [{kind: Gateway, name: h}]\noverrides: {strategy: patch, b: 1}")),
			policyDoc("Paint", "app", "own", "targetRefs: [{kind: HTTPRoute, name: s}, {kind: HTTPRoute, name: r, sectionName: rule-1}]\nb: 2"),
			[]string{"Warn Overridden b Paint infra/gate: 1, 2 paths, Gateway infra/h"},
		},
		"Overridden is said once for a path that was there and one that is new": {
			base(gatewayPolicy("overrides: {strategy: patch, a: 1}"), policyDoc("Paint", "app", "own", toRule+"a: 2")), routePolicy("a: 2"),
			[]string{"Warn Overridden a Paint infra/top: Gateway infra/g"},
		},
		"Overridden: others lose by the write of a higher policy": {
			base(routePolicy("a: 2")), gatewayPolicy("overrides: {strategy: patch, a: 1}"),
			[]string{"Warn BlastRadius: Paint infra/top, Paint, 2 paths, 1 namespace", "Warn Overridden a Paint app/own: 2 paths, Paint infra/top"},
		},
		"others that had no effect before have none to lose": {
			base(gatewayPolicy("overrides: {strategy: patch, a: 1}"),
				policyDoc("Paint", "infra", "second", "targetRefs: [{kind: Gateway, name: g, sectionName: http}]\noverrides: {strategy: patch, when: 'spec.k == 1', a: 2}")),
			routePolicy("k: 1"), nil,
		},
		"others that had lost before are not reported again": {
			base(gatewayPolicy("overrides: {strategy: patch, a: 1}"), routePolicy("a: 2")), gatewayPolicy("overrides: {strategy: patch, a: 3}"),
			[]string{"Deny OverrideRemoved a Paint infra/top: 2 paths", "Warn BlastRadius: Paint infra/top, Paint, 2 paths, 1 namespace"},
		},
		"ConditionSkipped: a key that was left out beside others": {
			base(gatewayPolicy("overrides: {strategy: patch, when: 'spec.c.max > 50', c: {max: 50}}")), routePolicy("c: {unit: s}"),
			[]string{"Warn ConditionSkipped Paint infra/top: c.max, spec.c.max > 50"},
		},
		"ConditionSkipped: defaults that cannot be evaluated": {
			base(gatewayPolicy("defaults: {strategy: patch, when: 'spec.a > 50', b: 50}")), routePolicy("a: many"),
			[]string{"Warn ConditionSkipped Paint infra/top: spec.a > 50"},
		},
		"BlastRadius counts the paths that differ": {
			base(routeDoc("s", "[{}]", "g"), policyDoc("Paint", "app", "own", toRoute+"a: 1")), gatewayPolicy("defaults: {a: 1}"),
			[]string{"Warn BlastRadius: Paint infra/top, Paint, 1 path, 1 namespace"},
		},
		"no BlastRadius for a policy on routes": {base(), routePolicy("a: 1"), nil},
		"no BlastRadius where nothing differs":  {base(routePolicy("a: 1")), gatewayPolicy("defaults: {a: 5}"), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ev := evaluate(t, world(t, test.before), test.write)
			assert.Equal(t, test.want, findings(t, ev))
			assert.Equal(t, len(ev.Denials) > 0, ev.Denied())
		})
	}
}

// SEMANTICS section 8: writes of gateways and routes, and deletions.
func TestOtherWrites(t *testing.T) {
	paint := base(gatewayPolicy("overrides: {strategy: patch, a: 1}"), routePolicy("a: 2"))
	t.Run("a route that comes under an override", func(t *testing.T) {
		v := world(t, docs(paint, gatewayDoc("h", "istio", "http"), routeDoc("s", "[{}]", "h"), policyDoc("Paint", "app", "of-s", "targetRefs: [{kind: HTTPRoute, name: s}]\na: 3")))
		assert.Equal(t, []string{
			"Warn BlastRadius: HTTPRoute app/s, Paint, 2 paths, 1 namespace",
			"Warn Overridden a Paint app/of-s: 1 path, Paint infra/top",
		}, findings(t, evaluate(t, v, routeDoc("s", "[{}]", "g"))))
	})
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
			"Warn BlastRadius: Paint infra/top, Paint, 2 paths, 1 namespace",
		}, findings(t, ev))
		assert.Equal(t, api.Changes{Paths: 2, Namespaces: 1}, ev.Changes)
		assert.Nil(t, ev.After.Get(paintRef("infra", "top")))
	})
	t.Run("a route deleted", func(t *testing.T) {
		assert.Equal(t, []string{"Warn BlastRadius: HTTPRoute app/r, Paint, 2 paths, 1 namespace"}, findings(t, deleted(t, world(t, paint), routeRef("r"))))
	})
	t.Run("a route that is re-applied", func(t *testing.T) {
		assert.Empty(t, findings(t, evaluate(t, world(t, paint), routeDoc("r", "[{}, {matches: [{path: {value: /x}}]}]", "g"))))
	})
	t.Run("a rule inserted in front takes requests from one with the same policies", func(t *testing.T) {
		ev := evaluate(t, world(t, paint), routeDoc("r", "[{matches: [{path: {value: /new}}]}, {}, {matches: [{path: {value: /x}}]}]", "g"))
		assert.Equal(t, api.Changes{}, ev.Changes)
	})
	t.Run("a route that asks for default gateways", func(t *testing.T) {
		ev := evaluate(t, world(t, base()), "kind: HTTPRoute\nmetadata: {namespace: app, name: s}\nspec: {useDefaultGateways: All}")
		assert.Equal(t, []string{"Warn NotRead: useDefaultGateways, parentRefs"}, findings(t, ev))
	})
	t.Run("a route is warned of conditions that it brings, not of existing ones", func(t *testing.T) {
		v := world(t, base(gatewayPolicy("overrides: {strategy: patch, when: 'spec.c.max > 50', x: 1}"), routePolicy("c: {unit: s}")))
		assert.Equal(t, []string{"Warn BlastRadius", "Warn ConditionSkipped"}, codes(t, evaluate(t, v.With(del(routeRef("r"))), routeDoc("r", "[{}]", "g"))))
		assert.Empty(t, codes(t, evaluate(t, v, routeDoc("r", "[{}]", "g"))), "the second rule is gone, to one with the same policies")
	})
}

// SEMANTICS section 5, sameTarget none.
func TestConflicts(t *testing.T) {
	label := func(name, created, more string) string {
		return "kind: Label\nmetadata: {namespace: app, name: " + name + ", creationTimestamp: '" + created + "'}\nspec: {a: " + name + ", targetRefs: [{kind: HTTPRoute, name: r" + more + "}]}"
	}
	const old, newer = "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"
	tests := map[string]struct {
		before, write string
		want          []string
	}{
		"the first": {base(), label("one", old, ""), nil},
		"the second is denied": {
			base(label("one", old, "")), label("two", newer, ""), []string{"Deny Conflicted Label app/one: HTTPRoute app/r, Label"},
		},
		"one that was in conflict before stays editable": {
			base(label("one", old, ""), label("two", newer, "")), label("two", newer, ""),
			[]string{"Warn Conflicted Label app/one: HTTPRoute app/r, Label"},
		},
		"an older one that comes to the target pushes the holder out": {
			base(label("one", newer, ""), label("two", old, ", sectionName: rule-1")), label("two", old, ""),
			[]string{"Warn Conflicted Label app/one: HTTPRoute app/r"},
		},
		"a section is a target of its own": {base(label("one", old, "")), label("two", newer, ", sectionName: rule-1"), nil},
		"an update that comes into conflict is denied": {
			base(label("one", old, ""), label("two", newer, ", sectionName: rule-1")), label("two", newer, ""),
			[]string{"Deny Conflicted Label app/one: HTTPRoute app/r, Label"},
		},
		"one that was in conflict on a section is denied on the whole": {
			base(label("one", old, ""), label("three", old, ", sectionName: rule-1"), label("two", newer, ", sectionName: rule-1")), label("two", newer, ""),
			[]string{"Deny Conflicted Label app/one: HTTPRoute app/r, Label"},
		},
		"a rival that had lost before is not reported": {
			base(label("one", old, ""), label("two", newer, ""), label("zero", "2023-01-01T00:00:00Z", "")), label("one", old, ""),
			[]string{"Warn Conflicted Label app/zero: HTTPRoute app/r, Label"},
		},
		"one that is invalid holds nothing": {
			base("kind: Label\nmetadata: {namespace: app, name: one, creationTimestamp: '" + old + "'}\nspec: {targetRefs: [{kind: HTTPRoute, name: r}, 5]}"),
			label("two", newer, ""), nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, findings(t, evaluate(t, world(t, test.before), test.write)))
		})
	}
}

// A condition that fails is reported with its effect on the block.
func TestFailedConditionsNameEffect(t *testing.T) {
	for _, block := range []string{"overrides", "defaults"} {
		t.Run(block, func(t *testing.T) {
			v := world(t, base(gatewayPolicy(block+": {strategy: patch, when: 'spec.a > 50', b: 50}")))
			assert.Equal(t, []string{"Warn ConditionSkipped Paint infra/top: spec.a > 50"}, findings(t, evaluate(t, v, routePolicy("a: many"))), "the golden file tells the effect")
		})
	}
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
