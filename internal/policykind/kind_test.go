package policykind_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/test/tables"
)

func TestActions(t *testing.T) {
	k := compiled(t, func(p *api.PolicyProfileSpec) {
		p.Actions = map[api.ReasonCode]api.Action{api.ReasonOverridden: api.Deny}
	})
	assert.Equal(t, api.Deny, k.Action(api.ReasonOverridden, api.Warn))
	assert.Equal(t, api.Warn, k.Action(api.ReasonTargetNotFound, api.Warn))
}

func TestMayTarget(t *testing.T) {
	service := api.PolicyKind{Kind: "Service"}
	assert.True(t, compiled(t, nil).MayTarget(service), "without a list, any")
	k := compiled(t, func(p *api.PolicyProfileSpec) {
		p.Targets.Kinds = []api.TargetKind{{Group: api.GatewayGroup, Kind: "Gateway"}}
	})
	assert.False(t, k.MayTarget(service))
	assert.True(t, k.MayTarget(api.PolicyKind{Group: api.GatewayGroup, Kind: "Gateway"}))
}

// SEMANTICS section 5: a kind with the policy label and without a profile.
func TestFromLabel(t *testing.T) {
	tests := tables.Read[map[string]struct {
		Label  string
		Fields []string // of spec, in the schema
		Want   api.ProfileClass
		Blocks bool
	}](t, "testdata/tables/from-label.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, ok := policykind.FromLabel(crd(map[string]string{policykind.LabelPolicy: test.Label}, true, test.Fields...))
			require.True(t, ok)
			assert.Equal(t, test.Want, p.Class)
			k, err := policykind.Compile(p, policykind.Label)
			require.NoError(t, err)
			assert.Equal(t, api.PolicyKind{Group: "example.com", Kind: "Paint"}, k.Ref())
			read := spec(t, k, onRoute+"overrides: {strategy: merge, colors: {dark: brown}}\ncolors: {light: red}\n")
			require.NoError(t, read.Invalid)
			assert.Len(t, read.Targets, 1)
			if test.Blocks {
				assert.Equal(t, api.Hierarchical, k.SameTarget)
				assert.Equal(t, []string{"bare atomic", "  colors=map[light:red]", "overrides merge", "  colors=map[dark:brown]"}, blocksOf(read))
			} else {
				assert.Equal(t, api.None, k.SameTarget)
				assert.Equal(t, []string{"bare atomic", "  colors=map[light:red]", "  overrides=map[colors:map[dark:brown] strategy:merge]"}, blocksOf(read))
			}
		})
	}
	for name, labels := range map[string]map[string]string{
		"no label": nil, "another value": {policykind.LabelPolicy: "false"}, "an empty value": {policykind.LabelPolicy: ""},
	} {
		t.Run(name+" is no policy kind", func(t *testing.T) {
			_, ok := policykind.FromLabel(crd(labels, true, "defaults"))
			assert.False(t, ok)
		})
	}
	t.Run("a version that is not served says nothing", func(t *testing.T) {
		p, ok := policykind.FromLabel(crd(map[string]string{policykind.LabelPolicy: "true"}, false, "defaults"))
		require.True(t, ok)
		assert.Equal(t, api.Direct, p.Class)
	})
}

// A derived profile must not deny fields whose meaning is not known.
func TestDerivedKindsAreReadLeniently(t *testing.T) {
	p, _ := policykind.FromLabel(crd(map[string]string{policykind.LabelPolicy: "inherited"}, true))
	k, err := policykind.Compile(p, policykind.Label)
	require.NoError(t, err)
	tests := map[string]struct {
		spec string
		want []string
	}{
		"a strategy of its own words is content": {"targetRef: {kind: HTTPRoute, name: r}\ndefaults: {strategy: roundRobin, a: 1}", []string{"defaults atomic", "  a=1", "  strategy=roundRobin"}},
		"without a target it is no policy":       {"selector: {a: b}\noverrides: {a: 1}", nil},
		"nor is a reference of its own form":     {"targetRefs: [{selector: {a: b}}]", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := spec(t, k, test.spec)
			require.NoError(t, p.Invalid)
			assert.Equal(t, test.want, blocksOf(p))
		})
	}
}

func crd(labels map[string]string, served bool, fields ...string) *apiextensionsv1.CustomResourceDefinition {
	spec := apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for _, f := range fields {
		spec.Properties[f] = apiextensionsv1.JSONSchemaProps{Type: "object"}
	}
	out := &apiextensionsv1.CustomResourceDefinition{}
	out.Labels = labels
	out.Spec.Group, out.Spec.Names.Kind = "example.com", "Paint"
	out.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: "v0", Served: true},
		{Name: "v1", Served: served, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}},
		}},
	}
	return out
}

func TestMayOverride(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*api.PolicyProfileSpec)
		want bool
	}{
		"one without blocks": {func(*api.PolicyProfileSpec) {}, false},
		"one with defaults":  {func(p *api.PolicyProfileSpec) { p.Blocks.Defaults = []string{"defaults"} }, false},
		"one with overrides": {func(p *api.PolicyProfileSpec) { p.Blocks.Overrides = []string{"overrides"} }, true},
		"one whose bare rules may be overrides": {func(p *api.PolicyProfileSpec) {
			p.Blocks.Bare = &api.BareBlock{Field: "how", Overrides: []string{"yes"}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := api.PolicyProfileSpec{Group: "example.com", Kind: "Paint", Class: api.Inherited, Targets: api.ProfileTargets{Fields: []string{"targetRef"}}}
			c.edit(&p)
			k, err := policykind.Compile(p, policykind.Cluster)
			require.NoError(t, err)
			assert.Equal(t, c.want, k.MayOverride())
		})
	}
}
