//go:build e2e

// Package e2e runs the server's binary and kubectl with a real API server. Tests
// run in parallel, each with exclusive use of a control plane: shared returns one
// that is reused, alone one that the test may break.
package e2e

import (
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
	"overrule.dev/overrule/test/shop"
)

func TestMain(m *testing.M) { os.Exit(env.Run(m)) }

// removeWebhooks deletes the webhook configurations of an earlier test's servers,
// which the API server would keep calling.
func (c *cluster) removeWebhooks(t *testing.T) {
	t.Helper()
	succeed(t, c.Kubectl("delete", "--ignore-not-found", "validatingwebhookconfiguration/overrule", "mutatingwebhookconfiguration/overrule"))
	soon(t, func() bool { return c.KubectlWith(server.Probe, "create", "--dry-run=server", "-f", "-").Code == 0 }, "the API server still calls")
}

// awaitCalled waits until the API server calls a server that evaluates writes.
func (c *cluster) awaitCalled(t *testing.T) {
	t.Helper()
	soon(t, func() bool {
		got := c.KubectlWith(server.Probe, "create", "--dry-run=server", "-f", "-")
		return got.Code == 0 && strings.Contains(got.Stderr, "Warning: ")
	}, "the API server does not call the server")
}

// start runs a server until the test ends, and then checks its log.
func (c *cluster) start(t *testing.T, args ...string) *server.Server {
	t.Helper()
	s := server.Start(t, c.Env, server.Options{Args: append([]string{"--log-level=debug", "--drain-period=1s"}, args...)})
	t.Cleanup(func() { requireNoPanic(t, s) })
	return s
}

// requireNoPanic fails the test if a server's log has a panic.
func requireNoPanic(t *testing.T, s *server.Server) {
	t.Helper()
	for line := range strings.Lines(s.Log()) {
		assert.NotContains(t, strings.ToLower(line), "panic")
	}
}

// testNamespaces are the two namespaces of a test: the gateway's and the
// application's.
type testNamespaces struct {
	c          *cluster
	infra, app string
}

// prepare creates a gateway and a route of two rules, with or without a running
// server.
func (c *cluster) prepare(t *testing.T, name string) testNamespaces {
	t.Helper()
	g := c.testNamespaces(name)
	succeed(t, c.Apply(g.expand(shop.Namespaces+"---"+shop.Gateway+"---"+toystore)))
	return g
}

func (c *cluster) testNamespaces(name string) testNamespaces {
	return testNamespaces{c, name + "-infra", name + "-app"}
}

// Manifests. INFRA and APP stand for the namespaces of the test.
const (
	toystore      = shop.Route
	gatewayAuth   = shop.GatewayAuth
	gatewayLimits = shop.GatewayLimits
	routeAuth     = `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: APP, name: toystore-auth}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}
  rules: {authentication: {sso: {issuer: mine}}, authorization: {key: {}}}
`
)

// limits returns a RateLimitPolicy on the route; metadata is added beside its
// namespace.
func limits(metadata string, login int) string {
	return strings.NewReplacer("NAME", metadata, "LIMIT", strconv.Itoa(login)).Replace(shop.RouteLimits)
}

func (g testNamespaces) expand(manifest string) string {
	return shop.In(g.infra, g.app, manifest)
}

// kubectl runs kubectl in the application's namespace.
func (g testNamespaces) kubectl(args ...string) env.Result {
	return g.c.Kubectl(append([]string{"-n", g.app}, args...)...)
}

// apply runs kubectl apply on a manifest of the test.
func (g testNamespaces) apply(manifest string, args ...string) env.Result {
	return g.c.Apply(g.expand(manifest), args...)
}

// get returns a field of an object in the application's namespace.
func (g testNamespaces) get(t *testing.T, object, field string) string {
	t.Helper()
	got := g.kubectl("get", object, "-o", "jsonpath={"+field+"}")
	succeed(t, got)
	return got.Stdout
}

// httpGet returns the body of the response to a plain HTTP request, whatever its status.
func httpGet(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}

func metricsPage(t *testing.T, s *server.Server) string {
	t.Helper()
	return httpGet(t, s.Metrics+"/metrics")
}

func succeed(t *testing.T, got env.Result) {
	t.Helper()
	require.Zero(t, got.Code, got.Stdout+got.Stderr)
}

// denied requires that Overrule denied a write with these texts in its message.
func denied(t *testing.T, got env.Result, says ...string) {
	t.Helper()
	require.Equal(t, 1, got.Code, got.Stdout+got.Stderr)
	assert.Contains(t, got.Stderr, `admission webhook "validate.overrule.dev" denied the request: `)
	for _, part := range says {
		assert.Contains(t, got.Stderr, part)
	}
}

// soon waits until a condition is met.
func soon(t *testing.T, condition func() bool, msg string) {
	t.Helper()
	env.Soon(t, condition, msg)
}
