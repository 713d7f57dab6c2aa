package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/internal/gateway"
)

func read[T any](t testing.TB, text string) *T {
	t.Helper()
	var out T
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &out), text)
	return &out
}

func readGateway(t testing.TB, text string) *gateway.Gateway {
	t.Helper()
	return gateway.FromGateway(read[gatewayv1.Gateway](t, text))
}

// route decodes a route of a kind.
func route(t testing.TB, kind, text string) *gateway.Route {
	t.Helper()
	out, err := gateway.FromRoute(kind, read[gateway.RouteObject](t, text))
	require.NoError(t, err, text)
	return out
}

func httpRoute(t testing.TB, text string) *gateway.Route {
	t.Helper()
	return route(t, gateway.KindHTTPRoute, text)
}

func grpcRoute(t testing.TB, text string) *gateway.Route {
	t.Helper()
	return route(t, gateway.KindGRPCRoute, text)
}

func listenerSet(t testing.TB, text string) *gateway.ListenerSet {
	t.Helper()
	return gateway.FromListenerSet(read[gatewayv1.ListenerSet](t, text))
}

func service(t testing.TB, text string) *gateway.Service {
	t.Helper()
	return gateway.FromService(read[corev1.Service](t, text))
}

func namespace(t testing.TB, text string) *gateway.Namespace {
	t.Helper()
	return gateway.FromNamespace(read[corev1.Namespace](t, text))
}

// attached returns the indexes of the listeners that accept the route.
func attached(listeners []gateway.ListenerMatch, r *gateway.Route, namespaceLabels labels.Set) []int {
	var out []int
	for i, l := range listeners {
		if l.Accepts(r, namespaceLabels) {
			out = append(out, i)
		}
	}
	return out
}
