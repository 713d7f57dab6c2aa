//go:build integration

package commands

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/test/env"
)

// TestMain lets the tests share control planes.
func TestMain(m *testing.M) { env.Main(m) }

// readers are allowed to read everything, and nothing else.
var readers = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}}

// overriders are also allowed to remove the overrides of AuthPolicies.
var overriders = append([]rbacv1.PolicyRule{
	{APIGroups: []string{"kuadrant.io"}, Resources: []string{"authpolicies"}, Verbs: []string{"override"}},
}, readers...)

// runAs runs a command with the kubeconfig of a user.
func runAs(t *testing.T, u *env.User, stdin string, args ...string) result {
	t.Helper()
	a := &app{reader: reader{connection: connection{list: cache.List, listProfiles: cache.ListProfiles}}}
	return a.exec(t, stdin, append(args, "--kubeconfig", u.Kubeconfig)...)
}

// TestCommandsOnAPIServer starts one control plane for all of its subtests.
func TestCommandsOnAPIServer(t *testing.T) {
	e := env.Start(t)
	for _, name := range []string{"cluster", "gateway-policies", "route-auth"} {
		got := e.Kubectl("apply", "--server-side", "-f", demo+name+".yaml")
		require.Zero(t, got.Code, got.Stderr)
	}
	reader := e.MustAddUser(t, "reader", nil, readers...)
	overrider := e.MustAddUser(t, "overrider", nil, overriders...)

	t.Run("rights", func(t *testing.T) { testRights(t, e, reader, overrider) })
	t.Run("user", func(t *testing.T) { testUser(t, reader) })
	t.Run("schema", func(t *testing.T) { testSchema(t, e, reader) })
	t.Run("render", func(t *testing.T) { testRender(t, e, reader) })
	t.Run("request", func(t *testing.T) { testRequest(t, e, reader) })
	t.Run("stored", func(t *testing.T) { testStored(t, e, overrider) })
	t.Run("violations", func(t *testing.T) {
		got := runAs(t, reader, "", "violations", "-n", "app", "httproute/toystore", "-o", "json")
		require.Equal(t, exitNegative, got.code, got.stderr)
		assert.Len(t, decode[api.ViolationList](t, got.stdout).Items, 2)
	})
}

func testRights(t *testing.T, e *env.Env, reader, overrider *env.User) {
	for name, c := range map[string]struct {
		user *env.User
		more []string
		want string
	}{
		"a reader":                    {reader, nil, "DELETE AuthPolicy gw-auth OverrideRemoved"},
		"an overrider":                {overrider, nil, "DELETE AuthPolicy gw-auth (OverrideRemoved)"},
		"a cluster admin":             {e.User, nil, "DELETE AuthPolicy gw-auth (OverrideRemoved)"},
		"a cluster admin as a reader": {e.User, []string{"--as", "reader"}, "DELETE AuthPolicy gw-auth OverrideRemoved"},
	} {
		t.Run(name, func(t *testing.T) {
			got := runAs(t, c.user, gwAuth, deleteAuthArgs(c.more...)...)
			require.NotEqual(t, exitError, got.code, got.stderr)
			assert.Equal(t, []string{c.want}, verdicts(decode[api.VerdictList](t, got.stdout).Items))
			assert.Empty(t, got.stderr)
		})
	}
}

func testUser(t *testing.T, reader *env.User) {
	var stderr bytes.Buffer
	var a app
	a.ErrOut = &stderr
	user := a.currentUser(t.Context(), reader.Config)
	require.NotNil(t, user, stderr.String())
	assert.Equal(t, "reader", user.Username)
	assert.Contains(t, user.Groups, "system:authenticated")
	closed := rest.CopyConfig(reader.Config)
	closed.Host = "https://127.0.0.1:1"
	assert.Nil(t, a.currentUser(t.Context(), closed))
	assert.Contains(t, stderr.String(), "connection refused")
}

