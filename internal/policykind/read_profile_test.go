package policykind_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/tables"
)

// The content, the blocks and the strategies of a profile.
func TestReadByProfile(t *testing.T) {
	tests := tables.Read[map[string]struct {
		Profile, Spec string
		Want          []string
	}](t, "testdata/tables/read-by-profile.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := test.Spec
			k := mustCompile(t, test.Profile)
			if k.Targets.Fields[0] == "targetRef" {
				text = onRoute + text
			}
			p := spec(t, k, text)
			require.NoError(t, p.Invalid)
			assert.Equal(t, test.Want, blocksOf(p))
			assert.Equal(t, k.LowerDecidesStrategy(), p.StrategyOnHigher != nil)
		})
	}
	t.Run("a policy without a namespace is collected under its name", func(t *testing.T) {
		p := mustCompile(t, "sameTarget: collect").Read(object(t, "metadata: {name: p}\nspec: {"+onRoute[:len(onRoute)-1]+"}"), created)
		assert.Equal(t, []string{"bare atomic", "  p=map[]"}, blocksOf(p))
	})
}

func TestReadInvalidContent(t *testing.T) {
	tests := tables.Read[map[string]struct{ Profile, Spec, Want string }](t, "testdata/tables/read-invalid-content.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := spec(t, mustCompile(t, test.Profile), onRoute+test.Spec)
			assert.Equal(t, []string{test.Want}, messages.Fields(t, p.Invalid))
			assert.Len(t, p.Targets, 1, "its targets are known all the same")
		})
	}
	t.Run("an annotation in the order", func(t *testing.T) {
		p := weighing(t, "order: {annotation: example.com/weight}", "heavy")
		assert.Equal(t, []string{`metadata.annotations[example.com/weight]: Invalid value: "heavy"`}, messages.Fields(t, p.Invalid))
	})
}

// The strategy that a lower policy sets.
func TestStrategyOnHigher(t *testing.T) {
	k := mustCompile(t, "strategy: {by: lower, allowed: [atomic, patch], bareField: mergeType, spellings: {StrategicMerge: patch}}")
	for text, want := range map[string]merge.Strategy{
		"": merge.Atomic, "mergeType: null": merge.Atomic, "mergeType: StrategicMerge": merge.Patch,
	} {
		p := spec(t, k, onRoute+text)
		require.NoError(t, p.Invalid, text)
		require.NotNil(t, p.StrategyOnHigher, text)
		assert.Equal(t, want, *p.StrategyOnHigher, text)
	}
}

// The lower policy decides how the higher one is applied if the profile sets so, or if the
// closest policy replaces those above it.
func TestLowerDecidesStrategy(t *testing.T) {
	for profile, want := range tables.Read[map[string]bool](t, "testdata/tables/lower-decides-strategy.yaml") {
		k := mustCompile(t, profile)
		assert.Equal(t, want, k.LowerDecidesStrategy(), profile)
		assert.Equal(t, want, spec(t, k, onRoute).StrategyOnHigher != nil, profile)
	}
}

// A policy without rules replaces those above it, or changes nothing if it is merged.
func TestAbove(t *testing.T) {
	k := mustCompile(t, "strategy: {by: lower, allowed: [atomic, patch], bareField: mergeType}")
	replaces, merges := spec(t, k, onRoute+"a: 1"), spec(t, k, onRoute+"mergeType: patch\na: 1")
	empty, nothing := spec(t, k, onRoute), spec(t, k, onRoute+"mergeType: patch")
	atomic, patch := &merge.Reading{Block: merge.Bare, By: &replaces.Policy}, &merge.Reading{Block: merge.Bare, Strategy: merge.Patch}
	by := &merge.Reading{Block: merge.Bare, By: &empty.Policy}
	for _, below := range []*merge.Reading{nil, patch} {
		assert.Equal(t, atomic, replaces.Above(below))
		assert.Equal(t, patch, merges.Above(below))
		assert.Equal(t, by, empty.Above(below))
		assert.Equal(t, below, nothing.Above(below))
	}
	for _, p := range []*policykind.Policy{replaces, merges, empty, nothing} {
		assert.Same(t, by, p.Above(by), "there is no way past one that replaces")
	}
	other := spec(t, mustCompile(t, "strategy: {allowed: [merge]}"), onRoute)
	assert.Nil(t, other.Above(nil), "the higher dictates")
}

// weighing reads a policy app/p with the annotation example.com/weight.
func weighing(t testing.TB, text, weight string) *policykind.Policy {
	o := object(t, "metadata: {namespace: app, name: p}\nspec: {"+onRoute[:len(onRoute)-1]+"}")
	o["metadata"].(map[string]any)["annotations"] = map[string]any{"example.com/weight": weight}
	return mustCompile(t, text).Read(o, created)
}

