package annotations_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/controllers/annotations"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/test/worlds"
)

// A hash of a short value reveals the value to readers who try all of them.
func TestTextDoesNotDependOnValues(t *testing.T) {
	route := api.Ref{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute", Namespace: "app", Name: "r"}
	policy := api.Ref{Group: "example.com", Kind: "Paint", Namespace: "app", Name: "own"}
	text := func(of api.Ref, block, value string) string {
		v := worlds.World(t, worlds.Docs(worlds.GatewayDoc("g", "istio", "http"), worlds.RouteDoc("r", "[{}]", "g"),
			worlds.PolicyDoc("Paint", "infra", "top", "targetRefs: [{kind: Gateway, name: g}]\n"+block+": {strategy: patch, a: "+value+"}"),
			worlds.PolicyDoc("Paint", "app", "own", "targetRefs: [{kind: HTTPRoute, name: r}]\nstrategy: patch\nb: 1")))
		out, err := annotations.Text(effective.NewEngine(), v, v.Get(of), effective.NewBudget(context.Background(), math.MaxUint64), nil)
		require.NoError(t, err)
		require.NotEmpty(t, out)
		return out
	}
	for _, ref := range []api.Ref{route, policy} {
		for _, block := range []string{"defaults", "overrides"} {
			want := text(ref, block, "guessed")
			for _, value := range []string{"secret", "1", "[1]"} {
				assert.Equal(t, want, text(ref, block, value), "%s: %s", ref, value)
			}
		}
	}
	assert.NotEqual(t, text(route, "defaults", "1"), text(route, "overrides", "1"), "the origin of a rule is not secret")
}
