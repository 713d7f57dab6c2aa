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
// trust another authority, and no server answers.
func TestStaticWebhooksBeforeServer(t *testing.T) {
	env.Long(t)
	c := alone(t, env.WithControllerAccounts())
	g := c.prepare(t, "static")
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	overlay := filepath.Join(root, "deploy", "overlays", "static-webhooks")
	rendered := c.Kubectl("kustomize", overlay)
	succeed(t, rendered)
	port, err := env.FreePort(t.Context())
	require.NoError(t, err)
	apply := func(t *testing.T, bundle, what string) {
		t.Helper()
		all := strings.NewReplacer("FILL-IN", bundle, "port: 443\n", fmt.Sprintf("port: %d\n", port)).Replace(rendered.Stdout)
		succeed(t, c.Apply(all, "--server-side", "--force-conflicts", "-l", what))
	}
	serve := func(t *testing.T) *server.Server {
		t.Helper()
		return server.Start(t, c.Env, server.Options{Unprobed: true, Args: []string{
			"--manage-webhooks=false", fmt.Sprintf("--webhook-bind-address=127.0.0.1:%d", port), fmt.Sprintf("--service-port=%d", port),
		}})
	}
	// fillIn writes the CA bundle, as the page says to do after each change of
	// the authority.
	fillIn := func(t *testing.T) {
		t.Helper()
		bundle := c.Kubectl("-n", server.Namespace, "get", "secret/overrule-ca", "-o", `jsonpath={.data.ca-bundle\.crt}`)
		succeed(t, bundle)
		require.NotEmpty(t, bundle.Stdout)
		apply(t, bundle.Stdout, hooksAlone)
	}
	awaitReported := func(t *testing.T, s *server.Server, what string) {
		t.Helper()
		soon(t, func() bool {
			text := getBody(t, s.Health+"/readyz")
			return strings.Contains(text, "[!] webhooks: ") && strings.Contains(text, what)
		}, what+" is not reported")
	}
	waiting := limits("name: waiting", 20)

	apply(t, base64.StdEncoding.EncodeToString(c.Config.CAData), hooksAlone)
	soon(t, func() bool { return g.apply(waiting, "--dry-run=server").Code != 0 }, "they are not active")
	t.Run("everything else can be installed after them", func(t *testing.T) {
		requireCallFailed(t, g.apply(waiting))
		apply(t, "", allElse)
		requireCallFailed(t, g.apply(waiting))
		c.requireWritable(t)
	})
	t.Run("the first server reports drift, and pending writes succeed once it is fixed", func(t *testing.T) {
		s := serve(t)
		awaitReported(t, s, "caBundle")
		got := g.apply(waiting)
		requireCallFailed(t, got)
		assert.Contains(t, got.Stderr, "x509: certificate signed by unknown authority")
		c.requireWritable(t)
		fillIn(t)
		soon(t, func() bool { return g.apply(waiting).Code == 0 }, "pending writes do not succeed")
		succeed(t, g.kubectl("delete", "ratelimitpolicy/waiting"))
		requireEvaluated(t, g)
		require.NoError(t, s.Stop())
	})
	t.Run("the server is replaced: no update is needed", func(t *testing.T) {
		requireCallFailed(t, g.apply(limits("name: p", 30)))
		c.requireWritable(t)
		s := serve(t)
		awaitEvaluated(t, g)
		require.NoError(t, s.Stop())
	})
	t.Run("a new authority: the CA bundle must be updated", func(t *testing.T) {
		succeed(t, c.Kubectl("-n", server.Namespace, "delete", "secret/overrule-ca"))
		s := serve(t)
		awaitReported(t, s, "caBundle")
		requireCallFailed(t, g.apply(limits("name: p", 30)))
		fillIn(t)
		awaitEvaluated(t, g)
		require.NoError(t, s.Stop())
	})
	t.Run("the namespace is deleted and they stay until uninstall-webhooks", func(t *testing.T) {
		succeed(t, c.Kubectl("delete", "namespace", server.Namespace, "--timeout=2m"))
		requireCallFailed(t, g.apply(limits("name: p", 30)))
		require.Equal(t, 2, strings.Count(c.registered(t), "overrule"), "they are not deleted otherwise")
		said, err := uninstallWebhooks(t, c.User)
		require.NoError(t, err, said)
		assert.Equal(t, "deleted ValidatingWebhookConfiguration overrule\n"+
			"deleted MutatingWebhookConfiguration overrule\n"+
			"webhook configurations removed: writes are no longer evaluated\n", strings.Replace(said, "deleted ClusterRoleBinding overrule-webhooks\n", "", 1))
		soon(t, func() bool { return g.apply(limits("name: p", 100)).Code == 0 }, "writes are still rejected")
	})
}
