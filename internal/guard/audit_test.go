package guard_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
)

// An audit reports existing violations, regardless of their cause.
func TestAudit(t *testing.T) {
	v := world(t, base(lock, lockTop(byKey), lockOwn("gate: 1\nways: {open: 1}"), policyDoc("Paint", "infra", "fine", toGateway+hard)))
	kind := api.PolicyKind{Group: "example.com", Kind: "Lock"}
	top := api.Ref{Group: "example.com", Kind: "Lock", Namespace: "infra", Name: "top"}
	path := func(rule int, section string) []api.PathElement {
		return []api.PathElement{
			{Kind: "GatewayClass", Name: "istio"}, {Kind: "Gateway", Namespace: "infra", Name: "g"},
			{Kind: "Listener", Namespace: "infra", Name: "g", Section: "http"}, {Kind: "HTTPRoute", Namespace: "app", Name: "r"},
			{Kind: "HTTPRouteRule", Namespace: "app", Name: "r", Section: section, Index: &rule},
		}
	}
	violation := func(path []api.PathElement, rule, message string) api.Violation {
		own := api.Ref{Group: "example.com", Kind: "Lock", Namespace: "app", Name: "own"}
		return api.Violation{Code: api.ReasonOverrideWeakened, Action: api.Deny, PolicyKind: kind, Path: path, Rule: rule, Policy: &top, Object: own, Field: "spec." + rule, Message: message}
	}
	const (
		gates  = "Lock app/own, ways.key, Lock infra/top"
		waters = "ways.open, Lock app/own, ways.key, Lock infra/top"
	)
	got, err := (&guard.Guard{Engine: effective.NewEngine()}).Violations(t.Context(), v, effective.Scope{All: true})
	require.NoError(t, err)
	assert.Equal(t, []api.Violation{
		violation(path(0, "rule-1"), "gate", gates), violation(path(0, "rule-1"), "ways.open", waters),
		violation(path(1, "rule-2"), "gate", gates), violation(path(1, "rule-2"), "ways.open", waters),
	}, violations(t, got))
	t.Run("in its scope alone", func(t *testing.T) {
		got, err := (&guard.Guard{Engine: effective.NewEngine()}).Violations(t.Context(), v, effective.Scope{Objects: []api.Ref{routeRef("none")}})
		require.NoError(t, err)
		assert.Empty(t, got)
	})
	t.Run("with the action that the profile has", func(t *testing.T) {
		mild := world(t, base(lock+"\n  actions: {OverrideWeakened: Audit}", lockTop(byKey), lockOwn("gate: 1")))
		got, err := (&guard.Guard{Engine: effective.NewEngine()}).Violations(t.Context(), mild, effective.Scope{All: true})
		require.NoError(t, err)
		require.Len(t, got, 2)
		assert.Equal(t, api.Audit, got[0].Action)
	})
	t.Run("until its time is over", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := (&guard.Guard{Engine: effective.NewEngine()}).Violations(ctx, v, effective.Scope{All: true})
		require.ErrorIs(t, err, effective.ErrTooMuch)
	})
	t.Run("whatever conditions cost", func(t *testing.T) {
		costly := world(t, base(gatewayPolicy(clip), routePolicy("a: 100")))
		_, err := (&guard.Guard{Engine: effective.NewEngine(), Budget: 1}).Violations(t.Context(), costly, effective.Scope{All: true})
		require.NoError(t, err)
	})
}

// A limit on a rule of a route binds to that rule or to nothing, whatever the others
// match; one on the route is content with any.
func TestAuditReportsUnboundLimits(t *testing.T) {
	own := api.Ref{Group: "example.com", Kind: "Rate", Namespace: "app", Name: "own"}
	first := 0
	onFirst := api.Violation{
		Code: api.ReasonTriggerUnmatched, Action: api.Deny, PolicyKind: api.PolicyKind{Group: "example.com", Kind: "Rate"},
		Path: []api.PathElement{
			{Kind: "GatewayClass", Name: "istio"}, {Kind: "Gateway", Namespace: "infra", Name: "g"},
			{Kind: "Listener", Namespace: "infra", Name: "g", Section: "http"}, {Kind: "HTTPRoute", Namespace: "app", Name: "r"},
			{Kind: "HTTPRouteRule", Namespace: "app", Name: "r", Section: "rule-1", Index: &first},
		},
		Rule: "limits.a", Policy: &own, Object: own, Field: "spec.limits.a", Message: "limits.a, Rate app/own, HTTPRoute app/r",
	}
	for name, c := range map[string]struct {
		policy string
		want   []api.Violation
	}{
		"on a rule, of the match of another one": {rateOf("app", "own", toItsRule, limitsDoc(aLimit("a", onAssets))), []api.Violation{onFirst}},
		"on a rule, of its match":                {rateOf("app", "own", toItsRule, limitsDoc(aLimit("a", onToys))), nil},
		"on the route, of one rule's match":      {rateOwn(limitsDoc(aLimit("a", onAssets))), nil},
		"on the gateway, of no rule's match":     {rateTop(limitsDoc(aLimit("a", onTypo))), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&guard.Guard{Engine: effective.NewEngine()}).Violations(t.Context(), world(t, bindingWorld(c.policy)), effective.Scope{All: true})
			require.NoError(t, err)
			assert.Equal(t, c.want, violations(t, got))
		})
	}
}
