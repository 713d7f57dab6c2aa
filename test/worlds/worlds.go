package worlds

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// Group is the group of the policy kinds of a World.
const Group = "example.com"

// basic are the policy kinds of every World: Paint, which allows the strategy
// patch, and Label, a direct one.
var basic = []api.PolicyProfileSpec{
	{
		Group: Group, Kind: "Paint", Class: api.Inherited,
		Targets:  api.ProfileTargets{Fields: []string{"targetRefs"}, UnnamedRules: true},
		Blocks:   api.ProfileBlocks{Defaults: []string{"defaults"}, Overrides: []string{"overrides"}, When: "when"},
		Strategy: api.ProfileStrategy{Field: "strategy", BareField: "strategy", Allowed: []api.StrategyName{"atomic", "patch"}},
		Unset:    []string{"unset"},
	},
	{Group: Group, Kind: "Label", Class: api.Direct, Targets: api.ProfileTargets{Fields: []string{"targetRefs"}, UnnamedRules: true}},
}

// World returns a view of objects in YAML documents; those of Gateway API and
// policies have no apiVersion. A PolicyProfile defines a kind of the world (see
// ProfileDoc), or replaces a basic one; a SchemaDoc sets the schema of a kind.
func World(t testing.TB, text string) *snapshot.View {
	t.Helper()
	docs := strings.Split(text, "\n---\n")
	v := (&snapshot.View{}).WithKinds(kinds(t, docs))
	for _, doc := range docs {
		if kind := kindOf(t, doc); kind != api.KindPolicyProfile && kind != kindSchema {
			v = v.With(snapshot.Put(Read(t, v, doc)))
		}
	}
	return v
}

// kinds compiles the profiles of a world.
func kinds(t testing.TB, docs []string) []*policykind.Kind {
	t.Helper()
	specs := make(map[string]api.PolicyProfileSpec)
	for _, p := range basic {
		specs[p.Kind] = p
	}
	for _, doc := range docs {
		if kindOf(t, doc) == api.KindPolicyProfile {
			var p api.PolicyProfile
			require.NoError(t, yaml.UnmarshalStrict([]byte(doc), &p), doc)
			specs[p.Spec.Kind] = p.Spec
		}
	}
	var out []*policykind.Kind
	known := schemas(t, docs)
	for _, p := range specs {
		k, err := policykind.Compile(p, policykind.Cluster)
		require.NoError(t, err)
		k.Name = strings.ToLower(p.Kind)
		out = append(out, k.WithSchema(known[p.Kind]))
	}
	return out
}

func kindOf(t testing.TB, doc string) string {
	t.Helper()
	var head struct{ Kind string }
	require.NoError(t, yaml.Unmarshal([]byte(doc), &head), doc)
	return head.Kind
}

// Read reads one document of a World.
func Read(t testing.TB, v *snapshot.View, doc string) snapshot.Object {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(doc))
	require.NoError(t, err)
	ref := refOf(v, kindOf(t, doc))
	o, err := snapshot.Decode(ref, v.Kind(ref), data, merge.Newest)
	require.NoError(t, err)
	return o
}

// refOf returns the kind with its group.
func refOf(v *snapshot.View, kind string) api.PolicyKind {
	for _, k := range v.Kinds() {
		if k.Kind == kind {
			return k.Ref()
		}
	}
	switch kind {
	case "Namespace", "Service":
		return api.PolicyKind{Kind: kind}
	case api.KindPolicyProfile:
		return policykind.KindProfile
	case "XListenerSet":
		return api.PolicyKind{Group: api.GatewayXGroup, Kind: kind}
	default:
		return api.PolicyKind{Group: api.GatewayGroup, Kind: kind}
	}
}
