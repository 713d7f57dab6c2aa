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
