package effective_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/worlds"
)

// Weakeners of lower policies.
func TestWeakeners(t *testing.T) {
	lock := worlds.ProfileDoc("Lock", "rules: [ways.*, doors.*, deep.*.*, parts.*.*, gate, shut.*]\nstrategy: {allowed: [merge]}\n"+
		"blocks: {overrides: [overrides], defaults: [defaults], when: when}\ngates: [gate, shut]\nalternatives: [ways, deep.*, parts]")
	top := func(spec string) string { return policyDoc("Lock", "infra", "top", onG+spec) }
	own := func(spec string) string { return policyDoc("Lock", "app", "own", onR+spec) }
	const held = "overrides: {ways: {key: 1}, deep: {a: {x: 1}}}"
	tests := map[string]struct {
		policies []string
		want     []string // "rule by rule, gate or alternative"
	}{
		"nothing below the override":              {[]string{lock, top(held)}, nil},
		"a gate gates each rule":                  {[]string{lock, top(held), own("gate: 1")}, []string{"deep.a.x by gate, gate", "ways.key by gate, gate"}},
		"what is below the address of a gate":     {[]string{lock, top("overrides: {ways: {key: 1}}"), own("shut: {x: 1}")}, []string{"ways.key by shut.x, gate"}},
		"an alternative":                          {[]string{lock, top(held), own("ways: {open: 1}")}, []string{"ways.key by ways.open, alternative"}},
		"an alternative of the group that is one": {[]string{lock, top(held), own("deep: {a: {z: 1}}")}, []string{"deep.a.x by deep.a.z, alternative"}},
		"no alternative of another group":         {[]string{lock, top(held), own("deep: {b: {z: 1}}\ndoors: {open: 1}")}, nil},
		"a null is in no one's way":               {[]string{lock, top("overrides: {ways: {key: 1}}"), own("gate: null")}, nil},
		"an override that unsets is not a rule":   {[]string{lock, top("overrides: {ways: {key: null}}"), own("gate: 1")}, nil},
		"a default of the higher policy":          {[]string{lock, top("defaults: {ways: {key: 1}}"), own("gate: 1")}, nil},
		"a rule of the very policy":               {[]string{lock, top(held + "\ngate: 1\nways: {open: 1}")}, nil},
		"a rule of a higher policy":               {[]string{lock, own("overrides: {ways: {key: 1}}"), top("gate: 1\nways: {open: 1}")}, []string{"ways.key by gate, gate", "ways.key by ways.open, alternative"}},
		"an override of the lower policy":         {[]string{lock, top("overrides: {ways: {key: 1}}"), own("overrides: {gate: 1}")}, []string{"ways.key by gate, gate"}},
		"a gate that is an override":              {[]string{lock, top("overrides: {gate: 1, ways: {key: 1}}"), own("gate: 2")}, nil},
		"the alternative that is an override":     {[]string{lock, top("overrides: {ways: {key: 1}}"), own("ways: {key: 2}")}, nil},
		"a gate beside a gate that is held":       {[]string{lock, top("overrides: {gate: 1}"), own("shut: {x: 1}")}, []string{"gate by shut.x, gate"}},
		"a part of an alternative is none to its other parts": {
			[]string{lock, top("overrides: {parts: {a: {x: 1}, b: {x: 1, y: 1}, c: {x: 1}}}"), own("parts: {b: {z: 1}}")},
			[]string{"parts.a.x by parts.b.z, alternative", "parts.c.x by parts.b.z, alternative"},
		},
		"a part of the only alternative that is held": {[]string{lock, top("overrides: {parts: {b: {x: 1}}}"), own("parts: {b: {z: 1}}")}, nil},
		"overrides of two policies": {
			[]string{lock, top("overrides: {ways: {a: 1}}"), policyDoc("Lock", "infra", "also", onG+"overrides: {ways: {b: 1}}"), own("ways: {c: 1}")},
			[]string{"ways.b by ways.a, alternative", "ways.a by ways.b, alternative", "ways.b by ways.c, alternative", "ways.a by ways.c, alternative"},
		},
		"a default gate of a lower policy": {[]string{lock, top("overrides: {ways: {key: 1}}"), own("defaults: {gate: 1}")}, []string{"ways.key by gate, gate"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, w := range onePath(t, test.policies...).Weakeners() {
				if w.Own() {
					continue
				}
				how := "alternative"
				if w.Gate {
					how = "gate"
				}
				first, rest := w.Weakens(w.HeldRules.Rules)
				for _, rule := range append(slices.Clone(first), rest...) {
					got = append(got, fmt.Sprintf("%s by %s, %s", rule.Key, w.By.Key, how))
				}
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// Other rules of the policy itself weaken its overrides, too. A gate does not weaken
// itself. Explain omits them.
func TestOwnWeakeners(t *testing.T) {
	lock := worlds.ProfileDoc("Lock", "rules: [ways.*, gate]\nstrategy: {allowed: [merge]}\nblocks: {overrides: [overrides]}\ngates: [gate]\nalternatives: [ways]")
	e := onePath(t, lock, policyDoc("Lock", "infra", "top", onG+"overrides: {gate: 1, ways: {key: 1}}\nways: {open: 1}"))
	var got []string
	for _, w := range e.Weakeners() {
		first, rest := w.Weakens(w.HeldRules.Rules)
		for _, rule := range append(slices.Clone(first), rest...) {
			got = append(got, fmt.Sprintf("%s by %s, own: %t, below: %t", rule.Key, w.By.Key, w.Own(), w.Below))
		}
	}
	assert.Equal(t, []string{"ways.key by gate, own: true, below: false", "ways.key by ways.open, own: true, below: false"}, got)
	x, ok := e.Explain(nil)
	require.True(t, ok)
	assert.Empty(t, x.Weakened)
}

// A kind without gates and alternatives has no weakeners.
func TestWeakenersWithoutGates(t *testing.T) {
	assert.Empty(t, onePath(t, higher("top", hard), lower("own", "gate: 1")).Weakeners())
}

// Explain shows what is weakened.
func TestExplainShowsWeakenings(t *testing.T) {
	lock := worlds.ProfileDoc("Lock", "rules: [ways.*, gate]\nstrategy: {allowed: [merge]}\nblocks: {overrides: [overrides]}\ngates: [gate]\nalternatives: [ways]")
	e := onePath(t, lock, policyDoc("Lock", "infra", "top", onG+"overrides: {ways: {key: 1}}"), policyDoc("Lock", "app", "own", onR+"gate: 1\nways: {open: 1}"))
	x, ok := e.Explain(nil)
	require.True(t, ok)
	ref := func(namespace, name string) api.Ref {
		return api.Ref{Group: "example.com", Kind: "Lock", Namespace: namespace, Name: name}
	}
	assert.Equal(t, []api.WeakenedRule{
		{Rule: "ways.key", Policy: ref("infra", "top"), How: "gate", By: ref("app", "own"), ByRule: "gate"},
		{Rule: "ways.key", Policy: ref("infra", "top"), How: "alternative", By: ref("app", "own"), ByRule: "ways.open"},
	}, x.Weakened)
}
