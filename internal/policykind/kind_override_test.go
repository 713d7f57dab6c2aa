package policykind_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

func TestWhichKindsCanHaveOverrides(t *testing.T) {
	annotated := func(overrides bool) func(*api.PolicyProfileSpec) {
		return func(p *api.PolicyProfileSpec) {
			p.Strategy.Annotation = &api.StrategyAnnotation{Name: "example.com/how", Values: map[string]api.StrategyReading{
				"strict": {Strategy: "atomic", Overrides: overrides},
			}}
		}
	}
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
		"one whose routes may make the rules overrides": {annotated(true), true},
		"one whose routes say how to merge":             {annotated(false), false},
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
