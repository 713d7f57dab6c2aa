package merge_test

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/merge"
)

// SEMANTICS section 2, from the highest to the lowest.
func TestOrder(t *testing.T) {
	layer := func(level int, created int64, namespace, name string) merge.Layer {
		return merge.Layer{Level: level, Policy: &merge.Policy{Namespace: namespace, Name: name, Created: created}}
	}
	rank := func(rank int, l merge.Layer) merge.Layer {
		l.Rank = rank
		return l
	}
	tests := map[string]struct{ higher, lower merge.Layer }{
		"the kind's own order goes before age and name":  {rank(1, layer(1, 9, "z", "z")), rank(2, layer(1, 1, "a", "a"))},
		"it may be below nought":                         {rank(-1, layer(1, 9, "z", "z")), layer(1, 1, "a", "a")},
		"but not before the level":                       {rank(2, layer(1, 9, "z", "z")), rank(1, layer(2, 1, "a", "a"))},
		"in the place of another level":                  {merge.Layer{Level: 3, Depth: 1, Policy: &merge.Policy{Name: "z", Created: 9}}, layer(2, 1, "a", "a")},
		"there below its own policies":                   {layer(1, 9, "z", "z"), merge.Layer{Level: 3, Depth: 1, Policy: &merge.Policy{Name: "a", Created: 1}}},
		"nearer the root is higher, however new":         {layer(1, 9, "z", "z"), layer(2, 1, "a", "a")},
		"on one level the older is higher":               {layer(1, 1, "z", "z"), layer(1, 2, "a", "a")},
		"without a creation time it counts as newest":    {layer(1, 1<<40, "z", "z"), layer(1, merge.Newest, "a", "a")},
		"tied, the first by namespace/name is higher":    {layer(1, 1, "a", "z"), layer(1, 1, "b", "a")},
		"tied in one namespace, the first by name":       {layer(1, 1, "a", "a"), layer(1, 1, "a", "b")},
		"the slash counts as a character: a-b before a/": {layer(1, 1, "a-b", "a"), layer(1, 1, "a", "b")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Negative(t, merge.Compare(test.higher, test.lower))
			assert.Positive(t, merge.Compare(test.lower, test.higher))
			assert.Zero(t, merge.Compare(test.higher, test.higher))

			test.higher.Blocks = []merge.Rules{overrides(mixed, rule("o", "higher")), defaults(mixed, rule("d", "higher"))}
			test.lower.Blocks = []merge.Rules{overrides(mixed, rule("o", "lower")), defaults(mixed, rule("d", "lower"))}
			for _, layers := range [][]merge.Layer{{test.higher, test.lower}, {test.lower, test.higher}} {
				result := fold(t, layers...)
				assert.Equal(t, map[string]any{"o": "higher", "d": "lower"}, result.Spec())
				assert.Same(t, test.higher.Policy, result.Outcomes[0].Policy, "outcomes go from the highest to the lowest")
			}
		})
	}
}

// Layers of the same policy on the same level have an order too, so that the result does
// not depend on that of the input.
func TestOrderOfSamePolicy(t *testing.T) {
	p := policy("p", bare(rule("a", 1)))
	ordered := path(
		on(1, hierarchical, p),
		on(1, oldestWins, p),
		as(merge.Defaults, mixed, on(1, hierarchical, p)...),
		as(merge.Bare, atomic, on(1, hierarchical, p)...),
		as(merge.Bare, patch, on(1, hierarchical, p)...),
		as(merge.Bare, patch, on(1, collect, p)...),
	)
	for i, a := range ordered {
		for j, b := range ordered {
			assert.Equal(t, cmp.Compare(i, j), merge.Compare(a, b), "%d and %d", i, j)
		}
	}
}

func TestFoldDoesNotEditInput(t *testing.T) {
	low, high := policy("a", bare(rule("a", 1))), policy("b", bare(rule("a", 2)))
	layers := []merge.Layer{{Policy: low, Level: 1}, {Policy: high, Level: 0}}
	fold(t, layers...)
	assert.Same(t, low, layers[0].Policy)
	assert.Same(t, high, layers[1].Policy)
}

func TestFoldDoesNotAppendToPolicyRules(t *testing.T) {
	backing := []merge.Rule{rule("b", 1), rule("z", "mine")}
	fold(t, stack(policy("p", block(merge.Defaults, mixed, backing[:1]), overrides(mixed, rule("a", 2))))...)
	assert.Equal(t, "mine", backing[1].Value)
}
