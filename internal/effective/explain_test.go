package effective_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/merge"
)

const scene = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: app, name: edge}
spec:
  gatewayClassName: istio
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: app, name: toys}
spec:
  parentRefs: [{name: edge}]
---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: app, name: gw}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  defaults: {strategy: merge, rules: {authentication: {a: 1, b: 1, c: 1}}}
  overrides: {strategy: merge, when: spec.rules.authentication.d.max > 5, rules: {authentication: {d: 1}}}
---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: app, name: listener}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge, sectionName: http}
  overrides: {strategy: merge, rules: {authentication: {b: 2}}}
---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: app, name: route}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toys}
  unset: [a]
  rules: {authentication: {b: 3, c: null, d: {min: 1}}}
`

func explainedScene(t *testing.T, rule string) (api.Explanation, bool) {
	t.Helper()
	return explained(t, scene, rule)
}

func explained(t *testing.T, scene, rule string) (api.Explanation, bool) {
	t.Helper()
	set, err := manifest.Read([]string{"-"}, strings.NewReader(scene))
	require.NoError(t, err)
	kinds := manifest.NewKinds(nil)
	v, err := set.View(kinds, "app")
	require.NoError(t, err)
	var filter *merge.Name
	if rule != "" {
		name, err := merge.ParseName(rule)
		require.NoError(t, err)
		filter = &name
	}
	var out []api.Explanation
	var ok bool
	budget := effective.NewBudget(t.Context(), math.MaxUint64)
	require.NoError(t, effective.NewEngine().Walk(v, effective.Scope{All: true}, false, budget, func(e *effective.Effective) error {
		var x api.Explanation
		x, ok = explain.Explain(e, filter)
		out = append(out, x)
		return nil
	}))
	require.Len(t, out, 1)
	return out[0], ok
}

func policy(name string) api.Ref {
	return api.Ref{Group: "kuadrant.io", Kind: "AuthPolicy", Namespace: "app", Name: name}
}

func key(name string) string { return "rules.authentication." + name }

func TestExplainPolicies(t *testing.T) {
	x, ok := explainedScene(t, "")
	require.True(t, ok)
	gw, listener, route := policy("gw"), policy("listener"), policy("route")
	assert.Equal(t, []api.Contribution{
		{
			Policy: gw, Target: api.PathElement{Kind: "Gateway", Namespace: "app", Name: "edge"}, State: api.Overridden,
			Blocks: []api.ExplainedPart{
				{Block: "defaults", Strategy: "merge", TookPart: true, Rules: []string{key("a"), key("b"), key("c")}},
				{Block: "overrides", Strategy: "merge", When: "spec.rules.authentication.d.max > 5", Rules: []string{key("d")}},
			},
			Lost: []api.LostRule{
				{Rule: key("a"), Block: "defaults", To: route, ToBlock: "unset"},
				{Rule: key("b"), Block: "defaults", To: listener, ToBlock: "overrides"},
				{Rule: key("c"), Block: "defaults", To: route, ToBlock: "bare"},
			},
		},
		{
			Policy: listener, Target: api.PathElement{Kind: "Listener", Namespace: "app", Name: "edge", Section: "http"}, State: api.Enforced,
			Blocks:      []api.ExplainedPart{{Block: "overrides", Strategy: "merge", TookPart: true, Rules: []string{key("b")}}},
			Contributed: []string{key("b")},
		},
		{
			Policy: route, Target: api.PathElement{Kind: "HTTPRoute", Namespace: "app", Name: "toys"}, State: api.PartiallyEnforced,
			Blocks:      []api.ExplainedPart{{Block: "bare", Strategy: "atomic", TookPart: true, Rules: []string{key("b"), key("c"), key("d")}}},
			Unset:       []string{"a"},
			Contributed: []string{key("c"), key("d")},
			Lost:        []api.LostRule{{Rule: key("b"), Block: "bare", To: listener, ToBlock: "overrides"}},
		},
	}, x.Policies)
	assert.Equal(t, []api.ExplainedRule{
		{Rule: key("a"), Lost: []api.LostFrom{{Policy: gw, Block: "defaults", Value: int64(1), To: route, ToBlock: "unset"}}},
		{Rule: key("b"), Value: int64(2), From: &listener, Block: "overrides", Lost: []api.LostFrom{
			{Policy: gw, Block: "defaults", Value: int64(1), To: listener, ToBlock: "overrides"},
			{Policy: route, Block: "bare", Value: int64(3), To: listener, ToBlock: "overrides"},
		}},
		{Rule: key("c"), From: &route, Block: "bare", Lost: []api.LostFrom{{Policy: gw, Block: "defaults", Value: int64(1), To: route, ToBlock: "bare"}}},
		{Rule: key("d"), Value: map[string]any{"min": int64(1)}, From: &route, Block: "bare"},
	}, x.Rules)
	assert.Equal(t, []string{
		"the condition of the overrides of AuthPolicy app/gw refers to rules.authentication.d.max, which is not set: the block does not apply",
	}, x.Notes)
}

func TestExplainFilter(t *testing.T) {
	for filter, want := range map[string]struct {
		rules    []string
		policies []string
	}{
		"rules.authentication.a": {[]string{key("a")}, []string{"gw", "route"}},
		"a":                      {[]string{key("a")}, []string{"gw", "route"}},
		"b":                      {[]string{key("b")}, []string{"gw", "listener", "route"}},
		"rules.authentication":   {[]string{key("a"), key("b"), key("c"), key("d")}, []string{"gw", "listener", "route"}},
		"rules.authorization":    {[]string{}, []string{}},
	} {
		x, ok := explainedScene(t, filter)
		assert.Equal(t, len(want.policies) > 0, ok, filter)
		rules, policies := []string{}, []string{}
		for _, r := range x.Rules {
			rules = append(rules, r.Rule)
		}
		for _, c := range x.Policies {
			policies = append(policies, c.Policy.Name)
			for _, b := range c.Blocks {
				assert.Subset(t, want.rules, b.Rules, filter)
			}
			assert.False(t, slices.ContainsFunc(c.Lost, func(l api.LostRule) bool { return !slices.Contains(want.rules, l.Rule) }), filter)
		}
		assert.Equal(t, want.rules, rules, filter)
		assert.Equal(t, want.policies, policies, filter)
	}
}

func TestExplainNotes(t *testing.T) {
	text := strings.Replace(scene, "spec.rules.authentication.d.max > 5", `spec.rules.authentication.b > "x"`, 1)
	text = strings.Replace(text, "defaults: {strategy: merge,", `defaults: {strategy: merge, when: 'spec.rules.authentication.b > "x"',`, 1)
	x, _ := explained(t, text, "")
	require.Len(t, x.Notes, 2)
	assert.Contains(t, x.Notes[0], "the condition of the defaults of AuthPolicy app/gw cannot be evaluated, so the block does not apply: ")
	assert.Contains(t, x.Notes[1], "the condition of the overrides of AuthPolicy app/gw cannot be evaluated, so the block applies: ")
	assert.Equal(t, []bool{false, true}, []bool{x.Policies[0].Blocks[0].TookPart, x.Policies[0].Blocks[1].TookPart})
}

// An explanation of a timeout of 5s includes the 9s of the route.
func TestExplainRouteOwnValue(t *testing.T) {
	v := world(t, docs(freeProbe(controlling+"fields: [{rule: b, route: 'spec.rules[*].timeouts.request'}]"),
		gatewayDoc("g", "c", "http"), routeDoc("r", "[{timeouts: {request: 9s}}]", "g"), probeDoc("p", 1, onGateway+"overrides: {b: 5s}")))
	all := walked(t, v, effective.Scope{All: true})
	require.Len(t, all, 1)
	x, ok := explain.Explain(all[0], nil)
	require.True(t, ok)
	require.Len(t, x.Rules, 1)
	assert.Equal(t, "5s", x.Rules[0].Value)
	assert.Equal(t, []api.LostFrom{{
		Policy: api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "app", Name: "r"}, Block: "object", Value: "9s",
		To: probeRef("app", "p"), ToBlock: "overrides",
	}}, x.Rules[0].Lost)
	require.Len(t, x.Policies, 1, "the route is no policy")
}
