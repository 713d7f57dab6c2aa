//go:build e2e

package e2e

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

// hooksAlone selects the webhook configurations of the static overlay, allElse
// the objects that its page says to apply first.
const (
	hooksAlone = "app.kubernetes.io/component=webhook-configuration"
	allElse    = "app.kubernetes.io/component!=webhook-configuration"
)

// The configurations of the static overlay are applied first: they are active,
// trust another authority, and no server answers. They stay when the namespace is
// deleted, until uninstall-webhooks.
func staticWebhooks(t *testing.T, c *cluster) {
	g := c.prepare(t, "static")
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	rendered := c.Kubectl("kustomize", filepath.Join(root, "deploy", "overlays", "static-webhooks"))
	succeed(t, rendered)
	port, err := env.FreePort(t.Context())
	require.NoError(t, err)
	apply := func(t *testing.T, bundle, what string) {
		t.Helper()
		all := strings.NewReplacer("FILL-IN", bundle, "port: 443\n", fmt.Sprintf("port: %d\n", port)).Replace(rendered.Stdout)
		succeed(t, c.Apply(all, "--server-side", "--force-conflicts", "-l", what))
	}
	// serve runs a server with a new authority until it reports that the CA bundle
	// is not its own, and writes it, as the page says to do after each change of it.
	serve := func(t *testing.T) *server.Server {
		t.Helper()
		s := server.Start(t, c.Env, server.Options{Unprobed: true, Args: []string{
			"--manage-webhooks=false", fmt.Sprintf("--webhook-bind-address=127.0.0.1:%d", port), fmt.Sprintf("--service-port=%d", port),
		}})
		soon(t, func() bool {
			text := httpGet(t, s.Health+"/readyz?verbose")
			return strings.Contains(text, "[!] webhooks: ") && strings.Contains(text, "caBundle")
		}, "the caBundle is not reported")
		got := g.apply(limits("name: p", 30))
		requireCallFailed(t, got)
		assert.Contains(t, got.Stderr, "x509: certificate signed by unknown authority")
		bundle := c.Kubectl("-n", server.Namespace, "get", "secret/overrule-ca", "-o", `jsonpath={.data.ca-bundle\.crt}`)
		succeed(t, bundle)
		require.NotEmpty(t, bundle.Stdout)
		apply(t, bundle.Stdout, hooksAlone)
		awaitEvaluated(t, g)
		return s
	}

	apply(t, base64.StdEncoding.EncodeToString(c.Config.CAData), hooksAlone)
	soon(t, func() bool { return g.apply(limits("name: p", 20), "--dry-run=server").Code != 0 }, "they are not active")
	succeed(t, c.Kubectl("delete", "namespace", server.Namespace, "--ignore-not-found", "--timeout=2m"))
	apply(t, "", allElse)
	requireCallFailed(t, g.apply(limits("name: p", 20)))
	c.requireWritable(t)
	require.NoError(t, serve(t).Stop())

	succeed(t, c.Kubectl("-n", server.Namespace, "delete", "secret/overrule-ca"))
	require.NoError(t, serve(t).Stop())
	succeed(t, c.Kubectl("delete", "namespace", server.Namespace, "--timeout=2m"))
	requireCallFailed(t, g.apply(limits("name: p", 30)))
	require.Equal(t, 2, strings.Count(c.registered(t), "overrule"), "they are not deleted otherwise")
	said, err := uninstallWebhooks(t, c.User)
	require.NoError(t, err, said)
	assert.Equal(t, "deleted ValidatingWebhookConfiguration overrule\n"+
		"deleted MutatingWebhookConfiguration overrule\n"+
		"webhook configurations removed: writes are no longer evaluated\n", strings.Replace(said, "deleted ClusterRoleBinding overrule-webhooks\n", "", 1))
	soon(t, func() bool { return g.apply(limits("name: p", 100)).Code == 0 }, "writes are still rejected")
	succeed(t, g.kubectl("delete", "ratelimitpolicy/p"))
}
