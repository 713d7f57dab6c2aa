package effective_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/test/tables"
	"overrule.dev/overrule/test/worlds"
)

// Weakeners of lower policies.
func TestWeakeners(t *testing.T) {
	lock := worlds.ProfileDoc("Lock", "rules: [ways.*, doors.*, deep.*.*, parts.*.*, gate, shut.*]\nstrategy: {allowed: [merge]}\n"+
		"blocks: {overrides: [overrides], defaults: [defaults], when: when}\ngates: [gate, shut]\nalternatives: [ways, deep.*, parts]")
	tests := tables.Read[map[string]struct {
		Top, Also, Own string   // specs of two policies of the gateway and one of the route
		Want           []string // "rule by rule, gate or alternative"
	}](t, "testdata/tables/weakeners.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			policies := []string{lock, policyDoc("Lock", "infra", "top", onG+test.Top)}
			if test.Also != "" {
				policies = append(policies, policyDoc("Lock", "infra", "also", onG+test.Also))
			}
			if test.Own != "" {
				policies = append(policies, policyDoc("Lock", "app", "own", onR+test.Own))
			}
			var got []string
			for _, w := range onePath(t, policies...).Weakeners() {
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
			assert.Equal(t, test.Want, got)
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
	x, ok := explain.Explain(e, nil)
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
	x, ok := explain.Explain(e, nil)
	require.True(t, ok)
	ref := func(namespace, name string) api.Ref {
		return api.Ref{Group: "example.com", Kind: "Lock", Namespace: namespace, Name: name}
	}
	assert.Equal(t, []api.WeakenedRule{
		{Rule: "ways.key", Policy: ref("infra", "top"), How: "gate", By: ref("app", "own"), ByRule: "gate"},
		{Rule: "ways.key", Policy: ref("infra", "top"), How: "alternative", By: ref("app", "own"), ByRule: "ways.open"},
	}, x.Weakened)
}
