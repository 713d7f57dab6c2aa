package cel

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/merge"
)

// rates returns a spec that is expensive to evaluate: n numbers in spec.rates.
func rates(n int) m {
	list := make([]any, n)
	for i := range list {
		list[i] = int64(i)
	}
	return m{"rates": list}
}

// compiledAlone compiles an expression that no other test has evaluated.
func compiledAlone(t *testing.T, expression string) *Condition {
	t.Helper()
	compiler := newCompiler(conditions, 1, newCondition)
	c, err := compiler.compile(expression)
	require.NoError(t, err)
	return c
}

func TestExpensiveAnswersAreCached(t *testing.T) {
	const text = `spec.rates.exists(r, r > 5000) // once`
	first := compiledAlone(t, text).Evaluate(rates(400))
	require.Greater(t, first.Cost, uint64(1000))

	again := compiledAlone(t, text) // as a policy that is read again has it
	paid := again.Evaluate(rates(400))
	assert.Equal(t, first.Cost, paid.Cost, "whether it is costly is not known before it was evaluated")
	free := again.Evaluate(rates(400))
	assert.Less(t, free.Cost, uint64(50))
	assert.Positive(t, free.Cost)
	free.Cost = first.Cost
	assert.Equal(t, first, free)

	other := again.Evaluate(rates(6000))
	assert.Greater(t, other.Cost, uint64(5000), "of other values, it is evaluated")
}

func TestErrorsAreCached(t *testing.T) {
	for name, text := range map[string]string{
		"the limit":     `spec.rates.all(a, spec.rates.all(b, a + b >= 0)) // limit`,
		"a wrong type":  `spec.rates.all(a, a >= 0) && spec.rates.exists(a, a > "x") // type`,
		"a missing key": `spec.rates.all(a, a >= 0) && spec.left.out // key`,
	} {
		t.Run(name, func(t *testing.T) {
			c := compiledAlone(t, text)
			first, again := c.Evaluate(rates(200)), c.Evaluate(rates(200))
			assert.Less(t, again.Cost, first.Cost/10)
			assert.Equal(t, first.Missing, again.Missing)
			assert.Equal(t, first.HasSiblings, again.HasSiblings)
			require.Equal(t, first.Err != nil, again.Err != nil)
			if first.Err != nil {
				require.EqualError(t, again.Err, first.Err.Error())
				assert.ErrorAs(t, again.Err, new(*EvalError))
			}
			assert.Equal(t, errors.Is(first.Err, ErrBudget), errors.Is(again.Err, ErrBudget))
		})
	}
}

// raw is a packed value that implements json.Marshaler, lazy one that does not.
type (
	raw  string
	lazy string
)

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }
func (r raw) Unpack() any                  { return lazy(r).Unpack() }
func (l lazy) Unpack() (v any) {
	_ = json.Unmarshal([]byte(l), &v)
	return v
}

func TestCacheKeys(t *testing.T) {
	encoded := func(v any) string {
		e := keyEncoder{}
		e.value(v)
		return string(e.out)
	}
	want := `{"a":[1,null,true,"x<&>"],"b":{}}` // byte by byte
	assert.Equal(t, want, encoded(m{"b": m{}, "a": []any{int64(1), nil, true, "x<&>"}}))
	assert.Equal(t, encoded(m{"a": "é\"\\\n"}), encoded(raw(`{"a":"é\"\\\n"}`)), "packed or not")
	assert.Equal(t, encoded(m{"a": []any{"b"}}), encoded(lazy(`{"a":["b"]}`)))
	different := []any{
		int64(1), 1.0, "1", "f1", true, "true", nil, "null", []any{}, m{}, "", "\xff", "\ufffd", "s1:\xff", []any{nil},
		[]any{"a", "b"}, []any{"a,b"}, []any{[]any{"a"}, "b"}, m{"a": "b"}, m{"a": m{"b": nil}}, 1.5, 2.5,
	}
	seen := make(map[string]any)
	for _, v := range different {
		if other, ok := seen[encoded(v)]; ok {
			assert.Failf(t, "one key", "of %#v and %#v", v, other)
		}
		seen[encoded(v)] = v
	}
}

// BenchmarkAnswers compares a cache lookup with an evaluation.
func BenchmarkAnswers(b *testing.B) {
	for _, n := range []int{20, 400, 1600} {
		c, err := Compile(fmt.Sprintf("spec.rates.exists(r, r > 50000) // %s", strings.Repeat("n", n%7)))
		require.NoError(b, err)
		s := rates(n)
		for name, evaluate := range map[string]func(map[string]any) merge.Answer{"found": c.Evaluate, "evaluated": c.evaluate} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				for b.Loop() {
					evaluate(s)
				}
				b.ReportMetric(float64(evaluate(s).Cost), "units")
			})
		}
	}
}
