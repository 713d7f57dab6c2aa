package hierarchy_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
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

func gateway(t testing.TB, text string) *hierarchy.Gateway {
	t.Helper()
	return hierarchy.FromGateway(read[gatewayv1.Gateway](t, text))
}

func httpRoute(t testing.TB, text string) *hierarchy.Route {
	t.Helper()
	return hierarchy.FromHTTPRoute(read[gatewayv1.HTTPRoute](t, text))
}

func grpcRoute(t testing.TB, text string) *hierarchy.Route {
	t.Helper()
	return hierarchy.FromGRPCRoute(read[gatewayv1.GRPCRoute](t, text))
}

func namespace(t testing.TB, text string) *hierarchy.Namespace {
	t.Helper()
	return hierarchy.FromNamespace(read[corev1.Namespace](t, text))
}
