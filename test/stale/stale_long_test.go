//go:build long

// Package stale tests that the server evaluates no write with a stale cache: its
// connections to a real API server are reset and blocked, and the API server is
// suspended.
package stale

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/faultproxy"
	"overrule.dev/overrule/test/server"
	"overrule.dev/overrule/test/shop"
)

const (
	// color is a policy whose target does not exist, which results in a warning.
	color = `
apiVersion: policies.example.com/v1
kind: ColorPolicy
metadata: {namespace: default, name: color}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: nothing}
`
	// staleMessage is the log message when the cache is stale, freshMessage when
	// it is synced again.
	staleMessage = "cache is stale"
	freshMessage = "cache is up to date again"
)

// override returns an AuthPolicy of the gateway with a rule in its overrides.
func override(name string) string {
	return strings.ReplaceAll(`
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: default, name: NAME}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  overrides: {strategy: merge, rules: {authorization: {NAME: {}}}}
`, "NAME", name)
}

// unset returns a policy of the route that unsets such a rule, which is denied by
// a server that has the override in its cache.
func unset(name string) string {
	return strings.ReplaceAll(`
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: default, name: mine}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}
  unset: [rules.authorization.NAME]
`, "NAME", name)
}

// proxiedServer is a server that reaches the API server through a proxy.
type proxiedServer struct {
	*env.Env
	*server.Server
	proxy *faultproxy.Proxy
}

func TestShortInterruptionsAreTolerated(t *testing.T) {
	f := start(t)
	t.Run("an API server that restarts", f.apiServerRestarts)
	t.Run("connections that are cut", f.connectionsAreCut)
}

func TestDroppedPacketsMakeCacheStale(t *testing.T) {
	start(t).packetsAreDropped(t)
}

func TestHangingAPIServerMakesCacheStale(t *testing.T) {
	start(t).apiServerHangs(t)
}

func TestRemovedRightAffectsOneKind(t *testing.T) {
	start(t).rightIsRemoved(t)
}

// start boots a control plane and a server for a test that runs in parallel with
// others.
func start(t *testing.T) *proxiedServer {
	t.Helper()
	t.Parallel()
	e := env.Start(t)
	got := e.Apply(shop.In("default", "default", shop.Gateway+"---"+shop.Route) + "---" + override("always"))
	require.Zero(t, got.Code, got.Stderr)
	at, err := url.Parse(e.Config.Host)
	require.NoError(t, err)
	f := &proxiedServer{Env: e}
	f.proxy, err = faultproxy.Start(t.Context(), "127.0.0.1:0", at.Host)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.proxy.Close()) })
	site, err := server.Install(t.Context(), e)
	require.NoError(t, err)
	config, err := os.ReadFile(site.Account.Kubeconfig)
	require.NoError(t, err)
	path := e.File("far.kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(config), at.Host, f.proxy.Address())), 0o600))
	// failurePolicy Ignore makes writes that are not evaluated visible. Without
	// leader election the server does not exit when it cannot renew a lease.
	f.Server = server.Start(t, e, server.Options{Args: []string{"--kubeconfig=" + path, "--failure-policy=Ignore", "--coordination=none", "--log-level=debug"}})
	return f
}

func (f *proxiedServer) apiServerRestarts(t *testing.T) {
	before, gone := f.count(staleMessage), time.Now()
	require.NoError(t, f.RestartAPIServer(t.Context()))
	if away := time.Since(gone); away > cache.StaleAfter/2 { // on a busy machine
		t.Logf("the API server was down for %s", away)
		before++
		f.soon(t, func() bool { return f.ready(t) }, "it does not recover")
	}
	f.applied(t, override("restarted"))
	f.denies(t, "restarted")
	assert.LessOrEqual(t, f.count(staleMessage), before)
	f.soon(t, func() bool { return f.ready(t) }, "it does not recover")
}

func (f *proxiedServer) connectionsAreCut(t *testing.T) {
	before := f.count(staleMessage)
	for range 3 {
		f.proxy.Reset()
		f.denies(t, "always")
		f.soon(t, func() bool { return f.ready(t) }, "it does not recover")
	}
	assert.Equal(t, before, f.count(staleMessage))
}

