//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

// A server in a cluster without any of the CRDs that it reads is ready, blocks no
// writes, and evaluates them as soon as the CRDs are created, in any order.
func TestServerStartsBeforeCRDs(t *testing.T) {
	env.Long(t)
	c := alone(t, env.WithoutCRDs(), env.WithControllerAccounts())
	_, ours, gw := folders(t)
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	policies := filepath.Join(root, "examples", "crds")
	site, err := server.Install(t.Context(), c.Env)
	require.NoError(t, err)
	comes := map[string]func(*testing.T){
		"Overrule's": func(t *testing.T) {
			t.Helper()
			require.NoError(t, c.InstallCRDs(ours))
			soon(t, func() bool {
				return strings.Contains(c.Apply(profileOf("odd", "..odd.."), "--dry-run=server").Stderr, "Invalid: ")
			}, "profiles are not evaluated")
		},
		"Gateway API's": func(t *testing.T) {
			t.Helper()
			require.NoError(t, c.InstallCRDs(gw))
			soon(t, func() bool { return c.Apply(orphan, "--dry-run=server").Code == 0 }, "routes cannot be written")
		},
		"the policies'": func(t *testing.T) {
			t.Helper()
			require.NoError(t, c.InstallCRDs(policies))
			soon(t, func() bool { return strings.Contains(c.rules(t), "ratelimitpolicies") }, "the rules do not name them")
			c.awaitCalled(t)
		},
	}
	for _, order := range [][]string{
		{"Overrule's", "Gateway API's", "the policies'"},
		{"the policies'", "Gateway API's", "Overrule's"},
		{"Gateway API's", "Overrule's", "the policies'"},
	} {
		t.Run(strings.Join(order, ", then "), func(t *testing.T) {
			c.undefine(t)
			s, err := site.Boot(t.Context(), server.Options{Unprobed: true}) // wait for readiness only
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Stop()) })
			soon(t, func() bool { return strings.Count(c.registered(t), "overrule") == 2 }, "it does not register itself")
			c.requireWritable(t)
			for _, what := range order {
				comes[what](t)
				c.requireWritable(t)
			}
			g := c.prepare(t, "undefined")
			awaitEvaluated(t, g)
			requireRunning(t, s)
			requireNoPanic(t, s)
		})
	}
}

// undefine deletes all CRDs.
func (c *cluster) undefine(t *testing.T) {
	t.Helper()
	succeed(t, c.Kubectl("delete", "crds", "--all", "--wait=false"))
	soon(t, func() bool {
		c.TouchCRDs()
		left := c.Kubectl("get", "crds", "-o", "name")
		return left.Code == 0 && left.Stdout == ""
	}, "there are CRDs left")
}

// orphan is a route without a gateway.
const orphan = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: default, name: orphan}
spec: {hostnames: [orphan.example.com]}
`

// All servers use the same port, as behind a cluster's Service: the
// configurations need no update.
func TestScaledToZeroAndBack(t *testing.T) {
	env.Long(t)
	c := alone(t, env.WithControllerAccounts())
	g := c.prepare(t, "scaled")
	port, err := env.FreePort(t.Context())
	require.NoError(t, err)
	at := []string{fmt.Sprintf("--webhook-bind-address=127.0.0.1:%d", port), "--peer-bind-address=127.0.0.1:0", fmt.Sprintf("--service-port=%d", port)}
	s := c.start(t, at...)
	requireEvaluated(t, g)
	require.NoError(t, s.Stop())
	require.Zero(t, s.Code(), "exits with code 0 on SIGTERM")

	for _, got := range []env.Result{
		g.apply(limits("name: p", 30)), g.apply(orphan), g.kubectl("delete", "ratelimitpolicy/p"),
		g.kubectl("delete", "httproute/toystore"), c.Kubectl("-n", g.infra, "delete", "gateway/edge"),
	} {
		requireCallFailed(t, got)
	}
	c.requireWritable(t)
	before := map[string]string{"validating": c.webhooks(t, "validating"), "mutating": c.webhooks(t, "mutating")}

	s = c.start(t, at...)
	awaitEvaluated(t, g)
	for kind, was := range before {
		require.Equal(t, was, c.webhooks(t, kind), "they needed no update")
	}
	requireRunning(t, s)
}

// A server that starts without any of its rights waits for them.
func TestServerStartsBeforeRBAC(t *testing.T) {
	env.Long(t)
	c := alone(t, env.WithControllerAccounts())
	base, _, _ := folders(t)
	g := c.prepare(t, "rights")
	r := newServiceProxy(t)
	able := c.boot(t, r)
	r.setBackends(able.Webhook)
	c.awaitCalled(t)
	requireEvaluated(t, g)
	require.NoError(t, able.Stop())

	rights, err := filepath.Glob(filepath.Join(base, "rbac-*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, rights)
	for _, file := range rights {
		succeed(t, c.Kubectl("delete", "-f", file))
	}
	succeed(t, c.Kubectl("-n", server.Namespace, "delete", "secrets,leases", "--all")) // those of an earlier server that had the rights
	s := c.startUnready(t, r)
	soon(t, func() bool { return strings.Contains(s.Log(), "forbidden") }, "it still has rights")
	requireCallFailed(t, g.apply(limits("name: p", 30)))
	c.requireWritable(t)

	for _, file := range rights {
		succeed(t, c.Kubectl("apply", "--server-side", "-f", file))
	}
	_, err = server.Install(t.Context(), c.Env) // creates the aggregated rights
	require.NoError(t, err)
	awaitEvaluated(t, g)
}
