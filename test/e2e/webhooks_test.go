//go:build e2e

package e2e

import (
	"fmt"
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

// The leader reverts edits of the configurations, and reports them.
// Fields and webhooks of others stay. internal/webhookconfig has every edit.
func TestWebhookEditsAreReverted(t *testing.T) {
	env.Long(t)
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
	const (
		theirs = `{"op":"add","path":"/metadata/labels/theirs","value":"stays"},
			{"op":"add","path":"/webhooks/0/namespaceSelector/matchExpressions/-","value":{"key":"control-plane","operator":"DoesNotExist"}},{"op":"add","path":"/webhooks/-","value":{"name":"theirs.example.com",
			"admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"Ignore","clientConfig":{"url":"https://localhost:1/"},"rules":[]}}`
		ours = `{"op":"replace","path":"/webhooks/0/clientConfig","value":{"url":"https://localhost:1/"}},
			{"op":"add","path":"/webhooks/0/matchConditions/-","value":{"name":"never","expression":"false"}},{"op":"remove","path":"/webhooks/0/rules/1"}`
	)
	for _, kind := range []string{"validating", "mutating"} {
		configuration := kind + "webhookconfiguration/overrule"
		before := c.webhooks(t, kind)
		log := len(s.Log())
		succeed(t, c.Kubectl("patch", configuration, "--type=json", "--field-manager=eve", "-p", "["+ours+"]"))
		soon(t, func() bool {
			return c.webhooks(t, kind) == before && strings.Contains(s.Log()[log:], "reverted a change to a webhook configuration")
		}, "it is not reverted")
		assert.Contains(t, s.Log()[log:], map[string]string{"validating": `"what":"validate.overrule.dev"`, "mutating": `"what":"mutate.overrule.dev"`}[kind])
		succeed(t, c.Kubectl("delete", configuration))
		soon(t, func() bool {
			return c.webhooks(t, kind) == before && strings.Contains(s.Log()[log:], `"what":"deleted"`)
		}, "it does not recover")

		log = len(s.Log())
		succeed(t, c.Kubectl("patch", configuration, "--type=json", "-p", "["+theirs+"]"))
		c.awaitCalled(t)
		assert.Contains(t, c.webhooks(t, kind), "theirs.example.com", "webhooks of others are kept")
		assert.Contains(t, c.webhooks(t, kind), "control-plane", "a cloud exempts its namespaces")
		assert.Equal(t, "stays", c.Kubectl("get", configuration, "-o", "jsonpath={.metadata.labels.theirs}").Stdout)
		assert.NotContains(t, s.Log()[log:], "reverted a change")
		assert.InDelta(t, 2, metric(t, s, "overrule_webhook_repairs_total", `configuration="`+kind+`"`), 0)
	}
	assert.NotContains(t, s.Log(), "problem with webhooks", "its writes were not rejected")
	soon(t, func() bool { return reverted() > others }, "there is no Event")
	denied(t, g.apply(limits("name: p", 100)), "ConstraintViolated: ")
}

// Two installations would overwrite each other's configurations in a loop. The
// second one waits, and reports what to do.
func TestSecondInstallationWaits(t *testing.T) {
	env.Long(t)
	c := shared(t)
	g := c.prepare(t, "second")
	c.start(t)
	version := func() string {
		return c.Kubectl("get", "validatingwebhookconfiguration/overrule", "mutatingwebhookconfiguration/overrule", "-o", "jsonpath={.items[*].metadata.resourceVersion}").Stdout
	}
	before := version()
	second := c.secondInstallation(t, "overrule-too")
	says := "belong to installation overrule-system/overrule, whose Service exists; this installation (overrule-too/overrule) does not write them and evaluates no writes"
	soon(t, func() bool {
		return strings.Contains(httpGet(t, second.Health+"/readyz"), "[!] webhooks: webhook configurations overrule "+says)
	}, "it does not report it")
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
	soon(t, func() bool { return !strings.Contains(httpGet(t, second.Health+"/readyz"), "[!] webhooks") }, "it still reports it")
	taken := version()

	require.NoError(t, c.RouteService(t.Context(), server.Namespace, server.Name, 1))
	soon(t, func() bool { return version() == taken && leads("overrule-too") }, "the first one takes over again")
	succeed(t, c.Kubectl("annotate", "--overwrite", "mutatingwebhookconfiguration/overrule", "validatingwebhookconfiguration/overrule",
		"overrule.dev/installation=overrule-system/overrule"))
	soon(t, func() bool { return leads("overrule-system") }, "it does not take the configurations over")
}

// secondInstallation runs a server in a namespace of its own, with all rights.
func (c *cluster) secondInstallation(t *testing.T, namespace string) *server.Server {
	t.Helper()
	var ports [2]int32
	for i := range ports {
		port, err := env.FreePort(t.Context())
		require.NoError(t, err)
		ports[i] = port
	}
	require.NoError(t, c.RouteService(t.Context(), namespace, server.Name, ports[0]))
	account, err := c.ServiceAccount(t.Context(), namespace, server.Name)
	require.NoError(t, err)
	succeed(t, c.Kubectl("create", "clusterrolebinding", namespace, "--clusterrole=cluster-admin", "--serviceaccount="+namespace+":"+server.Name))
	t.Cleanup(func() {
		succeed(t, c.Kubectl("delete", "clusterrolebinding/"+namespace, "namespace/"+namespace, "--wait=false"))
	})
	s := &server.Server{Webhook: loopback(ports[0]), Health: loopback(ports[1])}
	s.Process = c.run(t, account, "--namespace="+namespace, fmt.Sprintf("--service-port=%d", ports[0]),
		"--webhook-bind-address="+s.Webhook, "--health-bind-address="+s.Health, "--metrics-bind-address=0")
	soon(t, func() bool {
		ready, _ := process.OK("http://" + s.Health + "/readyz")(t.Context())
		return ready
	}, "the second is not ready")
	return s
}

func loopback(port int32) string { return fmt.Sprintf("127.0.0.1:%d", port) }
