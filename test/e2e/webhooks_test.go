//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/process"
	"overrule.dev/overrule/test/server"
)

// webhooks returns the webhooks of a configuration.
func (c *cluster) webhooks(t *testing.T, kind string) string {
	t.Helper()
	return c.Kubectl("get", kind+"webhookconfiguration/overrule", "--ignore-not-found", "-o", "jsonpath={.webhooks}").Stdout
}

// getBody returns the body of an HTTP response of a server.
func getBody(t *testing.T, address string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

// The leader reverts any edit of the configurations at once, and reports the
// user.
func TestWebhookEditsAreReverted(t *testing.T) {
	c := shared(t)
	g := c.prepare(t, "undone")
	s := c.start(t)
	succeed(t, g.apply(gatewayLimits))
	// reverted counts the Events about it; the first of a series stands for all.
	reverted := func() int {
		got := c.Kubectl("get", "events.events.k8s.io", "-n", "default", "-o", "jsonpath={.items[*].note}")
		return strings.Count(got.Stdout, "reverted by overrule: ")
	}
	others := reverted()
	before := map[string]string{"validating": c.webhooks(t, "validating"), "mutating": c.webhooks(t, "mutating")}
	succeed(t, c.Kubectl("label", "validatingwebhookconfiguration/overrule", "mutatingwebhookconfiguration/overrule", "theirs=stays"))

	const theirs = `{"op":"add","path":"/webhooks/-","value":{"name":"theirs.example.com","admissionReviewVersions":["v1"],"sideEffects":"None",
		"failurePolicy":"Ignore","clientConfig":{"url":"https://localhost:1/"},"rules":[]}}`
	conditions := `{"op":"add","path":"/webhooks/0/matchConditions/-","value":{"name":"never","expression":"false"}}`
	for name, edit := range map[string]struct{ patch, says string }{
		"a rule is removed":           {`{"op":"remove","path":"/webhooks/0/rules/1"}`, "rules do not cover "},
		"failurePolicy is changed":    {`{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}`, "failurePolicy is Ignore, expected Fail"},
		"a namespace is left out":     {`{"op":"add","path":"/webhooks/0/namespaceSelector/matchExpressions/0/values/-","value":"app"}`, "namespaceSelector differs"},
		"the selector is narrowed":    {`{"op":"replace","path":"/webhooks/0/namespaceSelector","value":{"matchLabels":{"a":"b"}}}`, "namespaceSelector differs"},
		"objects are selected":        {`{"op":"replace","path":"/webhooks/0/objectSelector","value":{"matchLabels":{"a":"b"}}}`, "objectSelector differs"},
		"the caBundle is emptied":     {`{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}`, "caBundle is empty"},
		"a condition lets all pass":   {conditions, "matchConditions differ"},
		"our condition lets all pass": {`{"op":"replace","path":"/webhooks/0/matchConditions/0/expression","value":"false"}`, "matchConditions differ"},
		"it leads to an address":      {`{"op":"replace","path":"/webhooks/0/clientConfig","value":{"url":"https://localhost:1/"}}`, "clientConfig does not point to Service overrule-system/overrule"},
		"it leads to another Service": {`{"op":"replace","path":"/webhooks/0/clientConfig/service","value":{"namespace":"default","name":"kubernetes"}}`, "clientConfig does not point to Service overrule-system/overrule"},
		"a webhook is removed":        {`{"op":"remove","path":"/webhooks/0"}`, ".overrule.dev is missing"},
		"all of it at once": {
			`{"op":"replace","path":"/webhooks/0/clientConfig","value":{"url":"https://localhost:1/"}},` + conditions + `,{"op":"replace","path":"/webhooks/0/timeoutSeconds","value":1}`,
			"timeoutSeconds is 1, expected 10",
		},
	} {
		for _, kind := range []string{"validating", "mutating"} {
			t.Run(kind+": "+name, func(t *testing.T) {
				log := len(s.Log())
				got := c.Kubectl("patch", kind+"webhookconfiguration/overrule", "--type=json", "--field-manager=eve", "-p", "["+edit.patch+"]")
				succeed(t, got)
				soon(t, func() bool {
					return c.webhooks(t, kind) == before[kind] && strings.Contains(s.Log()[log:], "reverted a change to a webhook configuration")
				}, "it is not reverted")
				assert.Contains(t, s.Log()[log:], edit.says)
				assert.NotContains(t, s.Log()[log:], "cannot write webhook configurations", "its writes were not rejected")
			})
		}
	}
	for _, kind := range []string{"validating", "mutating"} {
		log := len(s.Log())
		succeed(t, c.Kubectl("patch", kind+"webhookconfiguration/overrule", "--type=json", "-p", "["+theirs+"]"))
		c.awaitCalled(t)
		assert.Contains(t, c.webhooks(t, kind), "theirs.example.com", "fields of others are kept")
		assert.NotContains(t, s.Log()[log:], "reverted a change")
		assert.Equal(t, "stays", c.Kubectl("get", kind+"webhookconfiguration/overrule", "-o", "jsonpath={.metadata.labels.theirs}").Stdout)

		succeed(t, c.Kubectl("delete", kind+"webhookconfiguration/overrule"))
		soon(t, func() bool {
			return c.webhooks(t, kind) == before[kind] && strings.Contains(s.Log()[log:], `"what":"deleted"`)
		}, "it does not recover")
	}
	assert.Contains(t, s.Log(), "field manager eve (Update)")
	assert.Contains(t, getBody(t, s.Metrics+"/metrics"), `overrule_webhook_repairs_total{configuration="mutating"} 13`)
	assert.Contains(t, getBody(t, s.Metrics+"/metrics"), `overrule_webhook_repairs_total{configuration="validating"} 13`)
	soon(t, func() bool { return reverted() > others }, "there is no Event")
	c.awaitCalled(t)
	denied(t, g.apply(limits("name: p", 100)), "ConstraintViolated: ")
}

// Two installations would overwrite each other's configurations in a loop. The
// second one waits, and reports what to do.
func TestSecondInstallationWaits(t *testing.T) {
	env.Long(t)
	c := alone(t, env.WithControllers())
	g := c.prepare(t, "second")
	c.start(t)
	version := func() string {
		return c.Kubectl("get", "validatingwebhookconfiguration/overrule", "mutatingwebhookconfiguration/overrule", "-o", "jsonpath={.items[*].metadata.resourceVersion}").Stdout
	}
	before := version()
	second := c.install(t, "overrule-too")
	says := "belong to installation overrule-system/overrule, whose Service exists; this installation (overrule-too/overrule) does not write them and evaluates no writes"
	soon(t, func() bool {
		return strings.Contains(getBody(t, second.Health+"/readyz"), "[!] webhooks: webhook configurations overrule "+says)
	}, "it does not report it")
	soon(t, func() bool {
		return strings.Contains(c.Kubectl("get", "events.events.k8s.io", "-n", "default", "-o", "jsonpath={.items[*].note}").Stdout, says)
	}, "there is no Event")
	succeed(t, g.apply(gatewayLimits))
	denied(t, g.apply(limits("name: p", 100)), "ConstraintViolated: ")
	assert.Equal(t, before, version(), "there were no writes")

	succeed(t, c.Kubectl("delete", "service/overrule", "-n", server.Namespace))
	leads := func(to string) bool {
		got := c.Kubectl("get", "validatingwebhookconfiguration/overrule", "mutatingwebhookconfiguration/overrule", "-o", "jsonpath={.items[*].webhooks[*].clientConfig.service.namespace}").Stdout
		return strings.TrimSpace(strings.ReplaceAll(got, to, "")) == ""
	}
	soon(t, func() bool { return leads("overrule-too") }, "it does not take over")
	c.awaitCalled(t)
	denied(t, g.apply(limits("name: p", 100)), "ConstraintViolated: ")
	soon(t, func() bool { return !strings.Contains(getBody(t, second.Health+"/readyz"), "[!] webhooks") }, "it still reports it")
	taken := version()

	require.NoError(t, c.RouteService(t.Context(), server.Namespace, server.Name, 1))
	soon(t, func() bool { return version() == taken && leads("overrule-too") }, "the first one takes over again")
	succeed(t, c.Kubectl("annotate", "--overwrite", "mutatingwebhookconfiguration/overrule", "validatingwebhookconfiguration/overrule",
		"overrule.dev/installation=overrule-system/overrule"))
	soon(t, func() bool { return leads("overrule-system") }, "it does not take the configurations over")
}

// install runs a server of another installation in its own namespace, with all
// rights.
func (c *cluster) install(t *testing.T, namespace string) *server.Server {
	t.Helper()
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	var ports [3]int32
	for i := range ports {
		ports[i], err = env.FreePort(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, c.RouteService(t.Context(), namespace, server.Name, ports[0]))
	account, err := c.ServiceAccount(t.Context(), namespace, server.Name)
	require.NoError(t, err)
	succeed(t, c.Kubectl("create", "clusterrolebinding", namespace, "--clusterrole=cluster-admin", "--serviceaccount="+namespace+":"+server.Name))
	s := &server.Server{Webhook: loopback(ports[0]), Metrics: loopback(ports[1]), Health: loopback(ports[2])}
	s.Process, err = process.Start(process.Spec{Path: filepath.Join(root, "bin", "overrule"), Args: []string{
		"--kubeconfig=" + account.Kubeconfig, "--namespace=" + namespace, "--drain-period=0s", fmt.Sprintf("--service-port=%d", ports[0]),
		"--peer-bind-address=127.0.0.1:0", "--webhook-bind-address=" + s.Webhook, "--metrics-bind-address=" + s.Metrics, "--health-bind-address=" + s.Health,
	}})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.Stop())
		if t.Failed() {
			t.Log(s.Log())
		}
		requireNoPanic(t, s)
	})
	soon(t, func() bool {
		ready, _ := process.OK("http://" + s.Health + "/readyz")(t.Context())
		return ready
	}, "the second is not ready")
	return s
}

