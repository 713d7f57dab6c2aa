package watch

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/store"
)

const benchRoutes = 10_000

// fullRoute is a route as they are in clusters: a parent, a host, some rules.
func fullRoute(t testing.TB, i int) *hierarchy.RouteObject {
	t.Helper()
	gateways := gatewayv1.Namespace("infra")
	spec := gatewayv1.HTTPRouteSpec{Hostnames: []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("r%d.example.com", i))}}
	spec.ParentRefs = []gatewayv1.ParentReference{{Namespace: &gateways, Name: gatewayv1.ObjectName(fmt.Sprintf("gw-%04d", i%1000))}}
	for j := range 4 {
		path := fmt.Sprintf("/v%d", j)
		prefix := gatewayv1.PathMatchPathPrefix
		spec.Rules = append(spec.Rules, gatewayv1.HTTPRouteRule{
			Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: &prefix, Value: &path}}},
		})
	}
	r := httpRoute(fmt.Sprintf("route-%05d", i))
	var err error
	r.Spec, err = json.Marshal(spec)
	require.NoError(t, err)
	return r
}

func authPolicy(i int) *unstructured.Unstructured {
	u := policy("AuthPolicy", "app", fmt.Sprintf("policy-%05d", i))
	u.Object["spec"] = map[string]any{
		"targetRef": map[string]any{
			"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": fmt.Sprintf("route-%05d", i),
		},
		"rules": map[string]any{"authentication": map[string]any{
			"keys": map[string]any{"apiKey": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "toystore"}}}},
			"jwt":  map[string]any{"jwt": map[string]any{"issuerUrl": "https://issuer.example.com"}},
		}},
	}
	return u
}

// BenchmarkEvent is one event of a watch, from the decoded object to the
// store's next moment, with 10,000 routes and as many policies in the store.
func BenchmarkEvent(b *testing.B) {
	s := store.New()
	routes := routeSink(s)
	kind := known(b).Of(api.PolicyKind{Group: "kuadrant.io", Kind: "AuthPolicy"})
	auth := &sink[store.Object]{
		decode: policies(kind), target: objects{store: s, kind: kind.Ref()},
		contact: newContact("authpolicies"), log: logr.Discard(), listed: func() {},
	}
	s.AddKind(kind)
	var allRoutes, allPolicies []any
	for i := range benchRoutes {
		allRoutes, allPolicies = append(allRoutes, fullRoute(b, i)), append(allPolicies, authPolicy(i))
	}
	require.NoError(b, routes.Replace(allRoutes, "1"))
	require.NoError(b, auth.Replace(allPolicies, "1"))
	s.KindListed(kind.Ref())

	b.Run("route", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_ = routes.Update(allRoutes[i%benchRoutes])
		}
	})
	b.Run("policy", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_ = auth.Update(allPolicies[i%benchRoutes])
		}
	})
}