// spec.order of a profile: the lower rank comes first.
func TestRank(t *testing.T) {
	tests := tables.Read[map[string]struct {
		Profile, Spec string
		Want          int
	}](t, "testdata/tables/rank.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := spec(t, mustCompile(t, test.Profile), onRoute+test.Spec)
			require.NoError(t, p.Invalid)
			assert.Equal(t, test.Want, p.Rank)
		})
	}
	t.Run("an annotation", func(t *testing.T) {
		p := weighing(t, "order: {annotation: example.com/weight, highestFirst: true}", "10")
		require.NoError(t, p.Invalid)
		assert.Equal(t, -10, p.Rank)
		assert.Equal(t, -2, spec(t, mustCompile(t, "order: {annotation: example.com/weight, highestFirst: true, default: '2'}"), onRoute).Rank)
	})
	t.Run("two keys: the second only where the first are level", func(t *testing.T) {
		k := mustCompile(t, "order: {field: phase, values: [AUTHN, AUTHZ], default: AUTHZ, then: {field: priority, highestFirst: true, default: '0'}}")
		var ranks []int
		for _, text := range []string{
			"phase: AUTHN\npriority: 2147483647\n", "phase: AUTHN\npriority: 5\n", "phase: AUTHN\n", "phase: AUTHN\npriority: -2147483648\n",
			"phase: AUTHZ\npriority: 2147483647\n", "priority: 5\n", "", "priority: -2147483648\n",
		} {
			p := spec(t, k, onRoute+text)
			require.NoError(t, p.Invalid)
			ranks = append(ranks, p.Rank)
		}
		assert.IsIncreasing(t, ranks)
	})
}

// Keyed lists are merged item by item, and restored as lists.
func TestKeyedLists(t *testing.T) {
	k := mustCompile(t, "strategy: {allowed: [patch]}\nlists: [{path: metrics, key: name}, {path: 'metrics.*.tags', key: id}, {path: 'zones.*.ports', key: name}, {path: spans, key: match.mode, default: BOTH}, {path: only, default: it}]\n")
	tests := tables.Read[map[string]struct {
		Spec  string
		Want  []string
		Shape string // spec again, if not what was read
	}](t, "testdata/tables/keyed-lists.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := spec(t, k, onRoute+test.Spec)
			require.NoError(t, p.Invalid)
			assert.Equal(t, append([]string{"bare patch"}, test.Want...), blocksOf(p))
			shape := test.Shape
			if shape == "" {
				shape = test.Spec
			}
			assert.Equal(t, object(t, shape), k.Shape(tree(p.Blocks[0].Rules)))
		})
	}
}

// tree returns the nested value of rules.
func tree(rules []merge.Rule) map[string]any {
	out := make(map[string]any)
	for _, r := range rules {
		at := out
		segments := r.Key.Segments()
		last := len(segments) - 1
		for _, s := range segments[:last] {
			if _, ok := at[s]; !ok {
				at[s] = map[string]any{}
			}
			at = at[s].(map[string]any)
		}
		at[segments[last]] = r.Value
	}
	return out
}

// A condition reads the lists of the object.
func TestConditionsReadKeyedLists(t *testing.T) {
	k := mustCompile(t, "blocks: {overrides: [overrides], when: when}\nstrategy: {allowed: [patch]}\nlists: [{path: metrics, key: name}]\n")
	p := spec(t, k, onRoute+"overrides: {when: 'spec.metrics.exists(m, m.name == \"a\" && m.limit > 5)', metrics: [{name: a, limit: 5}]}")
	require.NoError(t, p.Invalid)
	require.Len(t, p.Blocks, 1)
	when := p.Blocks[0].When
	assert.Equal(t, `spec.metrics.exists(m, m.name == "a" && m.limit > 5)`, when.String())
	for limit, met := range map[int64]bool{9: true, 5: false} {
		answer := when.Evaluate(map[string]any{"metrics": map[string]any{"a": map[string]any{"name": "a", "limit": limit}}})
		require.NoError(t, answer.Err)
		assert.Equal(t, met, answer.Met, limit)
	}
}

