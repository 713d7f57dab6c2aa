//go:build e2e

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

// Whatever order parts of Overrule are installed and removed in, with
// failurePolicy Fail: the objects that a cluster needs to start it can be written,
// and writes are evaluated once a server and its dependencies are there. The
// parts use one control plane, one after another. Each leaves it without a server.
func TestInstallation(t *testing.T) {
	env.Long(t)
	c := alone(t, env.WithControllerAccounts())
	for _, part := range []struct {
		name string
		test func(*testing.T, *cluster)
	}{
		{"objects that a server created are deleted", deletedObjects},
		{"the namespace is deleted", deletedNamespace},
		{"static webhooks are applied first", staticWebhooks},
		{"CRDs are deleted and created again", recreatedCRDs},
	} {
		t.Run(part.name, func(t *testing.T) {
			c.removeWebhooks(t)
			part.test(t, c)
		})
	}
}

// uidOf returns the uid of an object, or "" if it does not exist.
func (c *cluster) uidOf(t *testing.T, args ...string) string {
	t.Helper()
	got := c.Kubectl(append([]string{"get", "--ignore-not-found", "-o", "jsonpath={.metadata.uid}"}, args...)...)
	succeed(t, got)
	return got.Stdout
}

// Objects that a server created for itself are recreated if a user deletes them:
// the Secrets while it runs, and all of them when it starts again.
func deletedObjects(t *testing.T, c *cluster) {
	g := c.prepare(t, "deleted")
	s := c.start(t)
	requireEvaluated(t, g)
	succeed(t, c.Kubectl("-n", server.Namespace, "delete", "secrets", "--all"))
	requireEvaluated(t, g)
	soon(t, func() bool {
		return c.uidOf(t, "-n", server.Namespace, "secret/overrule-ca") != "" && c.uidOf(t, "-n", server.Namespace, "secret/overrule-path") != ""
	}, "they are not recreated")
	requireEvaluated(t, g)
	require.NoError(t, s.Stop())

	succeed(t, c.Kubectl("-n", server.Namespace, "delete", "secrets,leases,services", "--all"))
	requireCallFailed(t, g.apply(limits("name: p", 30)))
	c.requireWritable(t)
	s = c.start(t)
	requireEvaluated(t, g)
	require.NoError(t, s.Stop())
}