func (f *proxiedServer) packetsAreDropped(t *testing.T) {
	f.proxy.Set(faultproxy.Both(faultproxy.Direction{Behavior: faultproxy.Hold}))
	f.soon(t, func() bool { return !f.ready(t) }, "it does not notice that packets are dropped")
	got := f.Apply(override("blocked"))
	require.Zero(t, got.Code, got.Stderr)
	missed := f.Apply(unset("blocked"), "--dry-run=server")
	assert.Zero(t, missed.Code, "it is not evaluated: %s", missed.Stderr)
	assert.NotContains(t, missed.Stderr, "Warning", "it is not evaluated")
	assert.Positive(t, f.count(`"msg":"not ready","webhook":"validate"`))

	f.proxy.Set(faultproxy.Faults{})
	f.soon(t, func() bool { return f.ready(t) }, "it does not recover")
	f.denies(t, "blocked") // at once: its cache has the writes that it missed
	assert.Positive(t, f.count(freshMessage))
}

func (f *proxiedServer) apiServerHangs(t *testing.T) {
	before := f.count(staleMessage)
	require.NoError(t, f.PauseAPIServer())
	t.Cleanup(func() { _ = f.ResumeAPIServer() })
	f.soon(t, func() bool { return !f.ready(t) && f.count(staleMessage) > before }, "it does not notice that the API server hangs")
	require.NoError(t, f.ResumeAPIServer())
	f.soon(t, func() bool { return f.ready(t) }, "it does not recover")
	f.denies(t, "always")
}

func (f *proxiedServer) rightIsRemoved(t *testing.T) {
	evaluated := func() bool { return strings.Contains(f.Apply(color, "--dry-run=server").Stderr, "Warning: ") }
	f.soon(t, evaluated, "a ColorPolicy is not evaluated at first")
	binding := f.Kubectl("get", "clusterrolebinding", "test:overrule-reader-examples", "-o", "yaml")
	require.Zero(t, binding.Code, binding.Stderr)
	got := f.Kubectl("delete", "clusterrolebinding", "test:overrule-reader-examples")
	require.Zero(t, got.Code, got.Stderr)
	f.proxy.Reset() // an open watch continues without the right

	reported := func() bool {
		return strings.Contains(f.readyz(t), "[!] kinds: colorpolicies.policies.example.com: watch disconnected")
	}
	f.soon(t, reported, "the missing right is not reported")
	assert.Contains(t, f.readyz(t), "grant get, list and watch on colorpolicies.policies.example.com")
	assert.True(t, f.ready(t), "other kinds are evaluated")
	f.denies(t, "always")
	assert.False(t, evaluated(), "a ColorPolicy is evaluated with a stale cache")

	got = f.KubectlWith(binding.Stdout, "create", "-f", "-")
	require.Zero(t, got.Code, got.Stderr)
	f.soon(t, evaluated, "it does not recover")
	f.soon(t, func() bool { return !strings.Contains(f.readyz(t), "[!] kinds") }, "other kinds do not recover")
}

func (f *proxiedServer) applied(t *testing.T, manifest string) {
	t.Helper()
	got := f.Apply(manifest)
	require.Zero(t, got.Code, got.Stderr)
}

// denies requires that the server has the override in its cache. It retries,
// since the API server ignores a server that is not ready.
func (f *proxiedServer) denies(t *testing.T, name string) {
	t.Helper()
	got := f.Apply(unset(name), "--dry-run=server")
	require.Equal(t, 1, got.Code, got.Stdout+got.Stderr)
	assert.Contains(t, got.Stderr, `admission webhook "validate.overrule.dev" denied the request: UnsetOverride`)
}

func (f *proxiedServer) count(text string) int { return strings.Count(f.Log(), text) }

func (f *proxiedServer) ready(t *testing.T) bool { return !strings.Contains(f.readyz(t), "[-]") }

// readyz returns the body of /readyz.
func (f *proxiedServer) readyz(t *testing.T) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+f.Health+"/readyz", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

func (f *proxiedServer) soon(t *testing.T, condition func() bool, msg string) {
	t.Helper()
	require.Eventually(t, condition, 2*time.Minute, 200*time.Millisecond, msg)
}
