//go:build e2e

// Package e2e plays the server's binary and kubectl against a real API server.
// Tests run in parallel, each on a control plane that it has for itself
// meanwhile: shared returns one that the next test uses again, alone one that the
// test may wreck.
package e2e

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
	"overrule.dev/overrule/test/shop"
)

func TestMain(m *testing.M) { os.Exit(planes.stop(m.Run())) }

// removeWebhooks removes the webhook configurations that an earlier test's servers wrote:
// the API server would go on calling them.
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

// start runs a server until the test ends, and checks its log then.
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

// testNamespaces is two namespaces of one test: the gateway's and the application's.
type testNamespaces struct {
	c          *cluster
	infra, app string
}

// prepare creates a gateway and a route of two rules, before any server may
// evaluate them or while one does.
func (c *cluster) prepare(t *testing.T, name string) testNamespaces {
	t.Helper()
	g := c.testNamespaces(name)
	succeed(t, c.Apply(g.expand(shop.Namespaces+"---"+shop.Gateway+"---"+toystore)))
	return g
}

func (c *cluster) testNamespaces(name string) testNamespaces {
	return testNamespaces{c, name + "-infra", name + "-app"}
}

// Manifests, with INFRA and APP for a test's own namespaces.
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

// limits is a RateLimitPolicy on the route; metadata is what stands beside its
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

// get is a field of an object in the application's namespace.
func (g testNamespaces) get(t *testing.T, object, field string) string {
	t.Helper()
	got := g.kubectl("get", object, "-o", "jsonpath={"+field+"}")
	succeed(t, got)
	return got.Stdout
}

func succeed(t *testing.T, got env.Result) {
	t.Helper()
	require.Zero(t, got.Code, got.Stdout+got.Stderr)
}

// denied requires that our webhook denied a write, for a reason.
func denied(t *testing.T, got env.Result, says ...string) {
	t.Helper()
	require.Equal(t, 1, got.Code, got.Stdout+got.Stderr)
	assert.Contains(t, got.Stderr, `admission webhook "validate.overrule.dev" denied the request: `)
	for _, part := range says {
		assert.Contains(t, got.Stderr, part)
	}
}

// soon waits for what happens a moment later.
func soon(t *testing.T, condition func() bool, msg string) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, 20*time.Millisecond, msg)
}
