package policykind_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
	"overrule.dev/overrule/test/messages"
)

// The content, the blocks and the strategies of a profile.
func TestReadByProfile(t *testing.T) {
	const blocks = "blocks: {defaults: [defaults], overrides: [overrides], when: when}\n"
	tests := map[string]struct {
		profile, spec string
		want          []string
	}{
		"content under a field, and nothing beside it": {
			"content: default", "default: {a: 1, b: {c: 2}}\nother: 1\n", []string{"bare atomic", "  a=1", "  b=map[c:2]"},
		},
		"content that lies deeper": {
			"content: policy.conf", "policy: {conf: {a: 1}, other: 1}\n", []string{"bare atomic", "  a=1"},
		},
		"content that is not there": {"content: default", "other: 1\n", nil},
		"content that is null":      {"content: default", "default: null\n", nil},
		"content that is empty":     {"content: default", "default: {}\n", nil},
		"blocks below the content": {
			blocks + "content: conf\nstrategy: {allowed: [atomic, merge], field: strategy}\n",
			"conf: {overrides: {strategy: merge, when: 'true', a: 1}, b: 2}\noverrides: {c: 3}\n",
			[]string{"bare atomic", "  b=2", "overrides merge when true", "  a=1"},
		},
		"rule keys are relative to the content": {
			"content: conf\nrules: [limits.*]\n", "conf: {limits: {a: 1, b: 2}}\n", []string{"bare atomic", "  limits.a=1", "  limits.b=2"},
		},
		"what is ignored is no content, nor what it leaves empty": {
			"ignore: [priority, deep.note]", "priority: 5\na: 1\ndeep: {note: x}\n", []string{"bare atomic", "  a=1"},
		},
		"what stands beside it is": {
			"ignore: [deep.note]", "deep: {note: x, b: 1}\n", []string{"bare atomic", "  deep=map[b:1]"},
		},
		"what is ignored is relative to the content": {
			"content: conf\nignore: [note]\n", "conf: {note: x, a: 1}\n", []string{"bare atomic", "  a=1"},
		},
		"a target that lies deeper leaves no empty object behind": {
			"targets: {fields: [policy.ref, targetRef]}", "policy: {ref: {kind: HTTPRoute, name: r}}\na: 1\n", []string{"bare atomic", "  a=1"},
		},
		"what no object holds is not there": {
			"targets: {fields: [policy.ref.deep, targetRef]}\nignore: [policy.x]\n", "policy: 5\ntargetRef: {kind: HTTPRoute, name: r}\n", []string{"bare atomic", "  policy=5"},
		},
		"but what stands beside it": {
			"targets: {fields: [policy.ref, targetRef]}", "policy: {ref: {kind: HTTPRoute, name: r}, b: 2}\na: 1\n", []string{"bare atomic", "  a=1", "  policy=map[b:2]"},
		},

		"bare rules that a field makes overrides": {
			"blocks: {bare: {field: strategy.inheritance, overrides: [Override, Force]}}", "strategy: {inheritance: Override}\na: 1\n", []string{"overrides atomic", "  a=1"},
		},
		"by each of the values": {
			"blocks: {bare: {field: strategy.inheritance, overrides: [Override, Force]}}", "strategy: {inheritance: Force}\na: 1\n", []string{"overrides atomic", "  a=1"},
		},
		"another value leaves them bare": {
			"blocks: {bare: {field: strategy.inheritance, overrides: [Override]}}", "strategy: {inheritance: Default}\na: 1\n", []string{"bare atomic", "  a=1"},
		},
		"and so does none": {
			"blocks: {bare: {field: strategy.inheritance, overrides: [Override]}}", "strategy: {inheritance: null}\na: 1\n", []string{"bare atomic", "  a=1"},
		},
		"a block beside them stays what it is": {
			"blocks: {defaults: [defaults], bare: {field: mode, overrides: [Override]}}", "mode: Override\na: 1\ndefaults: {b: 2}\n",
			[]string{"defaults atomic", "  b=2", "overrides atomic", "  a=1"},
		},
		"a kind whose one strategy is merge": {
			"strategy: {allowed: [merge]}", "strategy: atomic\na: 1\n", []string{"bare merge", "  a=1", "  strategy=atomic"},
		},
		"other words for a strategy": {
			blocks + "strategy: {allowed: [atomic, merge], field: how, bareField: mergeType, spellings: {Deep: merge, Replace: atomic}}",
			"overrides: {how: Deep, a: 1}\nmergeType: Deep\nb: 1\ndefaults: {how: Replace, c: 1}\n",
			[]string{"defaults atomic", "  c=1", "bare merge", "  b=1", "overrides merge", "  a=1"},
		},
		"its own words are known all the same": {
			"strategy: {allowed: [atomic, merge], bareField: mergeType, spellings: {Deep: merge}}", "mergeType: merge\nb: 1\n", []string{"bare merge", "  b=1"},
		},
		"a whole content as one rule, beside others": {
			blocks + "sameTarget: collect", "a: 1\noverrides: {b: 2}\n", []string{"bare atomic", `  ["app/p"]=map[a:1 overrides:map[b:2]]`},
		},
		"an empty one says something, too": {
			"sameTarget: collect\nstrategy: {allowed: [merge]}\n", "", []string{"bare merge", `  ["app/p"]=map[]`},
		},
		"without what is ignored": {
			"sameTarget: collect\nignore: [priority]\n", "priority: 1\na: 1\n", []string{"bare atomic", `  ["app/p"]=map[a:1]`},
		},
		"a collected content that a field makes an override": {
			"sameTarget: collect\nblocks: {bare: {field: mode, overrides: [Override]}}\n", "mode: Override\na: 1\n", []string{"overrides atomic", `  ["app/p"]=map[a:1]`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := test.spec
			k := mustCompile(t, test.profile)
			if k.Targets.Fields[0] == "targetRef" {
				text = onRoute + text
			}
			p := spec(t, k, text)
			require.NoError(t, p.Invalid)
			assert.Equal(t, test.want, blocksOf(p))
			assert.Equal(t, k.LowerDecidesStrategy(), p.StrategyOnHigher != nil)
		})
	}
	t.Run("a policy without a namespace is collected under its name", func(t *testing.T) {
		p := mustCompile(t, "sameTarget: collect").Read(object(t, "metadata: {name: p}\nspec: {"+onRoute[:len(onRoute)-1]+"}"), created)
		assert.Equal(t, []string{"bare atomic", "  p=map[]"}, blocksOf(p))
	})
}

