package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

func profile(name string, edit func(*api.PolicyProfileSpec)) *policykind.Profile {
	p := &policykind.Profile{}
	p.Name = name
	p.Spec = api.PolicyProfileSpec{
		Group: "example.com", Kind: "Paint", Class: api.Inherited,
		Targets: api.ProfileTargets{Fields: []string{"targetRef"}}, Rules: []string{"colors.*"},
	}
	if edit != nil {
		edit(&p.Spec)
	}
	return p
}

// definedPaint is the definition of Paint with a schema of its spec in YAML.
func definedPaint(t testing.TB, spec string) *policykind.Definition {
	t.Helper()
	var schema apiextensionsv1.JSONSchemaProps
	require.NoError(t, yaml.UnmarshalStrict([]byte("{type: object, properties: {spec: "+spec+"}}"), &schema))
	d := &policykind.Definition{}
	d.Name, d.Spec.Group, d.Spec.Names.Kind = "paints.example.com", "example.com", "Paint"
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
	}}
	return d
}

func paintWithFields(t testing.TB, fields ...string) *policykind.Definition {
	t.Helper()
	return definedPaint(t, "{type: object, properties: {"+strings.Join(fields, ": {x-kubernetes-preserve-unknown-fields: true}, ")+": {x-kubernetes-preserve-unknown-fields: true}}}")
}

func TestProfileWrites(t *testing.T) {
	twice := func(p *api.PolicyProfileSpec) { p.Levels = []api.LevelName{"Gateway", "Gateway"} }
	created := func(at int64, name string) *policykind.Profile {
		p := profile(name, nil)
		p.Created = at
		return p
	}
	tests := map[string]struct {
		before, after *policykind.Profile
		known         []snapshot.Object
		want          []string
	}{
		"a good one":                        {after: profile("mine", nil)},
		"one that cannot be used is denied": {after: profile("mine", twice), want: []string{`Deny Invalid: PolicyProfile mine, Paint.example.com, spec.levels[1], Duplicate, "Gateway"`}},
		"one that could not before stays editable": {
			before: profile("mine", twice), after: profile("mine", twice), want: []string{`Warn Invalid: PolicyProfile mine, Paint.example.com, spec.levels[1], Duplicate, "Gateway"`},
		},
		"one that could before is denied": {
			before: profile("mine", nil), after: profile("mine", twice), want: []string{`Deny Invalid: PolicyProfile mine, Paint.example.com, spec.levels[1], Duplicate, "Gateway"`},
		},
		"core kinds are denied": {
			after: profile("pods", func(p *api.PolicyProfileSpec) { p.Group, p.Kind = "", "Pod" }),
			want:  []string{`Deny Invalid: PolicyProfile pods, Pod, spec.group, Invalid, "", CustomResourceDefinition, Kubernetes`},
		},
		"an older one has the kind": {
			after: profile("mine", nil), known: []snapshot.Object{created(1, "theirs")},
			want: []string{"Warn Conflicted: PolicyProfile mine, PolicyProfile theirs, Paint.example.com"},
		},
		"another one has it, and this is the older": {
			before: profile("mine", nil), after: profile("mine", nil), known: []snapshot.Object{created(1, "theirs")},
		},
		"an older one had the kind before, too": {
			before: profile("mine", nil), after: profile("mine", nil),
			known: []snapshot.Object{created(1, "theirs"), created(2, "mine")},
			want:  []string{"Warn Conflicted: PolicyProfile mine, PolicyProfile theirs, Paint.example.com"},
		},
		"its own kind is no rival": {before: profile("mine", nil), after: profile("mine", nil), known: []snapshot.Object{created(1, "mine")}},
		"every address is in the schema": {
			after: profile("mine", nil), known: []snapshot.Object{paintWithFields(t, "targetRef", "colors")},
		},
		"an address that is not": {
			after: profile("mine", nil), known: []snapshot.Object{paintWithFields(t, "targetRef", "colours")},
			want: []string{"Warn NotRead: spec.rules[0], spec.colors.*, Paint.example.com"},
		},
		"a deletion": {before: profile("mine", nil)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := guard.Change{Operation: guard.Update}
			if test.before != nil {
				c.Before = test.before
			}
			if test.after != nil {
				c.After = test.after
			}
			kinds := snapshot.NewKinds().ForManifests()
			for _, o := range test.known {
				kinds = kinds.With(snapshot.Put(o))
			}
			g := &guard.Guard{Engine: effective.NewEngine()}
			ev, err := g.Evaluate(t.Context(), (&snapshot.View{}).WithKindConfig(kinds), c, nil)
			require.NoError(t, err)
			assert.Equal(t, test.want, findings(t, ev))
		})
	}
}
