//go:build integration

package env_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"overrule.dev/overrule/test/env"
)

func TestMain(m *testing.M) { env.Main(m) }

// TestTheControlPlane runs all its subtests on one control plane of the pool.
func TestTheControlPlane(t *testing.T) {
	e := env.Start(t, env.WithControllers())

	t.Run("serves the policy kinds and prunes unknown fields", func(t *testing.T) {
		got := e.Apply(policy("strange: 1"), "--validate=ignore", "-o", "jsonpath={.spec}")
		require.Zero(t, got.Code, got.Stderr)
		assert.JSONEq(t, `{
			"targetRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "edge"},
			"overrides": {"strategy": "merge", "when": "true", "rules": {"authentication": {"a": 50, "b": {"jwt": {}}}}},
			"unset": ["rules.authentication.c"]}`, got.Stdout)
	})

	t.Run("rejects a policy without a target", func(t *testing.T) {
		got := e.Apply(`{apiVersion: kuadrant.io/v1, kind: RateLimitPolicy, metadata: {name: p, namespace: default}, spec: {}}`)
		assert.Equal(t, 1, got.Code)
		assert.Contains(t, got.Stderr, "spec.targetRef: Required value")
	})

	t.Run("marks the kinds as policies, inherited and direct", func(t *testing.T) {
		got := e.Kubectl("get", "crd", "-l", "gateway.networking.k8s.io/policy", "-L", "gateway.networking.k8s.io/policy", "--no-headers",
			"-o", "custom-columns=N:.metadata.name,L:.metadata.labels.gateway\\.networking\\.k8s\\.io/policy")
		require.Zero(t, got.Code, got.Stderr)
		assert.Equal(t, [][]string{
			{"authpolicies.kuadrant.io", "inherited"},
			{"backendtlspolicies.gateway.networking.k8s.io", "Direct"},
			{"colorpolicies.policies.example.com", "inherited"},
			{"ratelimitpolicies.kuadrant.io", "inherited"},
			{"timeoutpolicies.policies.example.com", "direct"},
		}, table(got.Stdout))
	})

	t.Run("authenticates users and authorizes their requests", func(t *testing.T) {
		reader := e.MustAddUser(t, "reader", nil, rbacv1.PolicyRule{
			APIGroups: []string{"kuadrant.io"}, Resources: []string{"authpolicies"}, Verbs: []string{"get"},
		})
		assert.Contains(t, reader.Kubectl("auth", "whoami").Stdout, "reader")
		assert.Equal(t, "yes\n", reader.Kubectl("auth", "can-i", "get", "authpolicies").Stdout)
		got := reader.Apply(policy(""))
		assert.Equal(t, 1, got.Code)
		assert.Contains(t, got.Stderr, `User "reader" cannot patch resource "authpolicies"`)
	})

	t.Run("authenticates a service account", func(t *testing.T) {
		account, err := e.ServiceAccount(t.Context(), "infra", "robot")
		require.NoError(t, err)
		got := account.Kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
		assert.Equal(t, "system:serviceaccount:infra:robot", got.Stdout, got.Stderr)
	})

	t.Run("deletes the content of a deleted namespace", func(t *testing.T) {
		require.Zero(t, e.Kubectl("create", "namespace", "short-lived").Code)
		require.Zero(t, e.Kubectl("create", "configmap", "c", "-n", "short-lived").Code)
		got := e.Kubectl("delete", "namespace", "short-lived", "--timeout=2m")
		assert.Zero(t, got.Code, got.Stderr)
	})

	t.Run("fails for missing CRDs", func(t *testing.T) {
		assert.ErrorContains(t, e.InstallCRDs(e.File("nothing")), "install the CRDs of ")
	})

	t.Run("suspends and resumes", func(t *testing.T) { hangs(t, e) })

	t.Run("restarts its API server", func(t *testing.T) { restarts(t, e) })
}

