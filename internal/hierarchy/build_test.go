package hierarchy_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/internal/hierarchy"
)

func read[T any](t testing.TB, text string) *T {
	t.Helper()
	var out T
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &out), text)
	return &out
}

func readGateway(t testing.TB, text string) *hierarchy.Gateway {
	t.Helper()
	return hierarchy.FromGateway(read[gatewayv1.Gateway](t, text))
}

// route reads a route of a kind.
func route(t testing.TB, kind, text string) *hierarchy.Route {
	t.Helper()
	out, err := hierarchy.FromRoute(kind, read[hierarchy.RouteObject](t, text))
	require.NoError(t, err, text)
	return out
}

func httpRoute(t testing.TB, text string) *hierarchy.Route {
	t.Helper()
	return route(t, hierarchy.KindHTTPRoute, text)
}

func grpcRoute(t testing.TB, text string) *hierarchy.Route {
	t.Helper()
	return route(t, hierarchy.KindGRPCRoute, text)
}

func listenerSet(t testing.TB, text string) *hierarchy.ListenerSet {
	t.Helper()
	return hierarchy.FromListenerSet(read[gatewayv1.ListenerSet](t, text))
}

func service(t testing.TB, text string) *hierarchy.Service {
	t.Helper()
	return hierarchy.FromService(read[corev1.Service](t, text))
}

func namespace(t testing.TB, text string) *hierarchy.Namespace {
	t.Helper()
	return hierarchy.FromNamespace(read[corev1.Namespace](t, text))
}

// attached returns the positions of the doors that take the route.
func attached(doors []hierarchy.Door, r *hierarchy.Route, namespaceLabels labels.Set) []int {
	var out []int
	for i, d := range doors {
		if d.Takes(r, namespaceLabels) {
			out = append(out, i)
		}
	}
	return out
}
