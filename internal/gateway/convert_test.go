package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/test/tables"
)

// SEMANTICS section 7: a verdict must not depend on the entry point. Each pair is an
// object as a file has it and as the API server stores it.
func TestObjectsFromFilesAreDefaulted(t *testing.T) {
	routes := tables.Read[map[string]struct{ File, Stored string }](t, "testdata/tables/defaulted.yaml")
	for name, test := range routes {
		t.Run(name, func(t *testing.T) {
			assertSame(t, gateway.KindHTTPRoute, test.Stored, test.File)
		})
	}
	t.Run("a GRPCRoute's methods and headers", func(t *testing.T) {
		assertSame(t, gateway.KindGRPCRoute,
			"metadata: {namespace: app, name: r}\nspec: {rules: [{matches: [{method: {type: Exact, service: s}, headers: [{type: Exact, name: h, value: v}]}]}]}",
			"metadata: {namespace: app, name: r}\nspec: {rules: [{matches: [{method: {service: s}, headers: [{name: h, value: v}]}]}]}")
	})
	t.Run("a GRPCRoute without rules has none", func(t *testing.T) {
		assert.Empty(t, grpcRoute(t, "metadata: {namespace: app, name: r}\nspec: {}").Rules)
	})
	t.Run("a listener's allowedRoutes", func(t *testing.T) {
		assert.Equal(t,
			readGateway(t, "metadata: {namespace: default, name: g}\nspec: {gatewayClassName: c, listeners: [{name: l, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Same}}}]}"),
			readGateway(t, "metadata: {name: g}\nspec: {gatewayClassName: c, listeners: [{name: l, port: 80, protocol: HTTP}]}"))
	})
	t.Run("a namespace's label of its name", func(t *testing.T) {
		n := namespace(t, "metadata: {name: app, labels: {team: red}}")
		assert.Equal(t, labels.Set{"team": "red", "kubernetes.io/metadata.name": "app"}, n.Labels)
	})
}

// assertSame checks that two texts of a route decode to the same route, and that their
// rules match whatever their order.
func assertSame(t *testing.T, kind, stored, file string) {
	t.Helper()
	want, got := route(t, kind, stored), route(t, kind, file)
	assert.Equal(t, want.Ref(), got.Ref())
	assert.Equal(t, want.Parents, got.Parents)
	require.Len(t, got.Rules, len(want.Rules))
	for i := range want.Rules {
		assert.Equal(t, want.RuleName(i), got.RuleName(i))
	}
	front := "rules: [{matches: [{path: {value: /front}}]}, "
	if kind == gateway.KindGRPCRoute {
		front = "rules: [{matches: [{method: {service: front}}]}, "
	}
	shifted := []int{-1}
	for i := range got.Rules {
		shifted = append(shifted, i)
	}
	if moved := strings.Replace(stored, "rules: [", front, 1); moved != stored {
		assert.Equal(t, shifted, gateway.MatchRules(got, route(t, kind, moved)))
	}
}

func TestConversionDoesNotModifyObject(t *testing.T) {
	const text = "metadata: {namespace: app, name: r, annotations: {overrule.dev/x: y, a: b}}\nspec: {rules: [{matches: [{headers: [{name: h, value: v}]}]}]}"
	o := read[gateway.RouteObject](t, text)
	r, err := gateway.FromRoute(gateway.KindHTTPRoute, o)
	require.NoError(t, err)
	gateway.MatchRules(r, httpRoute(t, "metadata: {name: r}"))
	r.Spec()
	assert.Equal(t, read[gateway.RouteObject](t, text), o)
}

func TestUsesDefaultGateways(t *testing.T) {
	for text, want := range map[string]bool{
		"{}":                                                    false,
		"{useDefaultGateways: None}":                            false,
		"{useDefaultGateways: ''}":                              false,
		"{useDefaultGateways: null}":                            false,
		"{useDefaultGateways: All}":                             true,
		"{useDefaultGateways: All, parentRefs: null}":           true,
		"{useDefaultGateways: All, parentRefs: []}":             true,
		"{useDefaultGateways: All, parentRefs: [{name: edge}]}": true,
		"{useDefaultGateways: Other}":                           true,
	} {
		assert.Equal(t, want, httpRoute(t, "metadata: {name: r}\nspec: "+text).UsesDefaultGateways(), text)
	}
}

func TestRefs(t *testing.T) {
	g := readGateway(t, "metadata: {namespace: infra, name: edge}\nspec: {gatewayClassName: istio, listeners: [{name: a, port: 80, protocol: HTTP}, {name: b, port: 81, protocol: HTTP}]}")
	assert.Equal(t, api.Ref{Group: api.GatewayGroup, Kind: "Gateway", Namespace: "infra", Name: "edge"}, g.Ref())
	assert.Equal(t, "istio", g.Class)
	assert.True(t, gateway.HasListener(g.Listeners, "b", 0))
	assert.False(t, gateway.HasListener(g.Listeners, "c", 0))
	assert.Equal(t, api.Ref{Group: api.GatewayGroup, Kind: "ListenerSet", Namespace: "team", Name: "more"}, listenerSet(t, "metadata: {namespace: team, name: more}").Ref())
	class := gateway.FromGatewayClass(read[gatewayv1.GatewayClass](t, "metadata: {name: istio}"))
	assert.Equal(t, api.Ref{Group: api.GatewayGroup, Kind: "GatewayClass", Name: "istio"}, class.Ref())
	assert.Equal(t, api.Ref{Kind: "Namespace", Name: "app"}, namespace(t, "metadata: {name: app}").Ref())
	assert.Equal(t, "GRPCRoute", grpcRoute(t, "metadata: {name: r}").Ref().Kind)
}