// TestTheNextTestFindsNothing takes the same control plane again and again: what
// tests left, and how, has no effect on the next one.
func TestTheNextTestFindsNothing(t *testing.T) {
	everything := func(e *env.Env) string {
		got := e.Kubectl("get", "crd,ns,gatewayclass,clusterrole,clusterrolebinding,validatingwebhookconfiguration,mutatingwebhookconfiguration,svc,authpolicy", "-A", "-o", "name")
		require.Zero(t, got.Code, got.Stderr)
		return got.Stdout
	}
	// used calls a function with a control plane, and not all of them get the same.
	used := func(use func(t *testing.T, e *env.Env), opts ...env.Option) {
		t.Run("used", func(t *testing.T) {
			begun := time.Now()
			e := env.Start(t, opts...)
			t.Logf("got it after %s", time.Since(begun))
			use(t, e)
		})
	}
	var fresh string
	used(func(_ *testing.T, e *env.Env) { fresh = everything(e) })
	used(func(t *testing.T, e *env.Env) {
		e.MustAddUser(t, "reader", nil, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
		require.Zero(t, e.Apply(policy("")).Code)
		require.Zero(t, e.Apply("{apiVersion: v1, kind: Namespace, metadata: {name: stuck, finalizers: [example.com/stuck]}}").Code)
		require.Zero(t, e.Kubectl("create", "configmap", "c", "-n", "stuck").Code)
		require.Zero(t, e.Kubectl("delete", "namespace", "stuck", "--wait=false").Code)
		require.Zero(t, e.Kubectl("delete", "crd", "colorpolicies.policies.example.com").Code)
		require.Zero(t, e.Kubectl("label", "crd", "timeoutpolicies.policies.example.com", "gateway.networking.k8s.io/policy-").Code)
		require.Zero(t, e.Apply(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: hook}, webhooks: [{
			name: hook.example.com, sideEffects: None, failurePolicy: Fail, admissionReviewVersions: [v1],
			clientConfig: {service: {namespace: elsewhere, name: hook, port: 1}},
			rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]}]}`).Code) // nothing responds
		soon(t, func() bool { return e.Kubectl("create", "configmap", "probe", "--dry-run=server").Code != 0 }, "the webhook is not called")
		require.NoError(t, e.PauseAPIServer())
	})
	used(func(t *testing.T, e *env.Env) {
		assert.Equal(t, fresh, everything(e))
		require.Zero(t, e.Kubectl("create", "configmap", "probe", "--dry-run=server").Code, "the webhook is not called")
		assert.Equal(t, "no\n", e.Kubectl("auth", "can-i", "get", "secrets", "--as=reader").Stdout)
		assert.NotZero(t, e.Kubectl("get", "authpolicy/p").Code)
		require.Zero(t, e.Kubectl("create", "namespace", "stuck").Code)
		require.Zero(t, e.Kubectl("create", "configmap", "c", "-n", "stuck").Code)
		require.Zero(t, e.Apply("{apiVersion: policies.example.com/v1, kind: ColorPolicy, metadata: {name: c, namespace: stuck}, spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}}}").Code)
		require.NoError(t, e.StopAPIServer())
	})
	used(func(t *testing.T, e *env.Env) {
		assert.Equal(t, env.Result{Stderr: "No resources found\n"}, e.Kubectl("get", "crd"))
		require.Zero(t, e.Kubectl("create", "namespace", "short-lived").Code)
		require.Zero(t, e.Kubectl("delete", "namespace", "short-lived").Code, "the controllers work")
	}, env.WithoutCRDs(), env.WithControllerAccounts())
	used(func(t *testing.T, e *env.Env) { assert.Equal(t, fresh, everything(e)) })
}

// A test that has a control plane of the pool gets a second one outside it.
func TestASecondControlPlane(t *testing.T) {
	env.Long(t)
	first, second := env.Start(t), env.Start(t)
	assert.NotEqual(t, first.Config.Host, second.Config.Host)
	require.Zero(t, second.Kubectl("get", "authpolicies", "-A").Code)
}

func policy(extra string) string {
	return `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {name: p, namespace: default}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  unset: [rules.authentication.c]
  overrides:
    strategy: merge
    when: "true"
    rules: {authentication: {a: 50, b: {jwt: {}}}}
  ` + extra
}

func table(s string) [][]string {
	var rows [][]string
	for line := range strings.Lines(s) {
		rows = append(rows, strings.Fields(line))
	}
	return rows
}

func soon(t *testing.T, condition func() bool, msg string) {
	t.Helper()
	env.Soon(t, condition, msg)
}
