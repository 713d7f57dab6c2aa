package effective

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/merge"
)

// What the memo holds is bounded by the size of the results, not by their
// number: a policy of thousands of rules must not fill the memory.
func TestTheMemoIsBoundedByWeight(t *testing.T) {
	for name, rules := range map[string]int{"small results": 3, "large results": 5_000} {
		t.Run(name, func(t *testing.T) {
			var m memo
			r := &merge.Result{Rules: make([]merge.Effective, rules), Outcomes: make([]merge.Outcome, 2)}
			for i := range 60_000 {
				m.put(strconv.Itoa(i), r)
			}
			assert.LessOrEqual(t, (len(m.now)+len(m.old))*weigh(r), 2*(memoWeight+weigh(r)))
			assert.GreaterOrEqual(t, len(m.old)*weigh(r), memoWeight, "and not too soon")
		})
	}
}

func TestWhatIsAskedForOutlivesAGeneration(t *testing.T) {
	var m memo
	kept, other := &merge.Result{}, &merge.Result{Rules: make([]merge.Effective, memoWeight/4)}
	m.put("kept", kept)
	for i := range 40 {
		got, ok := m.get("kept")
		assert.True(t, ok, "round %d", i)
		assert.Same(t, kept, got)
		m.put(strconv.Itoa(i), other)
	}
	_, ok := m.get("0")
	assert.False(t, ok, "what nobody asks for goes")
}
