package policykind_test

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
	"overrule.dev/overrule/test/tables"
)

// No policy makes Read panic, with any profile. The result is the same each time, and the
// object is not edited.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"{}", "spec: null", "spec: []", "metadata: 5\nspec: {}", "metadata: {name: p, namespace: root, creationTimestamp: x, annotations: {example.com/weight: a}}\nspec: {action: 5}",
		"spec: {targetRef: {kind: HTTPRoute, name: r, port: 80.5}, targetRefs: [{kind: namespace, name: app}, {kind: GatewayClass, name: c}, 1, null]}",
		"spec: {targetSelectors: [{kind: Gateway, matchLabels: {a: 1}, namespaces: {from: Selector, selector: {matchExpressions: [{}]}}}], policy: {refs: {}}}",
		"spec: {defaults: {strategy: Deep, when: 'spec.a > 1', limits: {a: null}}, default: {}, overrides: {when: [], rules: {a: {b: {}}}}, unset: [a, '[', 5], limits: []}",
		"spec: {list: [{name: a, tags: [{id: x}, {id: y}]}, {name: b, tags: {}}], x: {list: [{name: a}, {name: a}], headers: {a: {}}}, labels: {}, mergeType: patch}",
		"spec: {selector: {}, mode: {how: Override}, priority: -2147483648, action: DENY}", "spec: {default: {priority: 1, a: {b: 1}}, \"\": {\"\": 1}, '*': {'*': 1}}",
	} {
		f.Add(text)
	}
	var kinds []*policykind.Kind
	for _, p := range tables.Read[[]runtime.RawExtension](f, "testdata/tables/fuzz-profiles.yaml") {
		for _, source := range []policykind.Source{policykind.Cluster, policykind.Label} {
			k, err := policykind.Compile(profile(f, string(p.Raw)), source)
			if err != nil {
				f.Fatal(err)
			}
			kinds = append(kinds, k)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return
		}
		var object map[string]any
		if json.UnmarshalCaseSensitivePreserveInts(data, &object) != nil || object == nil {
			return
		}
		before := runtime.DeepCopyJSON(object)
		for i, k := range kinds {
			p := k.Read(object, created)
			if again := k.Read(object, created); !p.Same(again) || p.Version == again.Version {
				t.Fatalf("profile %d reads it otherwise the second time: %+v, %+v", i, p, again)
			}
			if !merge.Equal(before, object) {
				t.Fatalf("profile %d edits it: %v, %v", i, before, object)
			}
			if p.Invalid != nil && p.Invalid.Error() == "" {
				t.Fatalf("profile %d: an error that says nothing", i)
			}
			checkBlocks(t, k, p)
			if !merge.Equal(before, object) {
				t.Fatalf("profile %d: the use of a policy edits it: %v, %v", i, before, object)
			}
		}
	})
}

// checkBlocks checks what the fold relies on: blocks and rules are in order, and no rule
// is below another one that is not an empty map.
func checkBlocks(t *testing.T, k *policykind.Kind, p *policykind.Policy) {
	t.Helper()
	for i, b := range p.Blocks {
		if i > 0 && p.Blocks[i-1].Block >= b.Block {
			t.Fatalf("%s stands behind %s", b.Block, p.Blocks[i-1].Block)
		}
		for j := 1; j < len(b.Rules); j++ {
			above, below := b.Rules[j-1], b.Rules[j]
			if above.Key.Compare(below.Key) >= 0 || above.Key.Holds(below.Key) {
				t.Fatalf("%s stands before %s", above.Key, below.Key)
			}
		}
		spec := tree(b.Rules)
		if b.When != nil {
			b.When.Evaluate(maps.Clone(spec))
		}
		k.Shape(spec)
	}
}
