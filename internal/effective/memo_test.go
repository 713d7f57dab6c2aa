package effective

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// The memo is bounded by the size of the results, not by their number: a policy with
// thousands of rules must not exhaust the memory.
func TestMemoIsBoundedByWeight(t *testing.T) {
	for name, rules := range map[string]int{"small results": 3, "large results": 5_000} {
		t.Run(name, func(t *testing.T) {
			var m memo
			f := &folded{Result: &merge.Result{Rules: make([]merge.Effective, rules), Outcomes: make([]merge.Outcome, 2)}}
			for i := range 120_000 {
				m.put([]byte(strconv.Itoa(i)), f)
			}
			assert.LessOrEqual(t, (len(m.current)+len(m.previous))*f.weigh(), 2*(maxMemoWeight+f.weigh()))
			assert.GreaterOrEqual(t, len(m.previous)*f.weigh(), maxMemoWeight, "and not too soon")
		})
	}
}

func TestMemoKeepsUsedResults(t *testing.T) {
	var m memo
	kept, other := &folded{Result: &merge.Result{}}, &folded{Result: &merge.Result{Rules: make([]merge.Effective, maxMemoWeight/4)}}
	m.put([]byte("kept"), kept)
	for i := range 40 {
		assert.Same(t, kept, m.get([]byte("kept")), "round %d", i)
		m.put([]byte(strconv.Itoa(i)), other)
	}
	assert.Nil(t, m.get([]byte("0")), "an unused result is evicted")
}

// A comparison only adds a limited weight of hypothetical results.
func TestComparisonMemoLimit(t *testing.T) {
	const weight, many = 11, maxComparisonWeight / 4 // more than twice what fits
	stacks := func(w *walk) (kept int) {
		w.engine = &Engine{}
		k := &kindWalk{stackBuilder: stackBuilder{walk: w}}
		for i := range uint64(many) {
			k.last = nil
			k.stack.layers = []layer{{merge.Layer{Policy: &merge.Policy{}}, &policykind.Policy{Version: i}}}
			_, err := k.fold(new(Effective))
			assert.NoError(t, err)
		}
		return len(w.engine.memo.current) + len(w.engine.memo.previous)
	}
	assert.Equal(t, maxComparisonWeight/weight, stacks(&walk{whatIf: true}))
	assert.Equal(t, many, stacks(&walk{}), "what is stored is remembered whole")
}

// The memo must not hold large policies that are never stored: each takes tens of
// megabytes, and any user can send them, also as dry runs.
func TestLargePolicyIsNotMemoized(t *testing.T) {
	for name, c := range map[string]struct{ size, kept int }{
		"small": {size: 4 << 10, kept: 1}, "large": {size: 1 << 20}, "stored": {kept: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := &walk{engine: &Engine{}, whatIf: true}
			p := &policykind.Policy{Size: c.size}
			k := &kindWalk{stackBuilder: stackBuilder{walk: w}}
			k.stack.layers = []layer{{merge.Layer{Policy: &p.Policy}, p}}
			first, err := k.fold(new(Effective))
			require.NoError(t, err)
			assert.Len(t, w.engine.memo.current, c.kept)
			k.last = nil
			again, err := k.fold(new(Effective))
			require.NoError(t, err)
			assert.Same(t, first, again, "the comparison itself folds it once")
		})
	}
}
