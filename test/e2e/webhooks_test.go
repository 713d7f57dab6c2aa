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
