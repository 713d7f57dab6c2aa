package effective_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/test/tables"
)

// twoGateways: g1 and g2 of class istio, g3 of another; r1 on g1, r2 on g1 and
// g2, r3 on g3; every route has a policy.
func twoGateways() string {
	return docs(
		"kind: GatewayClass\nmetadata: {name: istio}",
		gatewayDoc("g1", "istio", "http"), gatewayDoc("g2", "istio", "http"), gatewayDoc("g3", "envoy", "http"),
		routeDoc("r1", "[{}]", "g1"), routeDoc("r2", "[{}]", "g1", "g2"), routeDoc("r3", "[{}]", "g3"),
		policyDoc("Paint", "app", "p", "targetRefs: [{kind: HTTPRoute, name: r1}, {kind: HTTPRoute, name: r2}, {kind: HTTPRoute, name: r3}]\na: 1"),
	)
}

func TestScopes(t *testing.T) {
	class := api.Ref{Group: api.GatewayGroup, Kind: "GatewayClass", Name: "istio"}
	const (
		r1g1 = "Paint istio g1/http r1#rule-1"
		r2g1 = "Paint istio g1/http r2#rule-1"
		r2g2 = "Paint istio g2/http r2#rule-1"
		r3g3 = "Paint envoy g3/http r3#rule-1"
	)
	tests := map[string]struct {
		scope effective.Scope
		want  []string
	}{
		"nothing":                 {effective.Scope{}, nil},
		"everything":              {effective.Scope{All: true}, []string{r1g1, r2g1, r2g2, r3g3}},
		"a class":                 {objectScope(class), []string{r1g1, r2g1, r2g2}},
		"a gateway":               {objectScope(gatewayRef("g2")), []string{r2g2}},
		"a route":                 {objectScope(routeRef("r2")), []string{r2g1, r2g2}},
		"a route twice":           {objectScope(routeRef("r2"), routeRef("r2")), []string{r2g1, r2g2}},
		"a gateway twice":         {objectScope(gatewayRef("g1"), gatewayRef("g1")), []string{r1g1, r2g1}},
		"a gateway and its class": {objectScope(gatewayRef("g2"), class), []string{r2g2, r1g1, r2g1}},
		"a gateway and a route that is on it too":   {objectScope(gatewayRef("g1"), routeRef("r2")), []string{r1g1, r2g1, r2g2}},
		"the same, the other way round":             {objectScope(routeRef("r2"), gatewayRef("g1")), []string{r1g1, r2g1, r2g2}},
		"all of it and more":                        {effective.Scope{All: true, Objects: []api.Ref{class}}, []string{r1g1, r2g1, r2g2, r3g3}},
		"what does not exist, and kinds off a path": {objectScope(routeRef("none"), gatewayRef("none"), paintRef("app", "p"), api.Ref{Kind: "Service", Name: "s"}), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, pathsOf(walked(t, world(t, twoGateways()), test.scope)))
		})
	}
}

func TestRouteWithDuplicateParents(t *testing.T) {
	v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g", "g"), policyDoc("Paint", "app", "p", "targetRefs: [{kind: HTTPRoute, name: r}]\na: 1")))
	assert.Equal(t, []string{"Paint istio g/http r#rule-1"}, pathsOf(walked(t, v, objectScope(routeRef("r")))))
}

func objectScope(refs ...api.Ref) effective.Scope { return effective.Scope{Objects: refs} }

// A policy is on the paths through its target, and its section if it has one, at the
// level of the target.
func TestStacks(t *testing.T) {
	base := docs(
		"kind: GatewayClass\nmetadata: {name: istio}",
		gatewayDoc("g", "istio", "http", "alt"),
		routeDoc("r", "[{name: x}, {}]", "g"),
	)
	const rest = "overrides: {strategy: patch, o: NAME}\ndefaults: {strategy: patch, d: NAME}"
	tests := tables.Read[map[string]struct {
		Targets map[string]string // a target and its section by the policy's name
		Want    []string
	}](t, "testdata/tables/stacks.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := world(t, base)
			for policy, target := range test.Targets {
				spec := "targetRefs: [{" + target + "}]\n" + replaceName(rest, policy)
				namespace := "app"
				if target[6] == 'G' {
					namespace = "infra"
				}
				v = v.With(putChange(t, v, policyDoc("Paint", namespace, policy, spec)))
			}
			assert.Equal(t, test.Want, rulesOf(walked(t, v, effective.Scope{All: true})))
		})
	}
}

