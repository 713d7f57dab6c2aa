package merge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/merge"
)

// A policy without a rule that replaces another one takes all of its rules, and is
// named for each, whatever is in force.
func TestReplacedByAPolicyWithoutARule(t *testing.T) {
	low, empty := policy("low", bare(rule("a", 1))), policy("empty")
	high := policy("high", bare(rule("b", 2), rule("c", 3)))
	layers := stack(high, empty, low)
	layers[0].As = &merge.Reading{Block: merge.Bare, Strategy: merge.Merge, By: empty}
	r := fold(t, layers...)
	assert.Equal(t, []string{"a=1 low/bare"}, effectiveOf(r))
	assert.Equal(t, []string{"high: b bare to empty/bare", "high: c bare to empty/bare"}, lossesOf(r))
	assert.Equal(t, []string{"high 0 of 2", "empty 0 of 0", "low 1 of 1"}, countsOf(r))
}

// A policy has no rule if none of its blocks has one.
func TestEmpty(t *testing.T) {
	assert.True(t, policy("p").Empty())
	assert.True(t, policy("p", bare()).Empty())
	assert.False(t, policy("p", bare(), defaults(merge.Atomic, rule("a", nil))).Empty())
}

// Layers that differ by what replaces them alone have an order.
func TestReplacersHaveAnOrder(t *testing.T) {
	p, one, two := policy("p"), policy("one"), policy("two")
	read := func(by *merge.Policy) merge.Layer { return merge.Layer{Policy: p, As: &merge.Reading{By: by}} }
	assert.Negative(t, merge.Compare(read(nil), read(one)))
	assert.Positive(t, merge.Compare(read(two), read(nil)))
	assert.Negative(t, merge.Compare(read(one), read(two)))
	assert.Zero(t, merge.Compare(read(one), read(one)))
}
