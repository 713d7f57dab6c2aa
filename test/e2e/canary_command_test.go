//go:build e2e

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
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

// outcomesOf returns the outcomes of the trials, and the response to the first
// one.
func outcomesOf(r canary.Result) (outcomes []canary.Outcome, first string) {
	for _, trial := range r.Attempts {
		outcomes = append(outcomes, trial.Outcome)
	}
	return outcomes, r.Attempts[0].Response
}

// allTrials are the outcomes of a run in which each trial had the same outcome.
func allTrials(o canary.Outcome) []canary.Outcome { return []canary.Outcome{o, o, o} }

func TestCanaryPasses(t *testing.T) {
	c := shared(t)
	g := c.prepare(t, "canary-passes")
	s := c.start(t, "--canary-interval=0")
	before := metric(t, s, "overrule_decisions_total")
	r, code := runCanary(t, c.User, "--canary-namespace="+g.app)
	outcomes, first := outcomesOf(r)
	assert.Zero(t, code, r.Text())
	assert.Equal(t, allTrials(canary.Passed), outcomes, r.Text())
	assert.Regexp(t, `^denied by validate\.overrule\.dev: Invalid: PolicyProfile overrule-canary-\w+ is invalid: .*targets: `, first)
	assert.Equal(t, "admitted, and mutated by mutate.overrule.dev", r.Attempts[2].Response)

	assert.InDelta(t, before, metric(t, s, "overrule_decisions_total"), 0, "they are not counted as writes of users")
	assert.Empty(t, c.Kubectl("get", "policyprofiles", "-l", "overrule.dev/canary", "-o", "name").Stdout, "nothing is stored")
	assert.NotContains(t, c.Kubectl("get", "events", "-A").Stdout, "overrule-canary", "no Event reports the denial")
}

func TestCanaryExpectsEnforcementMode(t *testing.T) {
	env.Long(t)
	t.Parallel()
	for name, row := range map[string]struct {
		server, expected string
		code             int
		outcome          canary.Outcome
		first, note      string
	}{
		"warn":                       {"warn", "warn", 0, canary.Passed, "admitted with a warning: would be denied: Invalid: PolicyProfile overrule-", ""},
		"audit":                      {"audit", "audit", 0, canary.Passed, "admitted, as expected with --enforcement=audit", "this run verifies that writes are not blocked and that mutate.overrule.dev is called, but not that writes are evaluated"},
		"warn where deny is thought": {"warn", "deny", 1, canary.Failed, "admitted with a warning, which is unexpected unless the server runs with --enforcement=warn; set --enforcement to the value that the server uses", ""},
		"deny where warn is thought": {"deny", "warn", 1, canary.Failed, "denied by validate.overrule.dev, which is unexpected with --enforcement=warn", ""},
		"audit where warn is":        {"audit", "warn", 1, canary.Failed, "admitted without evaluation: validate.overrule.dev has a rule for the write", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := shared(t)
			g := c.prepare(t, "canary-enforcement")
			s := server.Start(t, c.Env, server.Options{Unprobed: true, Args: []string{"--enforcement=" + row.server, "--canary-interval=0"}})
			called := func() bool { // by both configurations
				r, _ := runCanary(t, c.User, "--enforcement="+row.expected, "--canary-namespace="+g.app)
				_, first := outcomesOf(r)
				return strings.Contains(first, row.first) && r.Attempts[2].Outcome == canary.Passed
			}
			soon(t, called, "the API server does not call it")
			r, code := runCanary(t, c.User, "--enforcement="+row.expected, "--canary-namespace="+g.app)
			_, first := outcomesOf(r)
			assert.Equal(t, row.code, code, r.Text())
			assert.Equal(t, row.outcome, r.Attempts[0].Outcome)
			assert.Contains(t, first, row.first)
			assert.Equal(t, canary.Passed, r.Attempts[1].Outcome, r.Text())
			assert.Contains(t, r.Note, row.note)
			assert.Equal(t, row.note == "", r.Note == "")
			requireNoPanic(t, s)
		})
	}
}

