package effective_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
)

func TestPairRules(t *testing.T) {
	v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"),
		policyDoc("Paint", "app", "p", "targetRefs: [{kind: HTTPRoute, name: r}]\nsame: 1\nedited: 1\ngone: 1")))
	after := v.With(putChange(t, v, policyDoc("Paint", "app", "p", "targetRefs: [{kind: HTTPRoute, name: r}]\nsame: 1\nedited: 2\nadded: 1")))
	var got []api.RuleChange
	require.NoError(t, effective.NewEngine().Compare(v, after, objectScope(routeRef("r")), unlimited(), func(p effective.Pair) error {
		got = append(got, p.Rules()...)
		return nil
	}))
	value := func(v any) *api.RuleValue { return &api.RuleValue{Value: v, From: paintRef("app", "p"), Block: "bare"} }
	assert.Equal(t, []api.RuleChange{
		{Rule: "added", After: value(int64(1))},
		{Rule: "edited", Before: value(int64(1)), After: value(int64(2))},
		{Rule: "gone", Before: value(int64(1))},
	}, got)
}

// An equal value of another policy, or of another block, is a change.
func TestChangedOriginWithEqualValue(t *testing.T) {
	paint := func(namespace, target, spec string) string {
		return policyDoc("Paint", namespace, "p", "targetRefs: [{kind: "+target+"}]\n"+spec)
	}
	top := paint("infra", "Gateway, name: g", "defaults: {strategy: patch, a: 1}")
	v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"), top))
	for name, c := range map[string]struct {
		write string
		want  []string
	}{
		"of another policy":             {paint("app", "HTTPRoute, name: r", "strategy: patch\na: 1"), []string{"a"}},
		"of another block":              {paint("infra", "Gateway, name: g", "overrides: {strategy: patch, a: 1}"), []string{"a"}},
		"of the same, which is written": {strings.Replace(top, "name: p}", "name: p, labels: {x: z}}", 1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			require.NoError(t, effective.NewEngine().Compare(v, v.With(putChange(t, v, c.write)), effective.Scope{All: true}, unlimited(), func(p effective.Pair) error {
				for _, r := range p.Rules() {
					got = append(got, r.Rule)
				}
				assert.Equal(t, c.want != nil, p.Changed())
				return nil
			}))
			assert.Equal(t, c.want, got)
		})
	}
}
