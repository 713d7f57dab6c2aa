//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

// heldConfigMap keeps Overrule's namespace in Terminating.
const heldConfigMap = `
apiVersion: v1
kind: ConfigMap
metadata: {namespace: overrule-system, name: held, finalizers: [e2e.example.com/hold]}
`

// The namespace is deleted first and stays in Terminating, so the garbage
// collector keeps the configurations, and no server answers.
func TestUninstallWebhooksAfterWrongOrder(t *testing.T) {
	env.Long(t)
	c := alone(t, env.WithControllerAccounts())
	g := c.prepare(t, "wrong")
	s := c.start(t)
	requireEvaluated(t, g)
	succeed(t, c.Apply(heldConfigMap))
	succeed(t, c.Kubectl("delete", "namespace", server.Namespace, "--wait=false"))
	require.NoError(t, s.Stop())
	requireCallFailed(t, g.apply(limits("name: p", 30)))
	require.Equal(t, 2, strings.Count(c.registered(t), "overrule"), "they are not removed")

	job := c.MustAddUser(t, "uninstaller", nil, hookRights...)
	said, err := uninstallWebhooks(t, job)
	require.NoError(t, err, said)
	assert.Equal(t, `deleted ClusterRoleBinding overrule-webhooks
deleted ValidatingWebhookConfiguration overrule
deleted MutatingWebhookConfiguration overrule
webhook configurations removed: writes are no longer evaluated
`, said)
	soon(t, func() bool { return g.apply(limits("name: p", 100)).Code == 0 }, "writes are still rejected")
	said, err = uninstallWebhooks(t, job)
	require.NoError(t, err, said)
	assert.Equal(t, "webhook configurations removed: writes are no longer evaluated\n", said, "it may run again")

	succeed(t, c.Kubectl("-n", server.Namespace, "patch", "configmap/held", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`))
	c.awaitGone(t, "namespace", server.Namespace)
	succeed(t, g.kubectl("delete", "ratelimitpolicy/p"))
	s = c.start(t)
	requireEvaluated(t, g)
	requireRunning(t, s)
}
