package snapshot_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// A namespace takes all that is in it along, of every kind, and nothing else.
func TestAllIn(t *testing.T) {
	k := paint(t, "Paint")
	v := (&snapshot.View{}).WithKinds([]*policykind.Kind{k}).With(puts(
		newGateway(t, "edge", "istio"), newGateway(t, "inner", "istio"), route(t, "r", "edge"), policy(t, k, "p", "r"),
		decode(t, gatewayKind, "metadata: {namespace: app2, name: edge}\nspec: {gatewayClassName: istio, listeners: [{name: http, port: 80, protocol: HTTP}]}"),
	)...)
	in := func(namespace string) []string {
		var out []string
		for _, c := range v.AllIn(namespace) {
			assert.Nil(t, c.Object, "they are taken out")
			out = append(out, c.Ref.String())
		}
		slices.Sort(out)
		return out
	}
	assert.Equal(t, []string{"Gateway infra/edge", "Gateway infra/inner"}, in("infra"))
	assert.Equal(t, []string{"HTTPRoute app/r", "Paint app/p"}, in("app"))
	assert.Equal(t, []string{"Gateway app2/edge"}, in("app2"))
	assert.Empty(t, in("none"))
	without := v.With(v.AllIn("app")...)
	assert.Empty(t, names(without.RoutesOf(gatewayRef("edge"))))
	assert.Nil(t, without.Get(routeRef("r")))
	assert.NotNil(t, without.Gateway("infra", "edge"))
}

// What has no namespace is in none, not even in the one without a name.
func TestAllInLeavesWhatHasNoNamespace(t *testing.T) {
	class := decode(t, api.PolicyKind{Group: api.GatewayGroup, Kind: "GatewayClass"}, "metadata: {name: istio}")
	v := (&snapshot.View{}).With(puts(class, newGateway(t, "edge", "istio"))...)
	assert.Empty(t, v.AllIn("istio"))
	assert.Len(t, v.AllIn("infra"), 1)
}
