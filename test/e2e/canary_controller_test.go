//go:build e2e

package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

// leaderPod is the pod of a server, without a kubelet to run it.
const leaderPod = `
apiVersion: v1
kind: Pod
metadata: {namespace: overrule-system, name: NAME}
spec:
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: overrule
    image: overrule:dev
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`

// pod creates the pod of a server, and deletes it when the test ends.
func (c *cluster) pod(t *testing.T, name string) {
	t.Helper()
	_, err := server.Install(t.Context(), c.Env)
	require.NoError(t, err)
	c.Kubectl("create", "namespace", server.Namespace)
	manifest := strings.ReplaceAll(leaderPod, "NAME", name)
	succeed(t, c.Apply(manifest))
	t.Cleanup(func() { succeed(t, c.KubectlWith(manifest, "delete", "--force", "--grace-period=0", "-f", "-")) })
}

// canaryCondition returns a field of the canary's condition of a pod.
func (c *cluster) canaryCondition(t *testing.T, name, field string) string {
	t.Helper()
	got := c.Kubectl("-n", server.Namespace, "get", "pod/"+name, "-o", `jsonpath={.status.conditions[?(@.type=="overrule.dev/CanaryPassing")].`+field+`}`)
	succeed(t, got)
	return got.Stdout
}

func TestCanaryReportsOnLeaderPod(t *testing.T) {
	env.Long(t)
	c := shared(t)
	c.pod(t, "leads")
	c.pod(t, "follows")
	r := newServiceProxy(t)
	flags := func(name string) []string { return []string{r.flag(), "--canary-interval=5s", "--pod-name=" + name} }
	s := server.Start(t, c.Env, server.Options{Unprobed: true, Args: flags("leads")})
	t.Cleanup(func() { requireNoPanic(t, s) })
	r.setBackends(s.Webhook)
	soon(t, func() bool { return c.canaryCondition(t, "leads", "status") == "True" }, "the canary does not pass")
	assert.Equal(t, "CanaryPassed", c.canaryCondition(t, "leads", "reason"))
	assert.NotEmpty(t, c.canaryCondition(t, "leads", "lastProbeTime"))
	since := c.canaryCondition(t, "leads", "lastTransitionTime")
	assert.InDelta(t, 1, metric(t, s, "overrule_canary_passing"), 0)
	assert.Positive(t, metric(t, s, "overrule_canary_last_success_timestamp_seconds"))
	assert.NotContains(t, readyz(t, s), "canary")

	second := server.Start(t, c.Env, server.Options{Unprobed: true, Args: flags("follows")})
	soon(t, func() bool { return c.canaryCondition(t, "follows", "reason") == "NotLeading" }, "the follower does not report that it does not lead")
	assert.Equal(t, "Unknown", c.canaryCondition(t, "follows", "status"))
	assert.NotContains(t, metricsPage(t, second), "overrule_canary_passing ", "only the leader has the condition")
	assert.Contains(t, metricsPage(t, second), `overrule_canary_runs_total{result="passed"} 0`)
	assert.Equal(t, since, c.canaryCondition(t, "leads", "lastTransitionTime"), "it passed throughout")

	r.closeConnections()
	soon(t, func() bool { return c.canaryCondition(t, "leads", "status") == "False" }, "the canary does not fail")
	assert.Contains(t, c.canaryCondition(t, "leads", "message"), "the API server cannot call validate.overrule.dev: ")
	assert.NotEqual(t, since, c.canaryCondition(t, "leads", "lastTransitionTime"))
	assert.InDelta(t, 0, metric(t, s, "overrule_canary_passing"), 0)
	assert.Positive(t, metric(t, s, "overrule_canary_runs_total", `result="failed"`))
	assert.Contains(t, readyz(t, s), "[!] canary: failed: PolicyProfile that must be denied: ")
	soon(t, func() bool {
		got := c.Kubectl("-n", server.Namespace, "get", "events", "-o", `jsonpath={range .items[*]}{.involvedObject.name} {.involvedObject.uid} {.type} {.reason}{"\n"}{end}`)
		uid := c.Kubectl("-n", server.Namespace, "get", "pod/leads", "-o", "jsonpath={.metadata.uid}").Stdout
		return strings.Contains(got.Stdout, "leads "+uid+" Warning CanaryFailed") && strings.Contains(got.Stdout, " Normal CanaryPassed")
	}, "no Event reports it")

	r.setBackends(second.Webhook)
	require.NoError(t, s.Stop())
	assert.Equal(t, "NotLeading", c.canaryCondition(t, "leads", "reason"), "it says so before it ends")
	soon(t, func() bool { return c.canaryCondition(t, "follows", "status") == "True" }, "the next leader does not run the canary")
}

