package policykind_test

import (
	"encoding/json"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/decode"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// ruleValues are values of rules as the API server sends them.
var ruleValues = map[string]string{
	"nothing":              `null`,
	"a text":               `"x"`,
	"a number":             `3`,
	"an object":            `{"b": [1, {"c": null}], "a": true, "<&>": "<\u2028&>"}`,
	"an empty object":      `{}`,
	"a list":               `["x", -1, [], {}]`,
	"a large number":       `{"n": 9223372036854775807}`,
	"a fraction":           `{"n": 0.5}`,
	"a fraction that is 1": `{"a": [{"n": 1.0}]}`,
	"quotes":               `{"\"\\\n": "\u0000\u001f\ud83d\ude00"}`,
}

// policyWith reads a policy with one rule of a value.
func policyWith(t *testing.T, value string) *policykind.Policy {
	t.Helper()
	object, err := decode.Object([]byte(`{"metadata": {"namespace": "app", "name": "p"},
		"spec": {"targetRef": {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "r"}, "rule": ` + value + `}}`))
	require.NoError(t, err)
	p := mustCompile(t, "rules: [rule]").Read(object, merge.Newest)
	require.NoError(t, p.Invalid)
	return p
}

// A packed policy is the same for the fold, for conditions, and as JSON.
func TestPackKeepsContent(t *testing.T) {
	for name, text := range ruleValues {
		t.Run(name, func(t *testing.T) {
			p := policyWith(t, text)
			packed := p.Pack()
			assert.True(t, p.Same(packed))
			assert.True(t, packed.Same(p))
			assert.True(t, packed.Same(p.Pack()))
			assert.NotEqual(t, p.Version, packed.Version, "what is remembered of the one is not about the other")
			was, is := p.Blocks[0].Rules[0].Value, packed.Blocks[0].Rules[0].Value
			assert.Equal(t, was, merge.Plain(is))
			assert.True(t, merge.Equal(was, is))
			assert.True(t, merge.Equal(is, was))
			want, err := json.Marshal(was)
			require.NoError(t, err)
			got, err := json.Marshal(is)
			require.NoError(t, err)
			assert.Equal(t, string(want), string(got))
		})
	}
}

func TestPackedPoliciesDiffer(t *testing.T) {
	for name, text := range ruleValues {
		for other, with := range ruleValues {
			if name == other {
				continue
			}
			assert.False(t, policyWith(t, text).Pack().Same(policyWith(t, with).Pack()), "%s and %s", name, other)
			assert.False(t, policyWith(t, text).Pack().Same(policyWith(t, with)), "%s and %s", name, other)
		}
	}
}

func TestPackedPoliciesShareStrings(t *testing.T) {
	one, other := policyWith(t, "1").Pack(), policyWith(t, "2").Pack()
	for what, texts := range map[string][2]string{
		"key":       {one.Blocks[0].Rules[0].Key.String(), other.Blocks[0].Rules[0].Key.String()},
		"group":     {one.Targets[0].Ref.Group, other.Targets[0].Ref.Group},
		"kind":      {one.Targets[0].Ref.Kind, other.Targets[0].Ref.Kind},
		"namespace": {one.Namespace, other.Namespace},
	} {
		assert.Equal(t, texts[0], texts[1])
		assert.Same(t, unsafe.StringData(texts[0]), unsafe.StringData(texts[1]), what)
	}
	assert.Len(t, one.Blocks[0].Rules, cap(one.Blocks[0].Rules), "a list has no room to grow")
}

// A condition of a kind with keyed lists reads lists of plain values.
func TestConditionReadsPackedListItems(t *testing.T) {
	k := mustCompile(t, "strategy: {allowed: [patch]}\nblocks: {overrides: [overrides], when: when}\nlists: [{path: parts, key: name}]\nwhole: [parts.*.types]")
	read := func(text string) *policykind.Policy {
		object, err := decode.Object([]byte(text))
		require.NoError(t, err)
		p := k.Read(object, merge.Newest)
		require.NoError(t, p.Invalid)
		return p.Pack()
	}
	const target = `"targetRef": {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "r"}`
	top := read(`{"metadata": {"namespace": "app", "name": "top"}, "spec": {` + target + `,
		"overrides": {"when": "spec.parts.exists(p, 'text' in p.types && p.more.a == 1)", "x": 1}}}`)
	own := read(`{"metadata": {"namespace": "app", "name": "own"}, "spec": {` + target + `, "parts": [{"name": "n", "types": ["text"], "more": {"a": 1}}]}}`)
	r, err := merge.Fold([]merge.Layer{{Policy: &top.Policy}, {Policy: &own.Policy, Level: 1}}, nil)
	require.NoError(t, err)
	assert.Empty(t, r.Notes)
	assert.Equal(t, int64(1), r.Spec()["x"])
}