// testSchema validates a profile against the schema of the cluster.
func testSchema(t *testing.T, e *env.Env, reader *env.User) {
	const profile = `
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: limits}
spec: {group: kuadrant.io, kind: RateLimitPolicy, class: inherited, targets: {fields: [targetRef]}, blocks: {overrides: [overriden]}}
`
	lister := e.MustAddUser(t, "lister", nil, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list"}})
	for _, user := range []*env.User{reader, lister} {
		got := runAs(t, user, profile, "check", "-f", "-", "-o", "json")
		require.Equal(t, exitNegative, got.code, "an override is no longer read: "+got.stderr)
		items := decode[api.VerdictList](t, got.stdout).Items
		require.Len(t, items, 1)
		require.Len(t, messagesOf(api.ReasonNotRead, items[0].Warnings), 1)
		assert.Contains(t, messagesOf(api.ReasonNotRead, items[0].Warnings)[0], "overriden")
	}
}

// testRender renders a policy that was written in the version of the RFC and is
// stored in another one.
func testRender(t *testing.T, e *env.Env, reader *env.User) {
	for _, name := range []string{"network", "2-rules"} {
		got := e.Kubectl("apply", "-f", limitExamples+name+".yaml")
		require.Zero(t, got.Code, got.Stderr)
	}
	got := runAs(t, reader, "", "render", "-n", "toystore", "httproute/toystore")
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.Empty(t, got.stderr)
	assert.Equal(t, published(t, "example-2"), yamlDocuments(t, []byte(got.stdout)))
}

// testRequest asks where a request goes, as users who are not allowed to list one
// of the resources that requests and policies depend on.
func testRequest(t *testing.T, e *env.Env, reader *env.User) {
	ask := func(user *env.User) result {
		return runAs(t, user, "", "effective", "--request", "http://toystore.example.com/toys/1", "-o", "json")
	}
	lister := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"list"}}
	}
	routing := []string{"gatewayclasses", "gateways", "httproutes", "grpcroutes", "tlsroutes", "tcproutes", "udproutes", "listenersets", "referencegrants", "backendtlspolicies"}
	others := []rbacv1.PolicyRule{
		lister("apiextensions.k8s.io", "customresourcedefinitions"), lister(api.Group, "policyprofiles", "policyconstraints", "clusterpolicyconstraints"),
		lister("policies.example.com", "*"), lister("", "namespaces", "services"),
	}
	everything := ask(reader)
	require.Equal(t, exitOK, everything.code, everything.stderr)
	assert.Equal(t, []string{"edge#http toystore#toys"}, places(decode[api.EffectivePolicyList](t, everything.stdout).Request))

	noPolicies := ask(e.MustAddUser(t, "no-policies", nil, append([]rbacv1.PolicyRule{lister(api.GatewayGroup, routing...), lister("kuadrant.io", "ratelimitpolicies")}, others...)...))
	require.Equal(t, exitOK, noPolicies.code, noPolicies.stderr)
	assert.Contains(t, noPolicies.stderr, "warning: read authpolicies.kuadrant.io: ")
	assert.Contains(t, noPolicies.stderr, "forbidden")
	assert.Equal(t, []string{"edge#http toystore#toys"}, places(decode[api.EffectivePolicyList](t, noPolicies.stdout).Request))

	noRoutes := ask(e.MustAddUser(t, "no-routes", nil, append([]rbacv1.PolicyRule{
		lister(api.GatewayGroup, slices.DeleteFunc(slices.Clone(routing), func(r string) bool { return r == "httproutes" })...), lister("kuadrant.io", "*"),
	}, others...)...))
	assert.Equal(t, exitError, noRoutes.code, "what routes requests is not read")
	assert.Empty(t, noRoutes.stdout)
	assert.Contains(t, noRoutes.stderr, "httproutes.gateway.networking.k8s.io is forbidden")
}

// testStored acknowledges a deletion on the object and checks it again.
func testStored(t *testing.T, e *env.Env, overrider *env.User) {
	args := deleteAuthArgs("--blast-radius-limit=1")
	got := runAs(t, overrider, gwAuth, args...)
	require.Equal(t, exitNegative, got.code, got.stderr)
	seen := printedHash(t, decode[api.VerdictList](t, got.stdout).Items[0])
	annotated := e.Kubectl("annotate", "-n", "infra", "authpolicy/gw-auth", api.AnnotationAcknowledge+"="+seen)
	require.Zero(t, annotated.Code, annotated.Stderr)
	got = runAs(t, overrider, gwAuth, args...)
	assert.Equal(t, exitOK, got.code, got.stdout)
}
