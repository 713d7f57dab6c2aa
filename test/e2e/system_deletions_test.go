//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
)

const (
	// owner owns a policy.
	owner = `
apiVersion: v1
kind: ConfigMap
metadata: {namespace: INFRA, name: owner}
`
	// heldRoute has a finalizer, so that it stays while its namespace terminates.
	heldRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: APP, name: held, finalizers: [e2e.example.com/hold]}
spec:
  parentRefs: [{namespace: INFRA, name: edge}]
`
	// crowdedRoute is a held route with many owners.
	crowdedRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: APP, name: crowded, finalizers: [e2e.example.com/hold], ownerReferences: [%s]}
spec:
  parentRefs: [{namespace: INFRA, name: edge}]
`
	heldAuth = `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: APP, name: held, finalizers: [e2e.example.com/hold]}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: held}
  overrides: {strategy: merge, rules: {authentication: {sso: {issuer: theirs}}}}
`
)

// ownedAuth returns the gateway's policy with an owner of this uid.
func ownedAuth(uid string) string {
	return strings.Replace(gatewayAuth, "name: gw-auth}",
		"name: gw-auth, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: "+uid+"}]}", 1)
}

// owners returns n ownerReferences.
func owners(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","name":"o%d","uid":"5f0d4b1e-0000-4000-8000-%012d"}`, i, i)
	}
	return strings.Join(out, ",")
}

// populate creates the objects that a terminating namespace may have.
func populate(t *testing.T, g testNamespaces) {
	t.Helper()
	succeed(t, g.apply(owner))
	uid := g.c.Kubectl("-n", g.infra, "get", "configmap/owner", "-o", "jsonpath={.metadata.uid}").Stdout
	require.NotEmpty(t, uid)
	succeed(t, g.apply(ownedAuth(uid)+"---"+gatewayLimits+"---"+heldRoute+"---"+heldAuth+"---"+limits("name: p", 20)))
}

