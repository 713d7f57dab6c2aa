//go:build e2e

package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"overrule.dev/overrule/test/env"
)

// hookRights are those of the Helm chart's Job.
var hookRights = []rbacv1.PolicyRule{
	{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterrolebindings"}, ResourceNames: []string{"overrule-webhooks"}, Verbs: []string{"delete"}},
	{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"}, ResourceNames: []string{"overrule"}, Verbs: []string{"delete"}},
}

// A running leader recreates configurations that are deleted, except by this
// command.
func TestUninstallWebhooksWhileLeaderRuns(t *testing.T) {
	env.Long(t)
	c := shared(t)
	g := c.prepare(t, "uninstall")
	s := c.start(t)
	defer c.restoreRights(t) // needed by the servers of other tests
	job := c.MustAddUser(t, "uninstaller", nil, hookRights...)
	succeed(t, g.apply(gatewayLimits))
	denied(t, g.apply(limits("name: p", 100)), "ConstraintViolated: ")

	succeed(t, c.Kubectl(append([]string{"delete"}, configurations...)...))
	soon(t, func() bool { return strings.Count(c.registered(t), "overrule") == 2 }, "the leader does not recreate them")

	said, err := uninstallWebhooks(t, job)
	require.NoError(t, err, said)
	assert.Contains(t, said, "webhook configurations removed: writes are no longer evaluated")
	assert.Empty(t, c.registered(t))
	soon(t, func() bool { return strings.Contains(s.Log(), `cannot patch resource`) }, "the leader did not try")
	assert.Empty(t, c.registered(t))
	succeed(t, g.apply(limits("name: p", 100)))
	require.NoError(t, s.Stop())
	succeed(t, g.apply(limits("name: p", 200)))

	said, err = uninstallWebhooks(t, job)
	require.NoError(t, err, "it may run again: %s", said)
}

func uninstallWebhooks(t *testing.T, as *env.User) (said string, err error) {
	t.Helper()
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "overrule"), "uninstall-webhooks", "--kubeconfig="+as.Kubeconfig).CombinedOutput()
	return string(out), err
}

func (c *cluster) restoreRights(t *testing.T) {
	t.Helper()
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	succeed(t, c.Kubectl("apply", "--server-side", "-f", filepath.Join(root, "deploy", "base", "rbac-webhooks.yaml")))
}

// registered returns the names of the webhook configurations.
func (c *cluster) registered(t *testing.T) string {
	t.Helper()
	got := c.Kubectl(append([]string{"get", "-o", "name", "--ignore-not-found"}, configurations...)...)
	succeed(t, got)
	return got.Stdout
}

var configurations = []string{"validatingwebhookconfiguration/overrule", "mutatingwebhookconfiguration/overrule"}