// withoutServerFields returns a saved list of objects as a backup has it: without
// the fields that the API server sets, but with owner references.
func withoutServerFields(saved string) string {
	var out []string
	for line := range strings.Lines(saved) {
		field := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " "))
		server := strings.HasPrefix(field, "uid:") || strings.HasPrefix(field, "resourceVersion:") || strings.HasPrefix(field, "creationTimestamp:")
		if !server || indent > 4 { // of a reference
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// The webhook configurations go with the namespace, although the server still runs
// with all its rights, and also if they are restored from a backup afterwards.
// Nothing then rejects writes. They belong to the next namespace.
func deletedNamespace(t *testing.T, c *cluster) {
	g := c.prepare(t, "homeless")
	s := c.start(t)
	requireEvaluated(t, g)
	all := append([]string{"get", "-o", "yaml"}, configurations...)
	saved := c.Kubectl(all...)
	succeed(t, saved)
	unblocked := func() {
		t.Helper()
		soon(t, func() bool { return c.registered(t) == "" }, "the webhook configurations stay")
		soon(t, func() bool { return g.apply(limits("name: free", 100)).Code == 0 }, "policies cannot be written")
		succeed(t, g.kubectl("delete", "ratelimitpolicy/free"))
	}
	succeed(t, c.Kubectl("delete", "namespace", server.Namespace, "--timeout=2m"))
	unblocked()
	assert.Empty(t, c.registered(t), "they are not recreated")
	require.NoError(t, s.Stop())
	succeed(t, c.KubectlWith(withoutServerFields(saved.Stdout), "create", "-f", "-"))
	unblocked()

	s = c.start(t)
	requireEvaluated(t, g)
	uid := c.uidOf(t, "namespace", server.Namespace)
	for _, configuration := range configurations {
		got := c.Kubectl("get", configuration, "-o", "jsonpath={.metadata.ownerReferences[*].uid}")
		succeed(t, got)
		assert.Equal(t, uid, got.Stdout, "%s belongs to the new namespace", configuration)
	}
	require.NoError(t, s.Stop())
}

// All CRDs that a server reads are deleted and come back in another order, while
// it runs and before it starts. Meanwhile it is ready and blocks no writes.
func recreatedCRDs(t *testing.T, c *cluster) {
	g := c.prepare(t, "defined")
	s := c.start(t)
	requireEvaluated(t, g)
	enforced := func() bool {
		return strings.Contains(g.apply(atTheGate, "--dry-run=server").Stderr, "there is a limit at the gate")
	}
	succeed(t, g.apply(noGate))
	soon(t, enforced, "the constraint is not enforced")
	_, ours, gw := folders(t)
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	comes := map[string]func(*testing.T){
		"Overrule's": func(t *testing.T) {
			require.NoError(t, c.InstallCRDs(ours))
			soon(t, func() bool {
				return strings.Contains(c.Apply(profileOf("odd", "..odd.."), "--dry-run=server").Stderr, "Invalid: ")
			}, "profiles are not evaluated")
		},
		"Gateway API's": func(t *testing.T) {
			require.NoError(t, c.InstallCRDs(gw))
			soon(t, func() bool { return c.Apply(orphan, "--dry-run=server").Code == 0 }, "routes cannot be written")
		},
		"the policies'": func(t *testing.T) {
			require.NoError(t, c.InstallCRDs(filepath.Join(root, "examples", "crds")))
			soon(t, func() bool { return strings.Contains(c.rules(t), "ratelimitpolicies") }, "the rules do not name them")
			c.awaitCalled(t)
		},
	}
	succeed(t, g.apply(heldRoute))
	for i, order := range [][]string{
		{"Overrule's", "the policies'", "Gateway API's"},
		{"the policies'", "Gateway API's", "Overrule's"},
	} {
		c.undefine(t)
		if i > 0 {
			require.NoError(t, s.Stop())
			succeed(t, c.Kubectl(append([]string{"delete"}, configurations...)...))
			// Unprobed: there is no policy yet to ask by.
			s = server.Start(t, c.Env, server.Options{Unprobed: true})
			soon(t, func() bool { return strings.Count(c.registered(t), "overrule") == 2 }, "it does not register itself")
		}
		soon(t, func() bool {
			return !strings.Contains(httpGet(t, s.Health+"/readyz?verbose"), "[-]")
		}, "it is not ready without them")
		c.requireWritable(t)
		for _, what := range order {
			comes[what](t)
			c.requireWritable(t)
		}
		g = c.prepare(t, "defined")
		awaitEvaluated(t, g)
		soon(t, func() bool { return g.apply(noGate).Code == 0 }, "a constraint cannot be written")
		soon(t, enforced, "the constraint is not enforced again")
	}
	requireRunning(t, s)
	requireNoPanic(t, s)
	require.NoError(t, s.Stop())
}

// undefine deletes all CRDs, and removes the finalizers that keep them.
func (c *cluster) undefine(t *testing.T) {
	t.Helper()
	succeed(t, c.Kubectl("delete", "crds", "--all", "--wait=false"))
	soon(t, func() bool {
		c.TouchCRDs()
		for held := range strings.Lines(c.Kubectl("get", "httproutes", "-A", "--ignore-not-found", "-o",
			`jsonpath={range .items[?(@.metadata.deletionTimestamp)]}{.metadata.namespace}{" httproute/"}{.metadata.name}{"\n"}{end}`).Stdout) {
			namespace, route, _ := strings.Cut(strings.TrimSpace(held), " ")
			c.Kubectl("-n", namespace, "patch", route, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`) // it may be gone
		}
		left := c.Kubectl("get", "crds", "-o", "name")
		return left.Code == 0 && left.Stdout == ""
	}, "there are CRDs left")
}

const (
	// orphan is a route without a gateway.
	orphan = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: default, name: orphan}
spec: {hostnames: [orphan.example.com]}
`
	// noGate is a constraint on the limits in the gateway's namespace, and atTheGate
	// a policy that violates it.
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
