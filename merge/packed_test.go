package merge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/merge"
)

// words is a list that is stored as one string.
type words string

func (w words) Unpack() any {
	var out []any
	for _, r := range w {
		out = append(out, string(r))
	}
	return out
}

// twin is the same as words, with another type.
type twin words

func (w twin) Unpack() any { return words(w).Unpack() }

func TestEqualOfPackedValues(t *testing.T) {
	list := []any{"a", "b"}
	for name, test := range map[string]struct {
		a, b any
		want bool
	}{
		"both of one type":       {words("ab"), words("ab"), true},
		"two that differ":        {words("ab"), words("ac"), false},
		"one of them":            {words("ab"), list, true},
		"one that differs":       {words("ac"), list, false},
		"of two types":           {words("ab"), twin("ab"), true},
		"of two types, not same": {words("ab"), twin("b"), false},
		"with nothing":           {words("ab"), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, merge.Equal(test.a, test.b))
			assert.Equal(t, test.want, merge.Equal(test.b, test.a))
		})
	}
}

// Conditions get packed values; Result.Spec returns plain ones.
func TestSpecIsPackedForConditionsOnly(t *testing.T) {
	var seen map[string]any
	look := condition{text: "look", answer: func(spec map[string]any) merge.Answer {
		seen = spec
		return merge.Answer{Met: true}
	}}
	r := fold(t, stack(
		policy("gw", when(overrides(mixed, rule("b", 1)), look)),
		policy("route", bare(rule("a.x", words("ab")))),
	)...)
	assert.Equal(t, map[string]any{"a": map[string]any{"x": words("ab")}}, seen)
	assert.Equal(t, map[string]any{"a": map[string]any{"x": []any{"a", "b"}}, "b": int64(1)}, r.Spec())
}

// Maps may be shared, such as aliases of a YAML file: too many paths to visit each.
func TestSharedMapsAreUnpackedOnce(t *testing.T) {
	at := map[string]any{"end": words("ab")}
	for range 60 {
		at = map[string]any{"a": at, "b": at}
	}
	merge.UnpackMaps(at)
	for range 60 {
		at = at["b"].(map[string]any)
	}
	assert.Equal(t, map[string]any{"end": []any{"a", "b"}}, at)
}
