package guard_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// known is what a guard asks about profiles.
type known struct {
	profiles []api.ProfileInForce
	schema   *apiextensionsv1.JSONSchemaProps
	err      error
}

func (k known) Profiles() []api.ProfileInForce { return k.profiles }

func (k known) Schema(context.Context, api.PolicyKind) (*apiextensionsv1.JSONSchemaProps, error) {
	return k.schema, k.err
}

func (k known) ViewAfterKindChange(v *snapshot.View, _, _ snapshot.Object) (*snapshot.View, error) {
	return v, nil
}

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

func paintSchema(fields ...string) *apiextensionsv1.JSONSchemaProps {
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for _, f := range fields {
		spec.Properties[f] = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	}
	return &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}}
}

func TestProfileWrites(t *testing.T) {
	paint := api.PolicyKind{Group: "example.com", Kind: "Paint"}
	twice := func(p *api.PolicyProfileSpec) { p.Levels = []api.LevelName{"Gateway", "Gateway"} }
	holds := func(name string, refused ...api.RefusedProfile) []api.ProfileInForce {
		return []api.ProfileInForce{{PolicyKind: paint, Source: "cluster", Profile: name, Refused: refused}}
	}
	tests := map[string]struct {
		before, after *policykind.Profile
		known         known
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
			after: profile("mine", nil), known: known{profiles: holds("theirs")},
			want: []string{"Warn Conflicted: PolicyProfile mine, PolicyProfile theirs, Paint.example.com"},
		},
		"another one has it, and this is the older": {
			before: profile("mine", nil), after: profile("mine", nil), known: known{profiles: holds("theirs")},
		},
		"an older one had the kind before, too": {
			before: profile("mine", nil), after: profile("mine", nil),
			known: known{profiles: holds("theirs", api.RefusedProfile{Name: "mine", Reason: api.Conflicted})},
			want:  []string{"Warn Conflicted: PolicyProfile mine, PolicyProfile theirs, Paint.example.com"},
		},
		"its own kind is no rival":   {before: profile("mine", nil), after: profile("mine", nil), known: known{profiles: holds("mine")}},
		"a built-in one is no rival": {after: profile("mine", nil), known: known{profiles: holds("")}},
		"every address is in the schema": {
			after: profile("mine", nil), known: known{schema: paintSchema("targetRef", "colors")},
		},
		"an address that is not": {
			after: profile("mine", nil), known: known{schema: paintSchema("targetRef", "colours")},
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
			g := &guard.Guard{Engine: effective.NewEngine(), KindReader: test.known}
			ev, err := g.Evaluate(t.Context(), &snapshot.View{}, c, nil)
			require.NoError(t, err)
			assert.Equal(t, test.want, findings(t, ev))
		})
	}
}

func TestProfileSchemaError(t *testing.T) {
	g := &guard.Guard{Engine: effective.NewEngine(), KindReader: known{err: errors.New("no answer")}}
	_, err := g.Evaluate(t.Context(), &snapshot.View{}, guard.Change{Operation: guard.Create, After: profile("mine", nil)}, nil)
	assert.EqualError(t, err, "get definition of Paint.example.com: no answer")
}

func TestProfileWithoutKinds(t *testing.T) {
	g := &guard.Guard{Engine: effective.NewEngine()}
	ev, err := g.Evaluate(t.Context(), &snapshot.View{}, guard.Change{Operation: guard.Create, After: profile("mine", nil)}, nil)
	require.NoError(t, err)
	assert.False(t, ev.Denied())
	assert.Equal(t, api.Ref{Group: "overrule.dev", Kind: "PolicyProfile", Name: "mine"}, ev.Verdict(guard.EnforceDeny).Object)
}
