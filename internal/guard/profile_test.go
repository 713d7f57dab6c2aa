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

func (k known) ViewAfterKindChange(_ context.Context, v *snapshot.View, _, _ snapshot.Object) (*snapshot.View, error) {
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
		denied        string
		warned        string
	}{
		"a good one":                        {after: profile("mine", nil)},
		"one that cannot be used is denied": {after: profile("mine", twice), denied: `spec.levels[1]: Duplicate value: "Gateway"`},
		"one that could not before stays editable": {
			before: profile("mine", twice), after: profile("mine", twice), warned: `spec.levels[1]: Duplicate value: "Gateway"`,
		},
		"one that could before is denied": {
			before: profile("mine", nil), after: profile("mine", twice), denied: `spec.levels[1]: Duplicate value: "Gateway"`,
		},
		"core kinds are denied": {
			after:  profile("pods", func(p *api.PolicyProfileSpec) { p.Group, p.Kind = "", "Pod" }),
			denied: `spec.group: Invalid value: "": must be the group of a CustomResourceDefinition`,
		},
		"an older one has the kind": {
			after: profile("mine", nil), known: known{profiles: holds("theirs")},
			warned: "PolicyProfile theirs is older and has Paint.example.com",
		},
		"another one has it, and this is the older": {
			before: profile("mine", nil), after: profile("mine", nil), known: known{profiles: holds("theirs")},
		},
		"an older one had the kind before, too": {
			before: profile("mine", nil), after: profile("mine", nil),
			known:  known{profiles: holds("theirs", api.RefusedProfile{Name: "mine", Reason: api.Conflicted})},
			warned: "PolicyProfile theirs is older",
		},
		"its own kind is no rival":   {before: profile("mine", nil), after: profile("mine", nil), known: known{profiles: holds("mine")}},
		"a built-in one is no rival": {after: profile("mine", nil), known: known{profiles: holds("")}},
		"every address is in the schema": {
			after: profile("mine", nil), known: known{schema: paintSchema("targetRef", "colors")},
		},
		"an address that is not": {
			after: profile("mine", nil), known: known{schema: paintSchema("targetRef", "colours")},
			warned: "colors",
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
			assertMessage(t, test.denied, ev.Denials)
			assertMessage(t, test.warned, ev.Warnings)
		})
	}
}

func assertMessage(t *testing.T, want string, findings []guard.Finding) {
	t.Helper()
	if want == "" {
		assert.Empty(t, findings)
		return
	}
	require.Len(t, findings, 1)
	assert.Contains(t, findings[0].Message(), want)
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