func TestReadInvalidContent(t *testing.T) {
	tests := map[string]struct{ profile, spec, want string }{
		"content that is no object":        {"content: policy.conf", "policy: {conf: [a]}", `spec.policy.conf: Invalid value: "list"`},
		"a block in it that is none":       {"content: conf\nblocks: {defaults: [defaults]}\n", "conf: {defaults: 1}", `spec.conf.defaults: Invalid value: "number"`},
		"the field of bare rules":          {"blocks: {bare: {field: a.b, overrides: [x]}}", "a: {b: 1}", `spec.a.b: Invalid value: "number"`},
		"a word for no strategy":           {"strategy: {allowed: [atomic, merge], bareField: mergeType, spellings: {Deep: merge}}", "mergeType: Flat", `spec.mergeType: Unsupported value: "Flat"`},
		"a strategy that it does not have": {"strategy: {allowed: [atomic], bareField: mergeType}", "mergeType: merge", `spec.mergeType: Unsupported value: "merge"`},
		"a number in the order":            {"order: {field: rank}", "rank: first", `spec.rank: Invalid value: "first"`},
		"a fraction in the order":          {"order: {field: rank}", "rank: 1.5", `spec.rank: Invalid value: "1.5"`},
		"a number that is too large":       {"order: {field: rank}", "rank: 9007199254740993", `spec.rank: Invalid value: "9007199254740993"`},
		"a value in the order":             {"order: {field: deep.phase, values: [first, last]}", "deep: {phase: next}", `spec.deep.phase: Unsupported value: "next"`},
		"the second key of the order":      {"order: {field: phase, then: {field: rank}}", "phase: 1\nrank: x", `spec.rank: Invalid value: "x"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := spec(t, mustCompile(t, test.profile), onRoute+test.spec)
			assert.Equal(t, []string{test.want}, messages.Fields(t, p.Invalid))
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
		"": merge.Atomic, "mergeType: null": merge.Atomic, "mergeType: StrategicMerge": merge.Patch, "mergeType: patch": merge.Patch,
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
	for profile, want := range map[string]bool{
		"strategy: {by: lower, allowed: [merge]}": true,
		"":                             true,
		"strategy: {by: higher}":       true,
		"content: a":                   true,
		"strategy: {allowed: [merge]}": false,
		"strategy: {allowed: [atomic, merge], bareField: how}":           false,
		"blocks: {defaults: [defaults]}":                                 false,
		"blocks: {overrides: [overrides]}":                               false,
		"blocks: {bare: {field: mode, overrides: [Override]}}":           false,
		"sameTarget: collect":                                            false,
		"sameTarget: collect\nstrategy: {by: lower, allowed: [merge]}\n": false,
	} {
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
	atomic, patch := &merge.Reading{Block: merge.Bare}, &merge.Reading{Block: merge.Bare, Strategy: merge.Patch}
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

// An annotation of a route sets how the bare rules above it are applied.
func TestReadings(t *testing.T) {
	k := mustCompile(t, `strategy: {allowed: [merge], annotation: {name: example.com/how, values: {
		Shallow: {strategy: merge}, Prefer: {strategy: merge, overrides: true}, Deep: {strategy: patch}, '': {strategy: atomic}}}}`)
	tests := map[string]struct {
		annotations map[string]string
		want        *merge.Reading
	}{
		"defaults":                {map[string]string{"example.com/how": "Shallow"}, &merge.Reading{Block: merge.Bare, Strategy: merge.Merge}},
		"overrides":               {map[string]string{"example.com/how": "Prefer", "a": "b"}, &merge.Reading{Block: merge.Overrides, Strategy: merge.Merge}},
		"another strategy":        {map[string]string{"example.com/how": "Deep"}, &merge.Reading{Block: merge.Bare, Strategy: merge.Patch}},
		"an empty value":          {map[string]string{"example.com/how": ""}, &merge.Reading{Block: merge.Bare, Strategy: merge.Atomic}},
		"any other means nothing": {map[string]string{"example.com/how": "prefer"}, nil},
		"another annotation":      {map[string]string{"example.com/what": "Prefer"}, nil},
		"none":                    {nil, nil},
	}
	for name, test := range tests {
		assert.Equal(t, test.want, k.Reading(test.annotations), name)
	}
	p := spec(t, k, onRoute+"a: {b: 1}\n")
	assert.Equal(t, []string{"bare merge", "  a.b=1"}, blocksOf(p), "a kind that some annotation patches has leaves as rules")
}

// weighing reads a policy app/p with the annotation example.com/weight.
func weighing(t testing.TB, text, weight string) *policykind.Policy {
	o := object(t, "metadata: {namespace: app, name: p}\nspec: {"+onRoute[:len(onRoute)-1]+"}")
	o["metadata"].(map[string]any)["annotations"] = map[string]any{"example.com/weight": weight}
	return mustCompile(t, text).Read(o, created)
}

// spec.order of a profile: the lower rank comes first.
func TestRank(t *testing.T) {
	const phases = "order: {field: phase, values: [AUTHN, AUTHZ, STATS], default: STATS}"
	tests := map[string]struct {
		profile, spec string
		want          int
	}{
		"no order":                       {"{}", "priority: 5", 0},
		"a number":                       {"order: {field: priority}", "priority: 5", 5},
		"below zero":                     {"order: {field: priority}", "priority: -5", -5},
		"a number as text":               {"order: {field: priority}", "priority: '5'", 5},
		"no number":                      {"order: {field: priority}", "a: 1", 0},
		"a null":                         {"order: {field: priority, default: '3'}", "priority: null", 3},
		"the default":                    {"order: {field: priority, default: '7'}", "a: 1", 7},
		"the highest first":              {"order: {field: priority, highestFirst: true}", "priority: 5", -5},
		"its default, too":               {"order: {field: priority, highestFirst: true, default: '7'}", "a: 1", -7},
		"a field that lies deeper":       {"order: {field: deep.priority}", "deep: {priority: 5}", 5},
		"the first value":                {phases, "phase: AUTHN", 0},
		"the second":                     {phases, "phase: AUTHZ", 1},
		"the value of one that has none": {phases, "a: 1", 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := spec(t, mustCompile(t, test.profile), onRoute+test.spec)
			require.NoError(t, p.Invalid)
			assert.Equal(t, test.want, p.Rank)
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
	k := mustCompile(t, "strategy: {allowed: [patch]}\nlists: [{path: metrics, key: name}, {path: 'metrics.*.tags', key: id}, {path: 'zones.*.ports', key: name}]\n")
	tests := map[string]struct {
		spec  string
		want  []string
		shape string // spec again, if not what was read
	}{
		"items by their key": {
			spec:  "metrics: [{name: b, up: true}, {name: a, down: {x: 1}}]",
			want:  []string{"  metrics.a.down.x=1", "  metrics.a.name=a", "  metrics.b.name=b", "  metrics.b.up=true"},
			shape: "metrics: [{name: a, down: {x: 1}}, {name: b, up: true}]", // by key
		},
		"a list inside an item": {
			spec: "metrics: [{name: a, tags: [{id: x, v: 1}]}]",
			want: []string{"  metrics.a.name=a", "  metrics.a.tags.x.id=x", "  metrics.a.tags.x.v=1"},
		},
		"a list behind a star": {
			spec: "zones: {eu: {ports: [{name: http, nr: 80}]}, us: {ports: [{name: http}], other: [{name: a}]}}",
			want: []string{"  zones.eu.ports.http.name=http", "  zones.eu.ports.http.nr=80", "  zones.us.other=[map[name:a]]", "  zones.us.ports.http.name=http"},
		},
		"an item without a key: one value":  {spec: "metrics: [{name: a}, {up: true}]", want: []string{"  metrics=[map[name:a] map[up:true]]"}},
		"a key twice: one value":            {spec: "metrics: [{name: a}, {name: a, up: true}]", want: []string{"  metrics=[map[name:a] map[name:a up:true]]"}},
		"a key that is no text: one value":  {spec: "metrics: [{name: 1}]", want: []string{"  metrics=[map[name:1]]"}},
		"an item that is none: one value":   {spec: "metrics: [a]", want: []string{"  metrics=[a]"}},
		"an empty list: one value":          {spec: "metrics: []", want: []string{"  metrics=[]"}},
		"a list of another name: one value": {spec: "others: [{name: a}]", want: []string{"  others=[map[name:a]]"}},
		"no list: what it is":               {spec: "metrics: 5", want: []string{"  metrics=5"}},
		"a key with dots is one segment":    {spec: "metrics: [{name: a.b}]", want: []string{`  metrics["a.b"].name=a.b`}},
		"a list of the same name deeper":    {spec: "x: {metrics: [{name: a}]}", want: []string{"  x.metrics=[map[name:a]]"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := spec(t, k, onRoute+test.spec)
			require.NoError(t, p.Invalid)
			assert.Equal(t, append([]string{"bare patch"}, test.want...), blocksOf(p))
			shape := test.shape
			if shape == "" {
				shape = test.spec
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

func TestPolicyRef(t *testing.T) {
	assert.Equal(t, api.Ref{Group: "example.com", Kind: "Paint", Namespace: "app", Name: "p"}, spec(t, mustCompile(t, "{}"), onRoute).Ref())
}
