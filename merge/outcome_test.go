package merge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/merge"
)

func TestReplacedWhole(t *testing.T) {
	route := func() *merge.Policy { return policy("route", bare(rule("a", 1), rule("b", 1))) }
	empty := policy("empty")
	tests := map[string]struct {
		layers []merge.Layer
		of, by string
	}{
		"an atomic override takes every rule": {
			layers: stack(policy("gw", overrides(atomic, rule("a", 1))), route()), of: "route", by: "gw",
		},
		"rules that are overridden one by one": {
			layers: stack(policy("gw", overrides(mixed, rule("a", 2), rule("b", 2))), route()), of: "route",
		},
		"an atomic default is refused": {
			layers: stack(policy("gw", defaults(atomic, rule("c", 1), rule("d", 1))), route()), of: "gw", by: "route",
		},
		"a block of it survives": {
			layers: stack(policy("gw", defaults(atomic, rule("c", 1)), overrides(mixed, rule("d", 1))), route()), of: "gw",
		},
		"one rule was unset before": {
			layers: stack(policy("gw", defaults(atomic, rule("c", 1), rule("d", 1))), unsets(t, route(), "c")), of: "gw",
		},
		"two policies took a part each": {
			layers: stack(policy("class", overrides(atomic, rule("c", 1))), policy("gw", overrides(mixed, rule("a", 2))), route()), of: "route",
		},
		"a policy without a rule replaces it": {
			layers: []merge.Layer{{Policy: route(), As: &merge.Reading{Strategy: merge.Atomic, Block: merge.Bare, By: empty}}, {Policy: empty, Level: 1}},
			of:     "route", by: "empty",
		},
		"an atomic override of a group takes what has an equal value, too": {
			layers: path(on(0, collect, policy("gw", overrides(atomic, rule("a", 1)))), on(1, hierarchical, route())), of: "route", by: "gw",
		},
		"a policy without a rule is replaced by none": {
			layers: stack(policy("gw", overrides(atomic, rule("a", 1))), empty), of: "empty",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, o := range fold(t, test.layers...).Outcomes {
				if o.Policy.Name != test.of {
					continue
				}
				by := o.ReplacedBy()
				if test.by == "" {
					assert.Nil(t, by)
				} else if assert.NotNil(t, by) {
					assert.Equal(t, test.by, by.Name)
				}
			}
		})
	}
}

// All rules of a policy are lost to a policy without rules that replaces it, whatever is
// in force.
func TestReplacedByPolicyWithoutRules(t *testing.T) {
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

// Layers that differ only in Reading.By have an order.
func TestOrderOfReplacingPolicies(t *testing.T) {
	p, one, two := policy("p"), policy("one"), policy("two")
	read := func(by *merge.Policy) merge.Layer { return merge.Layer{Policy: p, As: &merge.Reading{By: by}} }
	assert.Negative(t, merge.Compare(read(nil), read(one)))
	assert.Positive(t, merge.Compare(read(two), read(nil)))
	assert.Negative(t, merge.Compare(read(one), read(two)))
	assert.Zero(t, merge.Compare(read(one), read(one)))
}