// Invalid policies and refused targets have no effect; kinds are independent.
func TestPoliciesWithoutEffect(t *testing.T) {
	base := docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"))
	t.Run("policies of another kind have a fold of their own", func(t *testing.T) {
		v := world(t, docs(base,
			policyDoc("Paint", "infra", "p", "targetRefs: [{kind: Gateway, name: g}]\noverrides: {a: 1}"),
			policyDoc("Label", "app", "q", "targetRefs: [{kind: HTTPRoute, name: r}]\na: 2")))
		assert.Equal(t, []string{
			"Label istio g/http r#rule-1: a=2 q/bare", "Paint istio g/http r#rule-1: a=1 p/overrides",
		}, rulesOf(walked(t, v, effective.Scope{All: true})))
	})
	t.Run("a route that no listener takes", func(t *testing.T) {
		v := world(t, docs(gatewayDoc("g", "istio"), routeDoc("r", "[{}]", "g"), policyDoc("Paint", "app", "p", "targetRefs: [{kind: HTTPRoute, name: r}]\na: 1")))
		assert.Empty(t, walked(t, v, effective.Scope{All: true}))
		assert.Equal(t, api.NoPath, outcomeOf(t, v, paintRef("app", "p")).State)
	})
}

// SEMANTICS section 5, sameTarget none: the oldest policy is accepted.
func TestDirectKindConflicts(t *testing.T) {
	v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"),
		"kind: Label\nmetadata: {namespace: app, name: old, creationTimestamp: '2024-01-01T00:00:00Z'}\nspec: {a: old, targetRefs: [{kind: HTTPRoute, name: r}]}",
		"kind: Label\nmetadata: {namespace: app, name: twin, creationTimestamp: '2024-01-01T00:00:00Z'}\nspec: {a: twin, targetRefs: [{kind: HTTPRoute, name: r}]}",
		"kind: Label\nmetadata: {namespace: app, name: a-newer, creationTimestamp: '2025-01-01T00:00:00Z'}\nspec: {a: newer, targetRefs: [{kind: HTTPRoute, name: r}]}",
		"kind: Label\nmetadata: {namespace: app, name: oldest-but-invalid, creationTimestamp: '2020-01-01T00:00:00Z'}\nspec: {targetRefs: [{kind: HTTPRoute, name: r}, 5]}",
		"kind: Label\nmetadata: {namespace: app, name: rule, creationTimestamp: '2025-01-01T00:00:00Z'}\nspec: {a: rule, targetRefs: [{kind: HTTPRoute, name: r, sectionName: rule-1}]}",
	))
	label := func(name string) api.Ref {
		return api.Ref{Group: "example.com", Kind: "Label", Namespace: "app", Name: name}
	}
	assert.Equal(t, []string{"Label istio g/http r#rule-1: a=rule rule/bare"}, rulesOf(walked(t, v, effective.Scope{All: true})), "a section is a target of its own")

	newer := outcomeOf(t, v, label("a-newer"))
	assert.Equal(t, api.Conflicted, newer.State)
	assert.Equal(t, "HTTPRoute app/r already has Label app/old, which is older", newer.Message)
	assert.Equal(t, "HTTPRoute app/r already has Label app/old, which is as old and first by name", outcomeOf(t, v, label("twin")).Message)
	by := label("old")
	assert.Equal(t, []api.Target{{Target: routeRef("r"), Reason: api.Conflicted, By: &by}}, newer.Targets)
	assert.Equal(t, api.Enforced, outcomeOf(t, v, label("rule")).State)

	v = v.With(storeDelete(label("rule")), storeDelete(label("old")), storeDelete(label("twin")))
	assert.Equal(t, []string{"Label istio g/http r#rule-1: a=newer a-newer/bare"}, rulesOf(walked(t, v, effective.Scope{All: true})))
}

func TestWalkWithEmptyPaths(t *testing.T) {
	v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g")))
	var got []string
	require.NoError(t, effective.NewEngine().Walk(v, effective.Scope{All: true}, true, unlimited(), func(e *effective.Effective) error {
		assert.Empty(t, e.Rules)
		got = append(got, e.Kind.Kind)
		return nil
	}))
	assert.Equal(t, []string{"Label", "Paint"}, got, "an item for each kind, by group and kind")
}

