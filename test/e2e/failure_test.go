//go:build e2e

package e2e

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/process"
	"overrule.dev/overrule/test/server"
)

func TestEnforcementWarnDeniesNothing(t *testing.T) {
	c := shared(t)
	g := c.prepare(t, "warn")
	c.start(t, "--enforcement=warn")
	succeed(t, g.apply(gatewayLimits))
	got := g.apply(limits("name: p", 100))
	succeed(t, got)
	assert.Contains(t, got.Stderr, "Warning: would be denied: ConstraintViolated: limits.login: ")
	assert.Contains(t, g.get(t, "ratelimitpolicy/p", outcome), `"state":"Overridden"`)
}

func TestFailurePolicyWithoutServer(t *testing.T) {
	t.Parallel()
	for policy, allowed := range map[string]bool{"Fail": false, "Ignore": true} {
		t.Run(policy, func(t *testing.T) {
			c := shared(t)
			g := c.prepare(t, "failure-"+strings.ToLower(policy))
			s := c.start(t, "--failure-policy="+policy)
			soon(t, func() bool { return strings.Contains(s.Log(), "the API server reaches the webhooks") }, "Fail would not be registered yet")
			succeed(t, g.apply(gatewayLimits))
			denied(t, g.apply(limits("name: p", 100)), "ConstraintViolated: ")

			require.NoError(t, s.Signal(syscall.SIGTERM))
			<-s.Done()
			require.Zero(t, s.Code(), "exits with code 0 on SIGTERM")
			got := g.apply(limits("name: p", 100))
			assert.Equal(t, allowed, got.Code == 0, got.Stderr)
			assert.Equal(t, !allowed, strings.Contains(got.Stderr, `failed calling webhook "mutate.overrule.dev"`), got.Stderr)
			succeed(t, c.Kubectl("label", "namespace", g.app, "a=b")) // other writes are not affected
		})
	}
}

// A server that starts without any of its rights waits for them. It is not ready
// before it can read the cluster, and leaves the rules as they are until then.
func TestServerWithoutRightsIsNotReady(t *testing.T) {
	env.Long(t)
	c := shared(t)
	g := c.prepare(t, "unready")
	r := newServiceProxy(t)
	succeed(t, g.apply(gatewayLimits))
	able := c.boot(t, r)
	r.setBackends(able.Webhook)
	soon(t, func() bool { return c.failurePolicies(t) == "Fail Fail" }, "Fail is not registered")
	require.NoError(t, able.Stop())
	before := c.rules(t)
	require.Contains(t, before, "ratelimitpolicies")

	base, _, _ := folders(t)
	rights, err := filepath.Glob(filepath.Join(base, "rbac-*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, rights)
	for _, file := range rights {
		succeed(t, c.Kubectl("delete", "-f", file))
	}
	s := c.startUnready(t, r)
	soon(t, func() bool { return strings.Contains(s.Log(), "forbidden") }, "it still has rights")
	requireCallFailed(t, g.apply(limits("name: p", 20)))
	for _, file := range rights {
		if filepath.Base(file) != "rbac-read.yaml" {
			succeed(t, c.Kubectl("apply", "--server-side", "-f", file))
		}
	}
	soon(t, func() bool {
		require.NotZero(t, g.apply(limits("name: p", 20)).Code)
		return strings.Contains(s.Log(), `"msg":"not ready"`)
	}, "it does not answer that it is not ready")
	assert.Equal(t, before, c.rules(t), "kinds that are not listed yet stay in the rules")

	_, err = server.Install(t.Context(), c.Env) // all rights, with the aggregated ones
	require.NoError(t, err)
	awaitEvaluated(t, g)
}

// startUnready runs a server behind a proxy with the current rights of its
// account, and does not wait until it is ready.
func (c *cluster) startUnready(t *testing.T, r *serviceProxy, flags ...string) *process.Process {
	t.Helper()
	account, err := c.ServiceAccount(t.Context(), server.Namespace, server.Name)
	require.NoError(t, err)
	port, err := env.FreePort(t.Context())
	require.NoError(t, err)
	s := c.run(t, account, append([]string{
		r.flag(), "--webhook-timeout=10s", "--lease-duration=60s", "--webhook-bind-address=" + loopback(port), "--metrics-bind-address=0", "--health-bind-address=127.0.0.1:0",
	}, flags...)...)
	r.setBackends(loopback(port))
	return s
}

// run runs a server as an account, and stops it when the test ends.
func (c *cluster) run(t *testing.T, account *env.User, flags ...string) *process.Process {
	t.Helper()
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	s, err := process.Start(process.Spec{Path: filepath.Join(root, "bin", "overrule"), Args: append([]string{
		"--kubeconfig=" + account.Kubeconfig, "--log-level=debug", "--drain-period=0s", "--peer-bind-address=127.0.0.1:0",
	}, flags...)})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.Stop())
		assert.Zero(t, s.Code())
		if t.Failed() {
			t.Log(s.Log())
		}
		assert.NotContains(t, strings.ToLower(s.Log()), "panic")
	})
	return s
}

// rules returns the resources of the webhook rules.
func (c *cluster) rules(t *testing.T) string {
	t.Helper()
	got := c.Kubectl("get", "validatingwebhookconfiguration/overrule", "-o", "jsonpath={.webhooks[0].rules[*].resources}")
	succeed(t, got)
	return got.Stdout
}

// TestDeletedCRD leaves policies of the kind in place, which the API server
// deletes with the CRD without watch events.
func TestDeletedCRD(t *testing.T) {
	c := shared(t)
	g := c.prepare(t, "crd")
	s := c.start(t)
	succeed(t, g.apply(gatewayLimits))
	const color = `
apiVersion: policies.example.com/v1
kind: ColorPolicy
metadata: {namespace: APP, name: color}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}}
`
	succeed(t, g.apply(color))
	require.Contains(t, c.rules(t), "colorpolicies")

	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	crd := filepath.Join(root, "examples", "crds", "policies.example.com_colorpolicies.yaml")
	require.FileExists(t, crd)
	succeed(t, c.Kubectl("delete", "-f", crd, "--timeout=1m"))
	t.Cleanup(func() { assert.NoError(t, c.InstallCRDs(crd)) })
	denied(t, g.apply(limits("name: p", 100)), "ConstraintViolated: ")
	succeed(t, g.apply(limits("name: p", 20)))
	soon(t, func() bool { return !strings.Contains(c.rules(t), "colorpolicies") }, "the rules still name the kind")

	require.NoError(t, c.InstallCRDs(crd))
	soon(t, func() bool { return strings.Contains(c.rules(t), "colorpolicies") }, "the rules do not name the kind")
	soon(t, func() bool { return g.apply(color).Code == 0 }, "the kind cannot be written")
	requireRunning(t, s)
}
