package hierarchy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
)

// Two paths are the same but for the rule if and only if their identities are.
func TestPathsThatAreTheSameButForTheRule(t *testing.T) {
	listener := func(name string) *hierarchy.Listener { return &hierarchy.Listener{Name: name} }
	all := []hierarchy.Path{
		{},
		{Gateway: &hierarchy.Gateway{Namespace: "a", Name: "g"}},
		{Gateway: &hierarchy.Gateway{Namespace: "b", Name: "g"}},
		{Gateway: &hierarchy.Gateway{Namespace: "a", Name: "g"}, Listener: listener("x")},
		{Gateway: &hierarchy.Gateway{Namespace: "a", Name: "g", Class: "other"}, Listener: listener("x")},
		{Gateway: &hierarchy.Gateway{Namespace: "a", Name: "g"}, Listener: listener("y")},
		{Set: &hierarchy.ListenerSet{Namespace: "a", Name: "s"}, Listener: listener("x")},
		{Set: &hierarchy.ListenerSet{Namespace: "b", Name: "s"}, Listener: listener("x")},
		{Service: &hierarchy.Service{Namespace: "a", Name: "s"}},
		{Service: &hierarchy.Service{Namespace: "a", Name: "s"}, Port: 80},
		{Service: &hierarchy.Service{Namespace: "a", Name: "s"}, Client: "c"},
		{Route: &hierarchy.Route{Kind: "HTTPRoute", Namespace: "a", Name: "r"}},
		{Route: &hierarchy.Route{Kind: "HTTPRoute", Namespace: "a", Name: "r"}, Rule: 1},
		{Route: &hierarchy.Route{Kind: "GRPCRoute", Namespace: "a", Name: "r"}},
		{Route: &hierarchy.Route{Kind: "HTTPRoute", Namespace: "a", Name: "r"}, Backend: &hierarchy.Backend{Port: 1}},
		{Route: &hierarchy.Route{Kind: "HTTPRoute", Namespace: "a", Name: "r"}, Backend: &hierarchy.Backend{Port: 2}},
		{Route: &hierarchy.Route{Kind: "HTTPRoute", Namespace: "a", Name: "r"}, Member: "filters[1]"},
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
