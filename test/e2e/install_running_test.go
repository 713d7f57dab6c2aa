//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

// uidOf returns the uid of an object, or "" if it does not exist.
func (c *cluster) uidOf(t *testing.T, args ...string) string {
	t.Helper()
	got := c.Kubectl(append([]string{"get", "--ignore-not-found", "-o", "jsonpath={.metadata.uid}"}, args...)...)
	succeed(t, got)
	return got.Stdout
}

// Objects that a server created for itself are recreated if a user deletes them.
// Meanwhile every write is evaluated, and none is rejected.
func TestDeletedObjectsAreRecreated(t *testing.T) {
	env.Long(t)
	c := alone(t, env.WithControllerAccounts())
	g := c.prepare(t, "deleted")
	s := c.start(t)
	requireEvaluated(t, g)
	for _, what := range []string{"secret/overrule-ca", "secret/overrule-path", "lease/overrule"} {
		t.Run(what, func(t *testing.T) {
			before := c.uidOf(t, "-n", server.Namespace, what)
			require.NotEmpty(t, before)
			succeed(t, c.Kubectl("-n", server.Namespace, "delete", what))
			requireEvaluated(t, g)
			soon(t, func() bool {
				after := c.uidOf(t, "-n", server.Namespace, what)
				return after != "" && after != before
			}, "it does not recover")
			requireEvaluated(t, g)
			requireRunning(t, s)
		})
	}
	t.Run("all of them, and the leader stays the same", func(t *testing.T) {
		leads := c.leader(t)
		succeed(t, c.Kubectl("-n", server.Namespace, "delete", "secrets,leases", "--all"))
		requireEvaluated(t, g)
		soon(t, func() bool {
			return c.leader(t) == leads && c.uidOf(t, "-n", server.Namespace, "secret/overrule-ca") != "" && c.uidOf(t, "-n", server.Namespace, "secret/overrule-path") != ""
		}, "they are not recreated")
		requireEvaluated(t, g)
		requireRunning(t, s)
	})
	t.Run("its Service: writes are rejected until it is recreated", func(t *testing.T) {
		saved := c.Kubectl("-n", server.Namespace, "get", "service/overrule", "-o", "yaml")
		succeed(t, saved)
		succeed(t, c.Kubectl("-n", server.Namespace, "delete", "service/overrule"))
		// The API server looks the Service up when it opens a connection: on one
		// that is open already, calls still pass.
		var got env.Result
		soon(t, func() bool { got = g.apply(limits("name: p", 30), "--dry-run=server"); return got.Code != 0 }, "the API server still finds it")
		requireCallFailed(t, got)
		c.requireWritable(t)
		succeed(t, c.KubectlWith(withoutServerFields(saved.Stdout), "apply", "-f", "-"))
		awaitEvaluated(t, g)
		requireRunning(t, s)
	})
}

// In a cluster the pods are deleted with the namespace. Here the server keeps
// running with its rights but without a namespace: it must not register itself
// again.
func TestNamespaceDeletedWhileServerRuns(t *testing.T) {
	env.Long(t)
	c := alone(t, env.WithControllerAccounts())
	g := c.prepare(t, "homeless")
	s := c.start(t)
	requireEvaluated(t, g)

	succeed(t, c.Kubectl("delete", "namespace", server.Namespace, "--timeout=2m"))
	soon(t, func() bool { return c.registered(t) == "" }, "the webhook configurations stay")
	soon(t, func() bool { return g.apply(limits("name: free", 100)).Code == 0 }, "policies cannot be written")
	assert.Empty(t, c.registered(t), "they are not recreated")
	succeed(t, g.kubectl("delete", "ratelimitpolicy/free"))
	require.NoError(t, s.Stop())

	s = c.start(t)
	requireEvaluated(t, g)
	uid := c.uidOf(t, "namespace", server.Namespace)
	for _, configuration := range configurations {
		got := c.Kubectl("get", configuration, "-o", "jsonpath={.metadata.ownerReferences[*].uid}")
		succeed(t, got)
		assert.Equal(t, uid, got.Stdout, "%s belongs to the new namespace", configuration)
	}
	requireRunning(t, s)
}

// CRDs are deleted and recreated while a server runs.
func TestCRDsRecreatedWhileServerRuns(t *testing.T) {
	env.Long(t)
	c := alone(t, env.WithControllerAccounts())
	_, ours, gw := folders(t)
	g := c.prepare(t, "defined")
	s := c.start(t)
	requireEvaluated(t, g)
	ready := func() bool { return !strings.Contains(getBody(t, s.Health+"/readyz"), "[-]") }

	t.Run("Overrule's own, with a profile and a constraint", func(t *testing.T) {
		holds := func() bool {
			return strings.Contains(g.apply(atTheGate, "--dry-run=server").Stderr, "there is a limit at the gate")
		}
		succeed(t, g.apply(profileOf("glaze", "targetRef")+"---"+noGate))
		soon(t, holds, "the constraint is not enforced")

		succeed(t, c.Kubectl("delete", "-k", ours, "--timeout=1m"))
		soon(t, func() bool { return ready() && !holds() }, "the constraint is still enforced, or the server is not ready")
		requireEvaluated(t, g)
		c.requireWritable(t)

		succeed(t, c.Kubectl("apply", "--server-side", "-k", ours))
		soon(t, func() bool { return g.apply(noGate).Code == 0 }, "a constraint cannot be written")
		soon(t, holds, "the constraint is not enforced again")
		requireEvaluated(t, g)
		requireRunning(t, s)
	})

	t.Run("those of Gateway API, with an object that has a finalizer", func(t *testing.T) {
		succeed(t, g.apply(heldRoute))
		succeed(t, c.Kubectl("delete", "-f", gw, "--ignore-not-found", "--wait=false"))
		soon(t, func() bool { return g.get(t, "httproute/held", ".metadata.deletionTimestamp") != "" }, "the route is not deleted")
		succeed(t, g.kubectl("patch", "httproute/held", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`))
		c.awaitGone(t, "crd/httproutes.gateway.networking.k8s.io", "crd/gateways.gateway.networking.k8s.io")
		c.requireWritable(t)
		soon(t, ready, "it is not ready without them")
		soon(t, func() bool { return g.apply(limits("name: p", 100)).Code == 0 }, "a policy without a target cannot be written")

		succeed(t, c.Kubectl("apply", "--server-side", "-f", gw))
		soon(t, func() bool { return c.Kubectl("get", "httproutes,gateways,gatewayclasses").Code == 0 }, "they are not served")
		succeed(t, g.kubectl("delete", "ratelimitpolicy/p"))
		soon(t, func() bool { return g.apply(toystore).Code == 0 }, "a route cannot be written")
		g = c.prepare(t, "defined")
		awaitEvaluated(t, g)
		requireRunning(t, s)
	})
}

// noGate is a constraint on the limits in the gateway's namespace, and atTheGate
// a policy that violates it.
const (
	noGate = `
apiVersion: overrule.dev/v1alpha1
kind: ClusterPolicyConstraint
metadata: {name: no-gate}
spec:
  policyKind: {group: kuadrant.io, kind: RateLimitPolicy}
  targets: [{group: "", kind: Namespace, name: INFRA}]
  validations:
  - expression: "!(has(effective.limits) && has(effective.limits.gate))"
    message: there is a limit at the gate
`
	atTheGate = `
apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: {namespace: APP, name: p}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}
  limits: {gate: {rates: [{limit: 1, window: 10s}]}}
`
)