func TestCanaryFailsWithoutWebhooks(t *testing.T) {
	env.Long(t)
	c := shared(t)
	g := c.prepare(t, "canary-none")
	_, err := server.Install(t.Context(), c.Env)
	require.NoError(t, err)
	r, code := runCanary(t, c.User, "--canary-namespace="+g.app)
	outcomes, first := outcomesOf(r)
	assert.Equal(t, 1, code)
	assert.Equal(t, []canary.Outcome{canary.Failed, canary.Passed, canary.Failed}, outcomes, r.Text())
	assert.Equal(t, "admitted without evaluation: ValidatingWebhookConfiguration overrule not found: no write is evaluated", first)
	assert.Contains(t, r.Attempts[2].Response, "not mutated by mutate.overrule.dev")
}

// withoutRepair removes the server's right to repair its configurations until the
// test ends.
func (c *cluster) withoutRepair(t *testing.T) {
	t.Helper()
	c.start(t, "--canary-interval=0")
	succeed(t, c.Kubectl("delete", "clusterrolebinding/overrule-webhooks"))
}

func TestCanaryReportsWrongCABundle(t *testing.T) {
	env.Long(t)
	c := shared(t)
	c.withoutRepair(t)
	defer c.restoreRights(t)
	ca := base64.StdEncoding.EncodeToString([]byte(newIssuer(t).serving(t)["ca.crt"]))
	for _, configuration := range configurations {
		succeed(t, c.Kubectl("patch", configuration, "--type=json", "-p", `[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"`+ca+`"}]`))
	}
	c.awaitOutcome(t, 1, canary.Failed, `the API server cannot call validate.overrule.dev: failed to call webhook: Post `, "x509: certificate signed by unknown authority")

	for _, configuration := range configurations {
		succeed(t, c.Kubectl("patch", configuration, "--type=json", "-p", `[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`))
	}
	c.awaitOutcome(t, 1, canary.Failed, "admitted without evaluation: validate.overrule.dev has failurePolicy Ignore, so writes are admitted when calls fail", "failing open")
}

func TestCanaryReportsMissingRules(t *testing.T) {
	env.Long(t)
	c := shared(t)
	c.withoutRepair(t)
	defer c.restoreRights(t)
	succeed(t, c.Kubectl("patch", configurations[0], "--type=json", "-p", `[{"op":"add","path":"/webhooks/0/matchConditions/-","value":{"name":"never","expression":"false"}}]`))
	c.awaitOutcome(t, 1, canary.Failed, "admitted without evaluation: validate.overrule.dev has a match condition or an object selector that Overrule does not set")
	succeed(t, c.Kubectl("patch", configurations[0], "--type=json", "-p", `[{"op":"replace","path":"/webhooks/0/rules","value":[{"apiGroups":["kuadrant.io"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["authpolicies"]}]}]`))
	c.awaitOutcome(t, 1, canary.Failed, "admitted without evaluation: validate.overrule.dev has no rule for creating policyprofiles.overrule.dev")
	succeed(t, c.Kubectl("patch", configurations[0], "--type=json", "-p", `[{"op":"remove","path":"/webhooks/0"}]`))
	c.awaitOutcome(t, 1, canary.Failed, "admitted without evaluation: ValidatingWebhookConfiguration overrule has no webhook validate.overrule.dev")
}

// awaitOutcome waits until the first trial has that outcome: an API server
// observes an edit a moment later.
func (c *cluster) awaitOutcome(t *testing.T, code int, outcome canary.Outcome, parts ...string) {
	t.Helper()
	var last canary.Result
	var got int
	soon(t, func() bool {
		last, got = runCanary(t, c.User)
		_, first := outcomesOf(last)
		for _, part := range parts {
			if !strings.Contains(first, part) {
				return false
			}
		}
		return got == code && last.Outcome == outcome
	}, "the outcome is not reported")
	t.Log(last.Text())
}

func TestCanaryReportsUnavailableServer(t *testing.T) {
	env.Long(t)
	c := shared(t)
	s := c.start(t, "--canary-interval=0")
	require.NoError(t, s.Signal(syscall.SIGSTOP))
	r, code := runCanary(t, c.User)
	require.NoError(t, s.Signal(syscall.SIGCONT))
	outcomes, first := outcomesOf(r)
	assert.Equal(t, 1, code)
	assert.Equal(t, []canary.Outcome{canary.Failed, canary.Failed}, outcomes, r.Text())
	assert.Contains(t, first, "the API server cannot call validate.overrule.dev: ")
	assert.Contains(t, first, "context deadline exceeded")

	require.NoError(t, s.Signal(syscall.SIGTERM))
	<-s.Done()
	c.awaitOutcome(t, 1, canary.Failed, "the API server cannot call validate.overrule.dev: ", "connection refused")
}

