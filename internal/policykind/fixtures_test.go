package policykind_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// created is the creation time that tests pass to Read.
const created = 1000

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err, text)
	var out map[string]any
	require.NoError(t, json.UnmarshalCaseSensitivePreserveInts(data, &out))
	return out
}

// unmarshalStrict decodes YAML, with case-sensitive names and no unknown fields.
func unmarshalStrict(t testing.TB, text string, value any) {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err, text)
	wrong, err := json.UnmarshalStrict(data, value)
	require.NoError(t, err, text)
	require.Empty(t, wrong, text)
}

// spec reads a policy app/p with a spec in YAML, or with the fields of the object.
func spec(t testing.TB, k *policykind.Kind, text string) *policykind.Policy {
	t.Helper()
	o := object(t, "metadata: {namespace: app, name: p}")
	o["spec"] = object(t, text)
	if k.Content == "." {
		delete(o, "spec")
		maps.Copy(o, object(t, text))
	}
	return k.Read(o, created)
}

func builtin(t testing.TB, kind string) *policykind.Kind {
	t.Helper()
	kinds := policykind.BuiltinKinds()
	for _, k := range kinds {
		if k.Ref() == (api.PolicyKind{Group: "kuadrant.io", Kind: kind}) {
			return k
		}
	}
	require.Fail(t, "no built-in profile of "+kind)
	return nil
}

// compiled compiles a profile of Paint.example.com that edit changes.
func compiled(t testing.TB, edit func(*api.PolicyProfileSpec)) *policykind.Kind {
	t.Helper()
	k, err := policykind.Compile(paint(edit), policykind.Builtin)
	require.NoError(t, err)
	return k
}

func paint(edit func(*api.PolicyProfileSpec)) api.PolicyProfileSpec {
	p := api.PolicyProfileSpec{
		Group: "example.com", Kind: "Paint", Class: api.Inherited,
		Targets: api.ProfileTargets{Fields: []string{"targetRef", "targetRefs"}},
		Blocks:  api.ProfileBlocks{Defaults: []string{"defaults", "default"}, Overrides: []string{"overrides", "override"}},
	}
	if edit != nil {
		edit(&p)
	}
	return p
}

// blocksOf returns the blocks of a policy, such as "overrides merge when <text>",
// followed by their rules as "key=value".
func blocksOf(p *policykind.Policy) []string {
	var out []string
	for _, b := range p.Blocks {
		text := fmt.Sprintf("%s %s", b.Block, b.Strategy)
		if b.When != nil {
			text += " when " + b.When.String()
		}
		out = append(out, text)
		for _, r := range b.Rules {
			out = append(out, "  "+show(r))
		}
	}
	return out
}

func show(r merge.Rule) string {
	if r.EmptyMap {
		return r.Key.String() + " hollow"
	}
	return fmt.Sprintf("%s=%v", r.Key, r.Value)
}
