package cel

import (
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestListBounds(t *testing.T) {
	l := value([]any{"a"}, location{index: -1}).(*list)
	assert.Equal(t, types.String("a"), l.Get(types.Int(0)))
	for _, index := range []ref.Val{types.Int(1), types.Int(-1), types.String("a"), types.Double(0.5)} {
		assert.True(t, types.IsError(l.Get(index)), index)
	}
}

func TestMissingKeyPath(t *testing.T) {
	top := &object{}
	limits := &object{location: location{parent: &top.location, key: "limits", index: -1}}
	rates := &list{location: location{parent: &limits.location, key: "x.y", index: -1}}
	inner := &list{location: location{parent: &rates.location, index: 2}}
	last := &object{location: location{parent: &inner.location, index: 0}}
	assert.Equal(t, "limits", (&missingKeyError{from: top, key: "limits"}).path())
	assert.Equal(t, `limits["a b"]`, (&missingKeyError{from: limits, key: "a b"}).path())
	assert.Equal(t, `limits["x.y"][2][0].limit`, (&missingKeyError{from: last, key: "limit"}).path())
}

func TestCostFunctionsExist(t *testing.T) {
	env, err := newEnvironment(conditions)
	require.NoError(t, err)
	s, err := newCostEstimator(env.Env)
	require.NoError(t, err)
	for name := range costFunctions {
		assert.Contains(t, s.functions, name)
	}
}

func TestValueSizeStopsAtLimit(t *testing.T) {
	shared := []any{int64(1)}
	for range 64 {
		shared = []any{shared, shared}
	}
	got := valueSize(value(shared, location{index: -1}))
	assert.Greater(t, got, uint64(Limit))
	assert.Less(t, got, uint64(2*Limit))
	assert.Equal(t, uint64(1+1+1+1), valueSize(value(map[string]any{"a": []any{int64(1)}}, location{})), "a map, its key, a list, its element")
	assert.Equal(t, valueSize(value(map[string]any{"a": "b"}, location{})), valueSize(types.NewStringInterfaceMap(types.DefaultTypeAdapter, map[string]any{"a": "b"})))
}