func TestCanaryReportsWhyItCannotRun(t *testing.T) {
	env.Long(t)
	c := shared(t)
	g := c.prepare(t, "canary-untried")
	c.start(t, "--canary-interval=0")
	unprivilegedUser := c.MustAddUser(t, "canary-unprivileged", nil)
	r, code := runCanary(t, unprivilegedUser, "--canary-namespace="+g.app)
	outcomes, first := outcomesOf(r)
	assert.Equal(t, 2, code)
	assert.Equal(t, allTrials(canary.Untried), outcomes, r.Text())
	assert.Equal(t, "canary-unprivileged is not allowed to create policyprofiles.overrule.dev; check: kubectl auth can-i create policyprofiles.overrule.dev --as=canary-unprivileged", first)
	assert.Contains(t, r.Attempts[2].Response, "kubectl auth can-i create httproutes.gateway.networking.k8s.io -n "+g.app+" --as=canary-unprivileged")

	r, code = runCanary(t, c.User, "--canary-namespace=nowhere")
	assert.Equal(t, 2, code)
	assert.Equal(t, "namespace nowhere not found: set --canary-namespace to an existing namespace", r.Attempts[2].Response)

	r, code = runCanary(t, c.User, "--canary-namespace="+server.Namespace)
	assert.Equal(t, 1, code)
	assert.Contains(t, r.Attempts[2].Response, "namespace overrule-system is exempt if Overrule runs in it")
}

func TestCanaryReportsMissingCRD(t *testing.T) {
	env.Long(t)
	bare := alone(t, env.WithoutCRDs())
	r, code := runCanary(t, bare.User)
	_, first := outcomesOf(r)
	assert.Equal(t, 2, code)
	assert.Equal(t, "the API server does not serve policyprofiles.overrule.dev in version v1alpha1: install its CustomResourceDefinition", first)

	port, err := env.FreePort(t.Context())
	require.NoError(t, err)
	unprivilegedUser := &env.User{Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	require.NoError(t, os.WriteFile(unprivilegedUser.Kubeconfig, fmt.Appendf(nil, `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:%d'}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`, port), 0o600))
	r, code = runCanary(t, unprivilegedUser)
	_, first = outcomesOf(r)
	assert.Equal(t, 2, code)
	assert.Contains(t, first, "rejected by the API server: ")
}

func TestCanaryReportsDenialByOtherWebhook(t *testing.T) {
	env.Long(t)
	c := shared(t)
	c.start(t, "--canary-interval=0")
	const policy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-canaries}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [overrule.dev], apiVersions: ['*'], operations: [CREATE], resources: [policyprofiles]}]}
  validations: [{expression: "!('overrule.dev/canary' in object.metadata.labels)", message: no birds}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-canaries}
spec: {policyName: no-canaries, validationActions: [Deny]}
`
	succeed(t, c.Apply(policy))
	t.Cleanup(func() { succeed(t, c.KubectlWith(policy, "delete", "-f", "-")) })
	var last canary.Result
	soon(t, func() bool {
		last, _ = runCanary(t, c.User)
		return strings.Contains(last.Attempts[1].Response, "no birds")
	}, "the outcome is not reported")
	assert.Equal(t, canary.Untried, last.Attempts[1].Outcome, last.Text())
}

// canaryRights are those that the command needs.
var canaryRights = rbacv1.PolicyRule{APIGroups: []string{"overrule.dev"}, Resources: []string{"policyprofiles"}, Verbs: []string{"create"}}

func TestCanaryNeedsNoOtherRights(t *testing.T) {
	env.Long(t)
	c := shared(t)
	c.start(t, "--canary-interval=0")
	r, code := runCanary(t, c.MustAddUser(t, "canary-keeper", nil, canaryRights))
	assert.Zero(t, code, r.Text())
}