// readyz returns the body of a server's /readyz, which must be ready.
func readyz(t *testing.T, s *server.Server) string {
	t.Helper()
	return httpGet(t, "http://"+s.Health+"/readyz")
}

func metricsPage(t *testing.T, s *server.Server) string {
	t.Helper()
	return httpGet(t, "http://"+s.Metrics+"/metrics")
}

func httpGet(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}

func TestWebhooksAreArmedWhileCanaryPasses(t *testing.T) {
	env.Long(t)
	c := shared(t)
	r := newServiceProxy(t)
	flags := []string{r.flag(), "--canary-interval=5s", "--arm", "--log-level=debug"}
	s := server.Start(t, c.Env, server.Options{Unprobed: true, Args: flags})
	t.Cleanup(func() { requireNoPanic(t, s) })
	r.setBackends(s.Webhook)
	soon(t, func() bool { return c.failurePolicies(t) == disarmed }, "it starts armed")
	assert.InDelta(t, 0, metric(t, s, "overrule_armed"), 0)
	soon(t, func() bool { return c.failurePolicies(t) == armed }, "it does not arm")
	soon(t, func() bool { return metric(t, s, "overrule_armed") == 1 }, "it does not report that it is armed")
	assert.GreaterOrEqual(t, metric(t, s, "overrule_canary_runs_total", `result="passed"`), 3.0)

	r.closeConnections()
	soon(t, func() bool { return c.failurePolicies(t) == disarmed }, "it stays armed although no replica evaluates writes")
	assert.GreaterOrEqual(t, metric(t, s, "overrule_canary_runs_total", `result="failed"`), 2.0)
	soon(t, func() bool { return metric(t, s, "overrule_armed") == 0 }, "it reports that it is armed")

	r.setBackends(s.Webhook)
	soon(t, func() bool { return c.failurePolicies(t) == armed }, "it does not arm again")

	require.NoError(t, s.Stop())
	assert.Equal(t, armed, c.failurePolicies(t), "a leader that stops keeps the failurePolicy")
	next := server.Start(t, c.Env, server.Options{Unprobed: true, Args: flags})
	t.Cleanup(func() { requireNoPanic(t, next) })
	r.setBackends(next.Webhook)
	soon(t, func() bool { return metric(t, next, "overrule_armed") == 1 }, "it does not keep the failurePolicy")
	assert.Equal(t, armed, c.failurePolicies(t))
	assert.Less(t, metric(t, next, "overrule_canary_runs_total", `result="passed"`), 3.0, "it was armed from the start")
}

// The failurePolicies of the mutating webhook, of the validating one, and of the
// webhooks that are never armed.
const (
	armed    = "Fail Fail Ignore Ignore Ignore Ignore Fail"
	disarmed = "Ignore Ignore Ignore Ignore Ignore Ignore Ignore"
)

// failurePolicies returns those of all webhooks, the mutating one first.
func (c *cluster) failurePolicies(t *testing.T) string {
	t.Helper()
	var out []string
	for _, configuration := range []string{configurations[1], configurations[0]} {
		got := c.Kubectl("get", configuration, "-o", "jsonpath={.webhooks[?(@.name!='review.overrule.dev')].failurePolicy}", "--ignore-not-found")
		succeed(t, got)
		out = append(out, got.Stdout)
	}
	return strings.Join(out, " ")
}
