package merge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/merge"
)

// A policy has no rule if none of its blocks has one.
func TestEmpty(t *testing.T) {
	assert.True(t, policy("p").Empty())
	assert.True(t, policy("p", bare()).Empty())
	assert.False(t, policy("p", bare(), defaults(merge.Atomic, rule("a", nil))).Empty())
}

// Layers that differ only in Reading.By have an order.
func TestOrderOfReplacingPolicies(t *testing.T) {
	p, one, two := policy("p"), policy("one"), policy("two")
	read := func(by *merge.Policy) merge.Layer { return merge.Layer{Policy: p, As: &merge.Reading{By: by}} }
	assert.Negative(t, merge.Compare(read(nil), read(one)))
	assert.Positive(t, merge.Compare(read(two), read(nil)))
	assert.Negative(t, merge.Compare(read(one), read(two)))
	assert.Zero(t, merge.Compare(read(one), read(one)))
}

// A key of a policy is counted once, even if several blocks have it.
func TestFoldCounts(t *testing.T) {
	result := fold(t, stack(
		policy("gw", defaults(mixed, rule("a", 1), rule("b", 1)), overrides(mixed, rule("a", 2))),
		policy("empty"),
		policy("route", bare(rule("b", 3))),
	)...)
	assert.Equal(t, []string{"gw 1 of 2", "empty 0 of 0", "route 1 of 1"}, countsOf(result))
	gw := result.Outcomes[0]
	assert.True(t, gw.TookPart)
	assert.True(t, gw.BlockApplied(merge.Defaults))
	assert.False(t, gw.BlockApplied(merge.Bare))
	assert.True(t, gw.BlockApplied(merge.Overrides))
	assert.False(t, result.Outcomes[1].TookPart)
}

// BlockApplied is about the blocks of the policy, AppliedAs about what they acted as.
func TestOutcomeAppliedAs(t *testing.T) {
	gw := policy("gw", bare(rule("a", 1), rule("b", 1)), when(overrides(mixed, rule("z", 1)), over("z", 1)))
	result := fold(t, path(
		as(merge.Overrides, mixed, on(0, hierarchical, gw)...),
		on(1, hierarchical, policy("route", bare(rule("a", 2)))),
	)...)
	assert.Equal(t, []string{"gw 2 of 2 silent", "route 0 of 1"}, countsOf(result))
	o := result.Outcomes[0]
	assert.True(t, o.TookPart)
	assert.True(t, o.BlockApplied(merge.Bare))
	assert.False(t, o.BlockApplied(merge.Overrides), "its condition is not met")
	assert.True(t, o.AppliedAs(merge.Bare, merge.Overrides))
	assert.False(t, o.AppliedAs(merge.Bare, merge.Bare))
	assert.False(t, o.AppliedAs(merge.Overrides, merge.Overrides))

	route := result.Outcomes[1]
	assert.True(t, route.AppliedAs(merge.Bare, merge.Bare))
	assert.False(t, route.AppliedAs(merge.Bare, merge.Overrides))
}