func loopback(port int32) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// The server reports drift of configurations that users keep themselves.
func TestStaticWebhookDriftIsReported(t *testing.T) {
	env.Long(t)
	c := shared(t)
	c.prepare(t, "drift")
	require.NoError(t, c.start(t).Stop()) // it leaves correct configurations
	s := server.Start(t, c.Env, server.Options{Unprobed: true, Args: []string{"--manage-webhooks=false"}})
	t.Cleanup(func() { c.removeWebhooks(t) })
	port := s.Webhook[strings.LastIndex(s.Webhook, ":")+1:]
	for _, kind := range []string{"validating", "mutating"} {
		n := len(strings.Split(c.webhooks(t, kind), `"admissionReviewVersions"`)) - 1
		path := map[string]string{"validating": "/validate", "mutating": "/mutate"}[kind]
		for i := range n { // each server has its own port here, and this one has no token
			at := fmt.Sprintf("/webhooks/%d/clientConfig/service", i)
			if kind == "mutating" && i == 1 {
				path = "/review"
			}
			succeed(t, c.Kubectl("patch", kind+"webhookconfiguration/overrule", "--type=json", "-p",
				fmt.Sprintf(`[{"op":"replace","path":"%[1]s/port","value":%[2]s},{"op":"replace","path":"%[1]s/path","value":"%[3]s"}]`, at, port, path)))
		}
	}
	ready := func() string { return getBody(t, s.Health+"/readyz") }
	soon(t, func() bool { return !strings.Contains(ready(), "[!] webhooks") }, "correct configurations are reported")
	for _, edit := range []struct{ patch, says string }{
		{`{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}`, "validate.overrule.dev: caBundle is empty"},
		{`{"op":"replace","path":"/webhooks/0/clientConfig/service/path","value":"/elsewhere"}`, "validate.overrule.dev: clientConfig does not point to Service overrule-system/overrule with the expected path and port"},
		{`{"op":"remove","path":"/webhooks/0/rules/1"}`, "validate.overrule.dev: rules do not cover CREATE "},
	} {
		succeed(t, c.Kubectl("patch", "validatingwebhookconfiguration/overrule", "--type=json", "-p", "["+edit.patch+"]"))
		soon(t, func() bool {
			text := ready()
			return strings.Contains(text, "[!] webhooks: validating webhook configuration overrule: ") && strings.Contains(text, edit.says)
		}, edit.says+" is not reported")
	}
	succeed(t, c.Kubectl("delete", "mutatingwebhookconfiguration/overrule"))
	soon(t, func() bool {
		return strings.Contains(ready(), "mutating webhook configuration overrule: not found, so no write is evaluated: apply it")
	}, "a missing configuration is not reported")
}
