package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// Two paths are the same but for the rule if and only if their identities are.
func TestPathsThatAreTheSameButForTheRule(t *testing.T) {
	listener := func(name string) *gateway.Listener { return &gateway.Listener{Name: name} }
	all := []gateway.Path{
		{},
		{Gateway: &gateway.Gateway{Namespace: "a", Name: "g"}},
		{Gateway: &gateway.Gateway{Namespace: "b", Name: "g"}},
		{Gateway: &gateway.Gateway{Namespace: "a", Name: "g"}, Listener: listener("x")},
		{Gateway: &gateway.Gateway{Namespace: "a", Name: "g", Class: "other"}, Listener: listener("x")},
		{Gateway: &gateway.Gateway{Namespace: "a", Name: "g"}, Listener: listener("y")},
		{Set: &gateway.ListenerSet{Namespace: "a", Name: "s"}, Listener: listener("x")},
		{Set: &gateway.ListenerSet{Namespace: "b", Name: "s"}, Listener: listener("x")},
		{Service: &gateway.Service{Namespace: "a", Name: "s"}},
		{Service: &gateway.Service{Namespace: "a", Name: "s"}, Port: 80},
		{Service: &gateway.Service{Namespace: "a", Name: "s"}, Client: "c"},
		{Route: &gateway.Route{Kind: "HTTPRoute", Namespace: "a", Name: "r"}},
		{Route: &gateway.Route{Kind: "HTTPRoute", Namespace: "a", Name: "r"}, Rule: 1},
		{Route: &gateway.Route{Kind: "GRPCRoute", Namespace: "a", Name: "r"}},
		{Route: &gateway.Route{Kind: "HTTPRoute", Namespace: "a", Name: "r"}, Backend: &gateway.Backend{Port: 1}},
		{Route: &gateway.Route{Kind: "HTTPRoute", Namespace: "a", Name: "r"}, Backend: &gateway.Backend{Port: 2}},
		{Route: &gateway.Route{Kind: "HTTPRoute", Namespace: "a", Name: "r"}, Member: "filters[1]"},
		{Virtual: &api.Ref{Kind: "Bucket", Namespace: "a", Name: "b"}},
		{Virtual: &api.Ref{Kind: "Bucket", Namespace: "a", Name: "c"}},
	}
	for i := range all {
		for j := range all {
			x, y := all[i].ID(), all[j].ID()
			x.Rule, y.Rule = 0, 0
			assert.Equal(t, x == y, all[i].SameButRule(&all[j]), "%d and %d", i, j)
		}
	}
}
