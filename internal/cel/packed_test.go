package cel_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/merge"
)

// packed is a value that is stored as JSON.
type packed string

func (p packed) Unpack() any {
	var out any
	if err := json.Unmarshal([]byte(p), &out); err != nil {
		panic(err)
	}
	return out
}

// The answer and the cost are the same for a spec with packed values.
func TestConditionsUnpackFields(t *testing.T) {
	plain := func() map[string]any {
		return map[string]any{
			"limits": map[string]any{"a": map[string]any{"rates": []any{map[string]any{"n": 5.0}}}, "b": map[string]any{"rates": []any{}}},
			"list":   []any{"x", "y"}, "one": "1",
		}
	}
	held := func() map[string]any {
		return map[string]any{
			"limits": map[string]any{"a": packed(`{"rates": [{"n": 5}]}`), "b": packed(`{"rates": []}`)},
			"list":   packed(`["x", "y"]`), "one": "1",
		}
	}
	for name, expression := range map[string]string{
		"a field below one":                  "spec.limits.a.rates[0].n > 4",
		"all of a map":                       "spec.limits.all(name, spec.limits[name].rates.all(r, r.n > 4))",
		"a map compared":                     `spec.limits == {"a": {"rates": [{"n": 5.0}]}, "b": {"rates": []}}`,
		"one of its values compared":         `spec.limits.a == {"rates": [{"n": 5.0}]}`,
		"the whole spec compared":            "spec == self.spec",
		"a list":                             `"y" in spec.list && spec.list.size() == 2`,
		"whether there is a field":           "has(spec.limits.a.rates) && !has(spec.limits.a.none)",
		"a key that is missing in one":       "spec.limits.b.none == 1",
		"a key that is missing beside one":   "spec.limits.c.rates == []",
		"an error":                           "spec.list > 3",
		"a map in a list":                    `spec.limits.a.rates.exists(r, r == {"n": 5.0})`,
		"a list that is put together of one": `(spec.list + ["z"]).size() == 3`,
	} {
		t.Run(name, func(t *testing.T) {
			evaluate := func(spec map[string]any) merge.Answer { // with a new condition, which has no cached answers
				compiler, err := cel.NewCompiler(1)
				require.NoError(t, err)
				c, err := compiler.Compile(expression)
				require.NoError(t, err)
				return c.Evaluate(spec)
			}
			want, got := evaluate(plain()), evaluate(held())
			assert.Equal(t, want.Met, got.Met)
			assert.Equal(t, want.Missing, got.Missing)
			assert.Equal(t, want.HasSiblings, got.HasSiblings)
			assert.Equal(t, want.Cost, got.Cost)
			if want.Err != nil {
				assert.EqualError(t, got.Err, want.Err.Error())
			} else {
				require.NoError(t, got.Err)
			}
		})
	}
}

// Fields that it does not read stay packed.
func TestConditionsLeaveOtherFieldsPacked(t *testing.T) {
	spec := map[string]any{"a": packed(`{"n": 1}`), "b": packed(`{"n": 2}`)}
	c, err := cel.Compile("spec.a.n == 1.0")
	require.NoError(t, err)
	assert.True(t, c.Evaluate(spec).Met)
	assert.Equal(t, map[string]any{"a": map[string]any{"n": 1.0}, "b": packed(`{"n": 2}`)}, spec)
}
