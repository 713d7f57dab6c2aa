package effective_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// The objects of the tests.
var (
	world      = worlds.World
	read       = worlds.Read
	gatewayDoc = worlds.GatewayDoc
	routeDoc   = worlds.RouteDoc
	policyDoc  = worlds.PolicyDoc
	docs       = worlds.Docs
)

func unlimited() *effective.Budget {
	return effective.NewBudget(context.Background(), math.MaxUint64)
}

// walked collects the effective policies of a scope.
func walked(t testing.TB, v *snapshot.View, s effective.Scope) []*effective.Effective {
	t.Helper()
	var out []*effective.Effective
	require.NoError(t, effective.NewEngine().Walk(v, s, false, unlimited(), func(e *effective.Effective) error {
		out = append(out, e)
		return nil
	}))
	return out
}

// pathsOf formats the paths of effective policies, as in
// "Paint istio edge/http r#rule-1".
func pathsOf(all []*effective.Effective) []string {
	var out []string
	for _, e := range all {
		out = append(out, pathOf(e))
	}
	return out
}

func pathOf(e *effective.Effective) string {
	return fmt.Sprintf("%s %s %s/%s %s#%s", e.Kind.Kind, e.Path.Gateway.Class, e.Path.Gateway.Name,
		e.Path.Listener.Name, e.Path.Route.Name, e.Path.Route.RuleName(e.Path.Rule))
}

// rulesOf formats each effective policy as its path and rules.
func rulesOf(all []*effective.Effective) []string {
	var out []string
	for _, e := range all {
		text := pathOf(e) + ":"
		for _, r := range e.Rules {
			text += fmt.Sprintf(" %s=%v %s/%s", r.Key, r.Value, r.From.Policy.Name, r.From.Block)
		}
		out = append(out, text)
	}
	return out
}

func gatewayRef(name string) api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: "Gateway", Namespace: "infra", Name: name}
}

func routeRef(name string) api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "app", Name: name}
}

func paintRef(namespace, name string) api.Ref {
	return api.Ref{Group: "example.com", Kind: "Paint", Namespace: namespace, Name: name}
}

// outcomeOf returns the outcome of a policy over all paths of the view.
func outcomeOf(t testing.TB, v *snapshot.View, ref api.Ref) api.Outcome {
	t.Helper()
	var s explain.Outcomes
	for _, e := range walked(t, v, effective.Scope{All: true}) {
		s.Add(e)
	}
	p, ok := v.Get(ref).(*policykind.Policy)
	require.True(t, ok, "no %s", ref)
	return s.Of(v, p)
}