// removeFinalizers removes the finalizers, as controllers do.
func removeFinalizers(t *testing.T, g testNamespaces) {
	t.Helper()
	for _, object := range []string{"authpolicy/held", "httproute/held"} {
		soon(t, func() bool { return g.get(t, object, ".metadata.deletionTimestamp") != "" }, object+" is not deleted")
		succeed(t, g.kubectl("patch", object, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`))
	}
}

func (c *cluster) awaitGone(t *testing.T, object ...string) {
	t.Helper()
	soon(t, func() bool {
		got := c.Kubectl(append([]string{"get", "--ignore-not-found", "-o", "name"}, object...)...)
		return got.Code == 0 && got.Stdout == ""
	}, strings.Join(object, " ")+" is still there")
}

// terminate deletes the namespaces of the test while no server answers.
func terminate(t *testing.T, g testNamespaces) {
	t.Helper()
	s := g.c.start(t)
	populate(t, g)
	require.NoError(t, s.Stop())
	require.NotZero(t, g.apply(limits("name: p", 30)).Code, "writes are rejected")
	succeed(t, g.c.Kubectl("-n", g.infra, "delete", "configmap/owner"))
	g.c.awaitGone(t, "-n", g.infra, "authpolicy/gw-auth")
	succeed(t, g.c.Kubectl("delete", "namespace", g.app, g.infra, "--wait=false"))
	removeFinalizers(t, g)
	g.c.awaitGone(t, "namespace", g.app, g.infra)
}

// A namespace terminates if the controllers share a user.
func TestNamespaceTerminatesWithoutServer(t *testing.T) {
	env.Long(t)
	c := shared(t)
	terminate(t, c.prepare(t, "terminating"))
}

// manyOwners is so large that comparing the owners exceeds the cost limit of
// matchConditions.
const manyOwners = 700

// The webhook entry with failurePolicy Ignore matches only writes that can never
// be denied.
func TestOnlySystemDeletionsWithoutServer(t *testing.T) {
	c := shared(t)
	g := c.prepare(t, "alone")
	s := c.start(t)
	populate(t, g)
	succeed(t, g.apply(fmt.Sprintf(crowdedRoute, owners(manyOwners))))
	succeed(t, g.kubectl("delete", "authpolicy/held", "httproute/crowded", "--wait=false"))
	require.NoError(t, s.Stop())
	t.Cleanup(func() {
		c.removeWebhooks(t)
		for _, object := range []string{"authpolicy/held", "httproute/crowded"} {
			succeed(t, g.kubectl("patch", object, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`))
		}
	})

	const crowded = "httproute/crowded"
	patchOf := func(object, what string) []string { return []string{"patch", object, "--type=merge", "-p", what} }
	patch := func(what string) []string { return patchOf("authpolicy/held", what) }
	for name, c := range map[string]struct {
		args []string
		pass bool
	}{
		"a finalizer is removed":                        {patch(`{"metadata":{"finalizers":null}}`), true},
		"the spec changes, too":                         {patch(`{"metadata":{"finalizers":null},"spec":{"overrides":null,"rules":{"authentication":{"a":{}}}}}`), false},
		"a label changes, too":                          {patch(`{"metadata":{"finalizers":null,"labels":{"a":"b"}}}`), false},
		"an annotation, which may rank, changes":        {patch(`{"metadata":{"finalizers":null,"annotations":{"a":"b"}}}`), false},
		"an owner is added":                             {patch(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"5f0d4b1e-0000-4000-8000-000000000003"}]}}`), false},
		"a finalizer is removed, with many owners":      {patchOf(crowded, `{"metadata":{"finalizers":null}}`), true},
		"all of many owners are removed":                {patchOf(crowded, `{"metadata":{"ownerReferences":null}}`), true},
		"all but a few owners are removed":              {patchOf(crowded, `{"metadata":{"ownerReferences":[`+owners(3)+`]}}`), true},
		"one is added to many owners":                   {patchOf(crowded, `{"metadata":{"ownerReferences":[`+owners(manyOwners+1)+`]}}`), false},
		"an object that is not being deleted is edited": {[]string{"patch", "ratelimitpolicy/p", "--type=merge", "-p", `{"metadata":{"finalizers":["e2e.example.com/hold"]}}`}, false},
		"a user deletes it":                             {[]string{"delete", "ratelimitpolicy/p"}, false},
		"the namespace controller deletes":              {[]string{"delete", "ratelimitpolicy/p", "--as=system:serviceaccount:kube-system:namespace-controller", "--as-group=system:masters"}, true},
		"the controllers' one user deletes":             {[]string{"delete", "ratelimitpolicy/p", "--as=system:kube-controller-manager", "--as-group=system:masters"}, true},
		"the garbage collector, but without owner":      {[]string{"delete", "ratelimitpolicy/p", "--as=system:serviceaccount:kube-system:generic-garbage-collector", "--as-group=system:masters"}, false},
		"the garbage collector, with owner": {[]string{
			"delete", "authpolicy/gw-auth", "-n", g.infra, "--as=system:serviceaccount:kube-system:generic-garbage-collector", "--as-group=system:masters",
		}, true},
		"the namespace controller writes": {[]string{
			"label", "ratelimitpolicy/p", "a=b", "--as=system:serviceaccount:kube-system:namespace-controller", "--as-group=system:masters",
		}, false},
		"the class of gateways, which is in no namespace": {[]string{"delete", "gatewayclass/shop", "--as=system:kube-controller-manager", "--as-group=system:masters"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := g.kubectl(append(c.args, "--dry-run=server")...)
			assert.Equal(t, c.pass, got.Code == 0, got.Stdout+got.Stderr)
			if !c.pass {
				assert.Contains(t, got.Stderr, "failed calling webhook ")
			}
		})
	}
}

// auditPolicy makes the API server record all requests.
const auditPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"

// TestAPIServerWithFlags has what needs an API server with flags of its own: an
// audit log, a client certificate for webhooks, and an account for each controller.
func TestAPIServerWithFlags(t *testing.T) {
	env.Long(t)
	dir, by := t.TempDir(), newIssuer(t)
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	require.NoError(t, os.WriteFile(policy, []byte(auditPolicy), 0o600))
	c := alone(t, env.WithControllerAccounts(), env.WithAPIServerFlag("audit-policy-file", policy), env.WithAPIServerFlag("audit-log-path", log),
		env.WithAPIServerFlag("admission-control-config-file", admissionFiles(t, by, dir)))
	t.Run("system deletions are audited", func(t *testing.T) { auditsSystemDeletions(t, c, log) })
	t.Run("a namespace terminates without a server", func(t *testing.T) { terminate(t, c.prepare(t, "terminating")) })
	t.Run("only a client with the certificate is served", func(t *testing.T) { requiresClientCertificate(t, c, by, dir) })
}

// A deletion by garbage collection or by the namespace controller is evaluated
// and audited as long as a server answers.
func auditsSystemDeletions(t *testing.T, c *cluster, log string) {
	g := c.prepare(t, "recorded")
	s := c.start(t)
	populate(t, g)
	lines := func(annotation string) []string {
		content, err := os.ReadFile(log)
		require.NoError(t, err)
		return slices.DeleteFunc(slices.Collect(strings.Lines(string(content))), func(line string) bool {
			return !strings.Contains(line, annotation)
		})
	}
	recorded := func(what string) bool {
		return slices.ContainsFunc(lines(`"system.validate.overrule.dev/audit":"OverrideRemoved: `), func(line string) bool {
			return strings.Contains(line, what)
		})
	}
	host, err := os.Hostname()
	require.NoError(t, err)
	evaluatedLines := lines(`"validate.overrule.dev/evaluated-on":"`)
	require.NotEmpty(t, evaluatedLines)
	for _, line := range evaluatedLines {
		assert.Regexp(t, `"validate\.overrule\.dev/evaluated-on":"[1-9][0-9]* `+regexp.QuoteMeta(host)+`"`, line)
	}

	succeed(t, c.Kubectl("-n", g.infra, "delete", "configmap/owner"))
	c.awaitGone(t, "-n", g.infra, "authpolicy/gw-auth")
	assert.True(t, recorded("(deletion not denied: garbage collection)"))
	assert.NotEmpty(t, lines(`"system.validate.overrule.dev/evaluated-on":"`))

	succeed(t, c.Kubectl("delete", "namespace", g.app, "--wait=false"))
	soon(t, func() bool { return recorded("(deletion not denied: namespace " + g.app + " is terminating)") }, "the deletion is not in the audit log")
	edits := func() int { return strings.Count(s.Log(), `"operation":"UPDATE"`) } // the probe creates, and the controller deletes
	before := edits()
	removeFinalizers(t, g)
	assert.Equal(t, before+2, edits(), "one review for each finalizer, and nothing is annotated")
	c.awaitGone(t, "namespace", g.app)
	require.NoError(t, s.Stop())
	c.removeWebhooks(t)
}