// The fields of a route that a kind controls.
func TestControls(t *testing.T) {
	k := mustCompile(t, "fields: [{rule: timeout, route: 'spec.rules[*].timeouts.request'}, {rule: 'a[\"b.c\"]', route: spec.hostnames, kinds: [HTTPRoute, GRPCRoute]}]")
	assert.Equal(t, []policykind.Field{
		{
			Rule: merge.KeyOf("timeout"), Kinds: []string{"HTTPRoute"},
			Route: []policykind.Segment{{Name: "spec"}, {Name: "rules", List: true}, {Name: "timeouts"}, {Name: "request"}},
		},
		{
			Rule: merge.KeyOf("a", "b.c"), Kinds: []string{"HTTPRoute", "GRPCRoute"},
			Route: []policykind.Segment{{Name: "spec"}, {Name: "hostnames"}},
		},
	}, k.Controls())
	k = mustCompile(t, "fields: [{rule: a, route: 'spec.rules[*].filters[*].x.a'}, {rule: b, route: 'spec.rules[*].filters[*].x.b'}]")
	assert.Len(t, k.Controls(), 2, "fields of the items of one list")
}

// The rules of a route's own value.
func TestFieldRules(t *testing.T) {
	whole := mustCompile(t, "fields: [{rule: retry, route: 'spec.rules[*].retry'}]")
	leaves := mustCompile(t, "strategy: {allowed: [patch]}\nfields: [{rule: retry, route: 'spec.rules[*].retry'}]")
	value := map[string]any{"attempts": int64(3), "codes": []any{int64(503)}}
	retry := merge.KeyOf("retry")
	assert.Equal(t, []merge.Rule{{Key: retry, Value: value}}, whole.FieldRules(whole.Controls()[0], value))
	assert.ElementsMatch(t, []merge.Rule{
		{Key: retry.Child("attempts"), Value: int64(3)}, {Key: retry.Child("codes"), Value: []any{int64(503)}},
	}, leaves.FieldRules(leaves.Controls()[0], value))
	for _, k := range []*policykind.Kind{whole, leaves} {
		assert.Equal(t, []merge.Rule{{Key: retry, Value: "3"}}, k.FieldRules(k.Controls()[0], "3"))
		assert.Empty(t, k.FieldRules(k.Controls()[0], nil), "unset")
	}
}

// Policies differ in any field except the version.
func TestPolicySame(t *testing.T) {
	k := mustCompile(t, "blocks: {overrides: [overrides], when: when}\nstrategy: {by: lower, allowed: [patch, merge], bareField: mergeType}\norder: {field: rank}\nunset: [unset]\ntargets: {workloads: [selector]}\n")
	const text = onRoute + "rank: 1\nunset: [a]\nb: {}\noverrides: {when: 'true', c: 1}\n"
	read := func() *policykind.Policy { return spec(t, k, text) }
	require.NoError(t, read().Invalid)
	assert.True(t, read().Same(read()))
	other := merge.Merge
	for name, edit := range map[string]func(*policykind.Policy){
		"kind":      func(p *policykind.Policy) { p.Kind = mustCompile(t, "{}") },
		"namespace": func(p *policykind.Policy) { p.Namespace = "x" },
		"name":      func(p *policykind.Policy) { p.Name = "x" },
		"age":       func(p *policykind.Policy) { p.Created++ },
		"rank":      func(p *policykind.Policy) { p.Rank++ },
		"targets":   func(p *policykind.Policy) { p.Targets[0].Port = 80 },
		"one more":  func(p *policykind.Policy) { p.Targets = append(p.Targets, p.Targets[0]) },
		"onto":      func(p *policykind.Policy) { p.StrategyOnHigher = &other },
		"no onto":   func(p *policykind.Policy) { p.StrategyOnHigher = nil },
		"unread":    func(p *policykind.Policy) { p.Unread = "x" },
		"invalid":   func(p *policykind.Policy) { p.Invalid = assert.AnError },
		"unset":     func(p *policykind.Policy) { p.Unset = nil },
		"block":     func(p *policykind.Policy) { p.Blocks[0].Block = merge.Defaults },
		"strategy":  func(p *policykind.Policy) { p.Blocks[0].Strategy = merge.Merge },
		"condition": func(p *policykind.Policy) { p.Blocks[1].When = nil },
		"rule":      func(p *policykind.Policy) { p.Blocks[0].Rules[0].Key = merge.KeyOf("x") },
		"hollow":    func(p *policykind.Policy) { p.Blocks[0].Rules[0].EmptyMap = false },
		"value":     func(p *policykind.Policy) { p.Blocks[1].Rules[0].Value = int64(2) },
	} {
		p := read()
		edit(p)
		assert.False(t, p.Same(read()), name)
		assert.False(t, read().Same(p), name)
	}
	a, b := spec(t, k, "rank: x"), spec(t, k, "rank: y")
	assert.False(t, a.Same(b), "invalid for another reason")
	assert.True(t, a.Same(spec(t, k, "rank: x")))
	c, d := spec(t, k, onRoute+"overrides: {when: 'true', c: 1}"), spec(t, k, onRoute+"overrides: {when: 'false', c: 1}")
	assert.False(t, c.Same(d), "another condition")
}
