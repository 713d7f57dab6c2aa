//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"overrule.dev/overrule/internal/controllers/canary"
	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

// runCanary runs the canary command as a user.
func runCanary(t *testing.T, as *env.User, args ...string) (r canary.Result, code int) {
	t.Helper()
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "overrule"),
		append([]string{"canary", "-o", "json", "--kubeconfig=" + as.Kubeconfig}, args...)...)
	var said, complained bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &complained
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
	}
	require.NoError(t, json.Unmarshal(said.Bytes(), &r), "%s%s", said.String(), complained.String())
	return r, cmd.ProcessState.ExitCode()
}

// outcomesOf returns the outcomes of the trials of a run.
func outcomesOf(r canary.Result) (out []canary.Outcome) {
	for _, trial := range r.Attempts {
		out = append(out, trial.Outcome)
	}
	return out
}

// canaryRights are those that the command needs.
var canaryRights = []rbacv1.PolicyRule{
	{APIGroups: []string{"overrule.dev"}, Resources: []string{"policyprofiles"}, Verbs: []string{"create"}},
	{APIGroups: []string{"gateway.networking.k8s.io"}, Resources: []string{"httproutes"}, Verbs: []string{"create"}},
}

// The command passes with a server, fails without one, and cannot be tried
// without rights: each outcome has its exit code.
func TestCanaryCommand(t *testing.T) {
	c := shared(t)
	g := c.prepare(t, "canary")
	s := c.start(t, "--canary-interval=0")
	at := "--canary-namespace=" + g.app
	before := metric(t, s, "overrule_decisions_total")
	r, code := runCanary(t, c.MustAddUser(t, "canary-keeper", nil, canaryRights...), at)
	assert.Zero(t, code, r.Text())
	assert.Equal(t, []canary.Outcome{canary.Passed, canary.Passed, canary.Passed}, outcomesOf(r), r.Text())
	assert.Regexp(t, `^denied by validate\.overrule\.dev: Invalid: PolicyProfile overrule-canary-\w+ is invalid: .*targets: `, r.Attempts[0].Response)
	assert.Equal(t, "admitted, and mutated by mutate.overrule.dev", r.Attempts[2].Response)
	assert.InDelta(t, before, metric(t, s, "overrule_decisions_total"), 0, "they are not counted as writes of users")
	assert.Empty(t, c.Kubectl("get", "policyprofiles", "-l", "overrule.dev/canary", "-o", "name").Stdout, "nothing is stored")
	assert.NotContains(t, c.Kubectl("get", "events", "-A").Stdout, "overrule-canary", "no Event reports the denial")

	r, code = runCanary(t, c.MustAddUser(t, "canary-unprivileged", nil), at)
	assert.Equal(t, 2, code)
	assert.Equal(t, []canary.Outcome{canary.Untried, canary.Untried, canary.Untried}, outcomesOf(r), r.Text())
	assert.Contains(t, r.Attempts[2].Response, "kubectl auth can-i create httproutes.gateway.networking.k8s.io -n "+g.app+" --as=canary-unprivileged")
	r, code = runCanary(t, c.User, "--canary-namespace="+server.Namespace)
	assert.Equal(t, 1, code)
	assert.Contains(t, r.Attempts[2].Response, "namespace overrule-system is exempt if Overrule runs in it")

	require.NoError(t, s.Stop())
	r, code = runCanary(t, c.User, at)
	assert.Equal(t, 1, code)
	assert.Contains(t, r.Attempts[0].Response, "the API server cannot call validate.overrule.dev: ")
	succeed(t, c.Kubectl(append([]string{"delete"}, configurations...)...))
	soon(t, func() bool {
		r, code = runCanary(t, c.User, at)
		return strings.Contains(r.Attempts[0].Response, "admitted without evaluation: ValidatingWebhookConfiguration overrule not found")
	}, "it does not report that no webhook is called")
	assert.Equal(t, 1, code)
	assert.Equal(t, []canary.Outcome{canary.Failed, canary.Passed, canary.Failed}, outcomesOf(r), r.Text())
}

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

// A leader reports the canary on its pod, in metrics and in Events, and arms the
// webhooks while it passes. The next leader goes on where it stopped.
func TestCanaryOfTheLeader(t *testing.T) {
	env.Long(t)
	c := shared(t)
	c.pod(t, "leads")
	c.pod(t, "follows")
	r := newServiceProxy(t)
	boot := func(name string) *server.Server {
		return c.boot(t, r, "--canary-interval=5s", "--arm", "--pod-name="+name)
	}
	s := boot("leads")
	soon(t, func() bool { return c.failurePolicies(t) == disarmed }, "it starts armed")
	assert.InDelta(t, 0, metric(t, s, "overrule_armed"), 0)
	r.setBackends(s.Webhook)
	soon(t, func() bool { return c.canaryCondition(t, "leads", "reason") == "CanaryPassed" }, "the canary does not pass")
	assert.Equal(t, "True", c.canaryCondition(t, "leads", "status"))
	soon(t, func() bool { return c.failurePolicies(t) == armed && metric(t, s, "overrule_armed") == 1 }, "it does not arm")
	assert.GreaterOrEqual(t, metric(t, s, "overrule_canary_runs_total", `result="passed"`), 3.0)
	assert.NotContains(t, httpGet(t, s.Health+"/readyz"), "canary")

	second := boot("follows")
	soon(t, func() bool { return c.canaryCondition(t, "follows", "reason") == "NotLeading" }, "the follower does not report that it does not lead")
	assert.NotContains(t, metricsPage(t, second), "overrule_canary_passing ", "only the leader has the condition")

	r.closeConnections()
	soon(t, func() bool { return c.canaryCondition(t, "leads", "status") == "False" }, "the canary does not fail")
	assert.Contains(t, c.canaryCondition(t, "leads", "message"), "the API server cannot call validate.overrule.dev: ")
	assert.Contains(t, httpGet(t, s.Health+"/readyz"), "[!] canary: failed: PolicyProfile that must be denied: ")
	soon(t, func() bool { return c.failurePolicies(t) == disarmed && metric(t, s, "overrule_armed") == 0 }, "it stays armed although no replica evaluates writes")
	soon(t, func() bool {
		got := c.Kubectl("-n", server.Namespace, "get", "events", "-o", `jsonpath={range .items[*]}{.involvedObject.name} {.type} {.reason}{"\n"}{end}`)
		return strings.Contains(got.Stdout, "leads Warning CanaryFailed") && strings.Contains(got.Stdout, " Normal CanaryPassed")
	}, "no Event reports it")

	r.setBackends(s.Webhook)
	soon(t, func() bool { return c.failurePolicies(t) == armed }, "it does not arm again")
	r.setBackends(second.Webhook)
	require.NoError(t, s.Stop())
	assert.Equal(t, "NotLeading", c.canaryCondition(t, "leads", "reason"), "it says so before it ends")
	assert.Equal(t, armed, c.failurePolicies(t), "a leader that stops keeps the failurePolicy")
	soon(t, func() bool { return metric(t, second, "overrule_armed") == 1 }, "the next leader does not keep the failurePolicy")
	soon(t, func() bool { return c.canaryCondition(t, "follows", "status") == "True" }, "the next leader does not run the canary")
}
