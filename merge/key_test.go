package merge_test

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/merge"
	"overrule.dev/overrule/test/messages"
)

func TestKeys(t *testing.T) {
	tests := map[string][]string{
		`a`:                      {"a"},
		`rules.authentication.a`: {"rules", "authentication", "a"},
		`limits["a.b"]`:          {"limits", "a.b"},
		`["a.b"].c`:              {"a.b", "c"},
		`["a.b"]["c d"]`:         {"a.b", "c d"},
		`a-b_C9`:                 {"a-b_C9"},
		`limits[""]`:             {"limits", ""},
		`[""]`:                   {""},
		`limits["\""]`:           {"limits", `"`},
		`limits["ü"]`:            {"limits", "ü"},
		`limits["]"].x`:          {"limits", "]", "x"},
		`limits["\x00\x01"]`:     {"limits", "\x00\x01"},
		`limits["\xff"]`:         {"limits", "\xff"},
	}
	for text, segments := range tests {
		t.Run(text, func(t *testing.T) {
			k, err := merge.ParseKey(text)
			require.NoError(t, err)
			assert.Equal(t, segments, k.Segments())
			assert.Equal(t, text, k.String())
			assert.Equal(t, k, merge.KeyOf(segments...))
		})
	}
	assert.Empty(t, merge.Key{}.Segments())
	assert.Empty(t, merge.Key{}.String())
}

func TestParseInvalidKeys(t *testing.T) {
	tests := map[string]string{ // what is invalid, in quotes
		"":             ``,
		".":            `"."`,
		"a.":           `""`,
		"a..b":         `".b"`,
		"a b":          `" b"`,
		`["a"]b`:       `"b"`,
		`limits[a]`:    `"["`,
		`limits["a"`:   `"]"`,
		`limits["a`:    `"["`,
		`limits.["a"]`: `"[\"a\"]"`,
	}
	for text, part := range tests {
		t.Run(text, func(t *testing.T) {
			_, err := merge.ParseKey(text)
			if text != "" {
				require.ErrorContains(t, err, strconv.Quote(text))
			}
			require.ErrorContains(t, err, part)
			messages.Golden(t, err.Error())
			_, again := merge.ParseName(text)
			require.EqualError(t, again, err.Error())
		})
	}
}

func TestKeyOrder(t *testing.T) {
	ordered := []merge.Key{
		{},
		merge.KeyOf("a"), merge.KeyOf("a", "b"), merge.KeyOf("a", "b", "c"), merge.KeyOf("a", "c"),
		merge.KeyOf("a-b"), merge.KeyOf("a.b"), merge.KeyOf("ab"), merge.KeyOf("b"),
	}
	for i, a := range ordered {
		for j, b := range ordered {
			switch {
			case i < j:
				assert.Negative(t, a.Compare(b), "%s before %s", a, b)
			case i > j:
				assert.Positive(t, a.Compare(b), "%s after %s", a, b)
			default:
				assert.Zero(t, a.Compare(b))
			}
		}
	}
}

func TestKeyHolds(t *testing.T) {
	a := merge.KeyOf("a", "b")
	assert.True(t, a.Holds(a))
	assert.True(t, a.Holds(a.Child("c")))
	assert.False(t, a.Holds(merge.KeyOf("a")))
	assert.False(t, a.Holds(merge.KeyOf("a", "bc")))
	assert.False(t, a.Holds(merge.KeyOf("a.b")))
	assert.False(t, merge.KeyOf("\x00").Holds(merge.KeyOf("\x00\x00")), "a NUL in a segment is no end of it")
}

func TestNames(t *testing.T) {
	tests := map[string]struct{ matches, not []string }{
		"rules.x":       {matches: []string{"rules.x", "rules.x.a", "rules.x.a.b"}, not: []string{"rules", "rules.xy", "rules.y", "x"}},
		"a":             {matches: []string{"a", "rules.x.a", "a.b"}, not: []string{"rules.a.b", "rules.ab", "b.aa"}},
		`["a.b"]`:       {matches: []string{`limits["a.b"]`, `["a.b"].c`}, not: []string{"a.b", "limits.a.b"}},
		`limits["a.b"]`: {matches: []string{`limits["a.b"]`}, not: []string{"limits.a.b", "limits.a"}},
		`[""]`:          {matches: []string{`[""]`, `[""].a`, `limits[""]`}, not: []string{"a", `a[""].b`}},
	}
	for text, test := range tests {
		n, err := merge.ParseName(text)
		require.NoError(t, err)
		assert.Equal(t, text, n.String())
		for _, k := range test.matches {
			assert.True(t, n.Matches(rule(k, 0).Key), "%s means %s", text, k)
			assert.True(t, merge.NewNames([]merge.Name{n}).Match(rule(k, 0).Key), "a list with %s means %s", text, k)
		}
		for _, k := range test.not {
			assert.False(t, n.Matches(rule(k, 0).Key), "%s does not mean %s", text, k)
			assert.False(t, merge.NewNames([]merge.Name{n}).Match(rule(k, 0).Key), "a list with %s does not mean %s", text, k)
		}
		assert.False(t, n.Matches(merge.Key{}), "%s does not mean the spec itself", text)
		assert.False(t, merge.NewNames([]merge.Name{n}).Match(merge.Key{}), "nor does a list with %s", text)
	}
}

