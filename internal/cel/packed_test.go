package cel

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/merge"
	"overrule.dev/overrule/test/tables"
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
	for name, expression := range tables.Read[map[string]string](t, "testdata/tables/conditions-unpack-fields.yaml") {
		t.Run(name, func(t *testing.T) {
			evaluate := func(spec map[string]any) merge.Answer { // with a new condition, which has no cached answers
				return compiledAlone(t, expression).Evaluate(spec)
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
	c, err := Compile("spec.a.n == 1.0")
	require.NoError(t, err)
	assert.True(t, c.Evaluate(spec).Met)
	assert.Equal(t, map[string]any{"a": map[string]any{"n": 1.0}, "b": packed(`{"n": 2}`)}, spec)
}