func TestWalkStops(t *testing.T) {
	v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"),
		policyDoc("Paint", "infra", "p", "targetRefs: [{kind: Gateway, name: g}]\ndefaults: {a: 1}\noverrides: {when: 'spec.a > 0', b: 1}")))
	visit := func(*effective.Effective) error { return nil }
	all := effective.Scope{All: true}

	t.Run("at the visitor's error", func(t *testing.T) {
		stop := errors.New("stop")
		require.ErrorIs(t, effective.NewEngine().Walk(v, all, false, unlimited(), func(*effective.Effective) error { return stop }), stop)
	})
	t.Run("when conditions cost more than the budget", func(t *testing.T) {
		err := effective.NewEngine().Walk(v, all, false, effective.NewBudget(t.Context(), 0), visit)
		require.ErrorIs(t, err, effective.ErrTooMuch)
	})
	t.Run("what was spent is spent", func(t *testing.T) {
		b := effective.NewBudget(t.Context(), 10)
		require.NoError(t, b.Spend(nil, 6))
		require.ErrorIs(t, b.Spend(nil, 6), effective.ErrTooMuch)
	})
	t.Run("between two conditions, too", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := effective.NewBudget(ctx, 10)
		require.NoError(t, b.Spend(nil, 1))
		cancel()
		require.ErrorIs(t, b.Spend(nil, 1), effective.ErrTooMuch)
	})
	t.Run("without any condition", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		v := world(t, twoGateways())
		require.ErrorIs(t, effective.NewEngine().Walk(v, all, false, effective.NewBudget(ctx, 1), visit), effective.ErrTooMuch)
	})
	t.Run("when its context ends", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := effective.NewEngine().Walk(v, all, false, effective.NewBudget(ctx, 1_000_000), visit)
		require.ErrorIs(t, err, effective.ErrTooMuch)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// The memo distinguishes stacks of the same policies at other levels, and what
// versions of a policy.
func TestMemoKeepsStacksApart(t *testing.T) {
	v := world(t, docs(
		gatewayDoc("g1", "istio", "http", "alt"), gatewayDoc("g2", "istio", "http"), routeDoc("r1", "[{}]", "g1"), routeDoc("r2", "[{}]", "g2"),
		"kind: Paint\nmetadata: {namespace: infra, name: a, creationTimestamp: '2024-01-01T00:00:00Z'}\nspec: {defaults: {x: a}, targetRefs: [{kind: Gateway, name: g1}, {kind: Gateway, name: g2, sectionName: http}]}",
		"kind: Paint\nmetadata: {namespace: infra, name: b, creationTimestamp: '2025-01-01T00:00:00Z'}\nspec: {defaults: {x: b}, targetRefs: [{kind: Gateway, name: g1, sectionName: http}, {kind: Gateway, name: g2}]}",
	))
	engine := effective.NewEngine()
	look := func(v2 effective.Scope) []string {
		var all []*effective.Effective
		require.NoError(t, engine.Walk(v, v2, false, unlimited(), func(e *effective.Effective) error {
			all = append(all, e)
			return nil
		}))
		return rulesOf(all)
	}
	want := []string{
		"Paint istio g1/http r1#rule-1: x=b b/defaults",
		"Paint istio g1/alt r1#rule-1: x=a a/defaults",
		"Paint istio g2/http r2#rule-1: x=a a/defaults",
	}
	assert.Equal(t, want, look(effective.Scope{All: true}))
	assert.Equal(t, want, look(effective.Scope{All: true}), "remembered")
	v = v.With(putChange(t, v, "kind: Paint\nmetadata: {namespace: infra, name: a, creationTimestamp: '2024-01-01T00:00:00Z'}\nspec: {defaults: {x: edited}, targetRefs: [{kind: Gateway, name: g1}]}"))
	assert.Equal(t, []string{
		"Paint istio g1/http r1#rule-1: x=b b/defaults",
		"Paint istio g1/alt r1#rule-1: x=edited a/defaults",
		"Paint istio g2/http r2#rule-1: x=b b/defaults",
	}, look(effective.Scope{All: true}))
}

func TestLevel(t *testing.T) {
	v := world(t, docs(gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g"),
		policyDoc("Paint", "infra", "p", "targetRefs: [{kind: Gateway, name: g}, {kind: Gateway, name: g, sectionName: http}]\na: 1"),
		policyDoc("Paint", "infra", "q", "targetRefs: [{kind: Gateway, name: g, sectionName: http}, {kind: Gateway, name: g}]\na: 1"),
		policyDoc("Paint", "app", "r", "targetRefs: [{kind: HTTPRoute, name: r}]\na: 1")))
	e := walked(t, v, effective.Scope{All: true})[0]
	levels := map[string]gateway.Level{}
	for _, o := range e.Outcomes {
		levels[o.Policy.Name] = e.Level(o.Policy)
	}
	assert.Equal(t, map[string]gateway.Level{
		"p": gateway.LevelGateway, "q": gateway.LevelGateway, "r": gateway.LevelRoute,
	}, levels, "the highest, if there are several")
}