func TestEqual(t *testing.T) {
	type object = map[string]any
	same := [][2]any{
		{nil, nil}, {true, true}, {"a", "a"}, {int64(1), int64(1)}, {1.5, 1.5}, {int64(1), 1.0}, {1.0, int64(1)},
		{[]any{}, []any{}}, {[]any{int64(1), "a"}, []any{1.0, "a"}},
		{object{}, object{}}, {object{"a": object{"b": nil}}, object{"a": object{"b": nil}}},
	}
	for _, pair := range same {
		assert.True(t, merge.Equal(pair[0], pair[1]), "%v", pair)
		assert.True(t, merge.Equal(pair[1], pair[0]), "%v", pair)
	}
	different := [][2]any{
		{nil, false}, {nil, object{}}, {true, "true"}, {"1", int64(1)}, {int64(1), int64(2)}, {int64(1), 1.5}, {1.5, 2.5},
		{[]any{"a"}, []any{"b"}}, {[]any{"a"}, []any{"a", "a"}}, {[]any{}, object{}}, {[]any{}, nil},
		{object{"a": nil}, object{}}, {object{"a": nil}, object{"b": nil}}, {object{"a": int64(1)}, object{"a": int64(2)}},
		{int32(1), int32(1)}, // not decoded JSON
		{math.NaN(), math.NaN()},
	}
	for _, pair := range different {
		assert.False(t, merge.Equal(pair[0], pair[1]), "%v", pair)
		assert.False(t, merge.Equal(pair[1], pair[0]), "%v", pair)
	}
}

func TestStrings(t *testing.T) {
	for text, want := range map[string]merge.Strategy{"atomic": merge.Atomic, "merge": merge.Merge, "patch": merge.Patch} {
		got, ok := merge.ParseStrategy(text)
		assert.True(t, ok)
		assert.Equal(t, want, got)
		assert.Equal(t, text, got.String())
	}
	for _, text := range []string{"", "Atomic", "replace"} {
		_, ok := merge.ParseStrategy(text)
		assert.False(t, ok, text)
	}
	var names []string
	for _, b := range []merge.Block{merge.Defaults, merge.Bare, merge.Overrides, merge.Object, merge.Unset} {
		names = append(names, b.String())
	}
	assert.Equal(t, []string{"defaults", "bare", "overrides", "object", "unset"}, names)
	assert.True(t, slices.IsSorted([]merge.Block{merge.Defaults, merge.Bare, merge.Overrides}))
}

func TestAncestor(t *testing.T) {
	for name, test := range map[string]struct {
		key  string
		n    int
		want string
		ok   bool
	}{
		"none of its segments":          {"a.b.c", 0, "", true},
		"the first":                     {"a.b.c", 1, "a", true},
		"all but the last":              {"a.b.c", 2, "a.b", true},
		"all of them":                   {"a.b.c", 3, "a.b.c", true},
		"more than it has":              {"a.b.c", 4, "", false},
		"a name in quotes":              {`a["b.c"].d`, 2, `a["b.c"]`, true},
		"before a name in quotes":       {`a.b["c.d"]`, 2, "a.b", true},
		"a name with the separator":     {`a["\x00"].b`, 2, `a["\x00"]`, true},
		"a name with the escape for it": {`a["\x01"].b`, 2, `a["\x01"]`, true},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := merge.ParseKey(test.key)
			require.NoError(t, err)
			got, ok := k.Ancestor(test.n)
			assert.Equal(t, test.ok, ok)
			assert.Equal(t, test.want, got.String())
			if test.want != "" {
				want, err := merge.ParseKey(test.want)
				require.NoError(t, err)
				assert.Equal(t, want, got)
			}
		})
	}
}
