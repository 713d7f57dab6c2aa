//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/process"
	"overrule.dev/overrule/test/server"
)

// Whatever order parts of Overrule are removed in, with failurePolicy Fail and no
// server left: the objects that Overrule needs can be written, and a server that
// starts again evaluates writes. Each row leaves the cluster ready for the next
// one.
func TestInstallOrderNeverBlocksWrites(t *testing.T) {
	env.Long(t)
	c := alone(t, env.WithControllerAccounts())
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	gatewayCRDs, err := env.ModuleFolder(t.Context(), "sigs.k8s.io/gateway-api")
	require.NoError(t, err)
	var (
		base = filepath.Join(root, "deploy", "base")
		ours = filepath.Join(root, "deploy", "crds")
		gw   = filepath.Join(gatewayCRDs, "config", "crd", "standard")
		g    = c.prepare(t, "orders")
	)
	kubectl := func(args ...string) func(*testing.T) {
		return func(t *testing.T) { t.Helper(); succeed(t, c.Kubectl(args...)) }
	}
	webhooksGo := func(t *testing.T) {
		t.Helper()
		soon(t, func() bool { return c.registered(t) == "" }, "the webhook configurations stay")
		soon(t, func() bool { return g.apply(limits("name: free", 100)).Code == 0 }, "policies cannot be written")
		succeed(t, g.kubectl("delete", "ratelimitpolicy/free"))
	}
	reapplyBase := func(t *testing.T) {
		t.Helper()
		succeed(t, c.Kubectl("delete", "service/overrule", "-n", server.Namespace, "--ignore-not-found")) // the test's Service has another type
		succeed(t, c.Kubectl("apply", "--server-side", "--force-conflicts", "-k", base))
	}
	saved := ""
	for _, row := range []struct {
		name  string
		steps []func(*testing.T)
	}{
		{"everything is applied twice", []func(*testing.T){reapplyBase, reapplyBase}},
		{"the authority is deleted", []func(*testing.T){kubectl("delete", "secret/overrule-ca", "-n", server.Namespace)}},
		{"its Secrets, Leases and Services are deleted", []func(*testing.T){kubectl("delete", "secrets,leases,services", "--all", "-n", server.Namespace)}},
		{"its rights are removed and restored", []func(*testing.T){
			kubectl("delete", "clusterrolebindings,clusterroles", "overrule", "overrule-webhooks", "overrule-evaluation", "overrule-profiles", "--ignore-not-found"), reapplyBase,
		}},
		{"its CRDs are deleted and recreated", []func(*testing.T){kubectl("delete", "-k", ours), kubectl("apply", "--server-side", "-k", ours)}},
		{"those of Gateway API are deleted and recreated", []func(*testing.T){
			kubectl("delete", "-f", gw, "--ignore-not-found"), kubectl("apply", "--server-side", "-f", gw),
			func(t *testing.T) {
				t.Helper()
				soon(t, func() bool { return c.Kubectl("get", "httproutes,gateways,gatewayclasses").Code == 0 }, "they are not served")
			},
		}},
		{"its namespace is deleted", []func(*testing.T){
			func(t *testing.T) {
				got := c.Kubectl("get", "validatingwebhookconfiguration/overrule", "mutatingwebhookconfiguration/overrule", "-o", "yaml")
				succeed(t, got)
				saved = got.Stdout
			},
			kubectl("delete", "namespace", server.Namespace, "--timeout=2m"), webhooksGo,
		}},
		{"old webhooks are restored from a backup, without a server", []func(*testing.T){
			reapplyBase, kubectl(append([]string{"delete"}, configurations...)...),
			func(t *testing.T) {
				t.Helper()
				require.NotEmpty(t, saved, "the previous row saves them")
				succeed(t, c.KubectlWith(withoutServerFields(saved), "create", "-f", "-"))
			},
			webhooksGo,
		}},
		{"everything is deleted", []func(*testing.T){
			kubectl("delete", "-k", base, "--ignore-not-found", "--timeout=2m"), webhooksGo,
		}},
		{"everything else is deleted before the namespace", []func(*testing.T){
			kubectl("delete", "-k", ours, "--ignore-not-found"), kubectl("delete", "clusterroles,clusterrolebindings", "overrule-webhooks", "--ignore-not-found"),
			kubectl("delete", "namespace", server.Namespace, "--timeout=2m"), webhooksGo,
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, err := server.Boot(t.Context(), c.Env, server.Options{})
			require.NoError(t, err, "the server does not come back")
			if c.Kubectl("get", "gateway/edge", "-n", g.infra).Code != 0 { // deleted with its CRD
				g = c.prepare(t, "orders")
			}
			succeed(t, g.apply(gatewayLimits))
			denied(t, g.apply(limits("name: p", 100)), "ConstraintViolated: ")
			require.NoError(t, s.Stop())
			require.NotZero(t, g.apply(limits("name: p", 20)).Code, "writes are rejected: no server runs")

			for _, step := range row.steps {
				step(t)
			}
		})
	}
}

// withoutServerFields returns a saved list of objects as a backup has it: without
// the fields that the API server sets, but with owner references.
func withoutServerFields(saved string) string {
	var out []string
	for line := range strings.Lines(saved) {
		field := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if indent == 4 && (strings.HasPrefix(field, "uid:") || strings.HasPrefix(field, "resourceVersion:") || strings.HasPrefix(field, "creationTimestamp:")) {
			continue
		}
		out = append(out, line)
	}
	return strings.Join(out, "")
}

// The server writes no files: it works with a full disk.
func TestServerEvaluatesWithReadOnlyDisk(t *testing.T) {
	env.Long(t)
	c := shared(t)
	g := c.prepare(t, "full")
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	site, err := server.Install(t.Context(), c.Env)
	require.NoError(t, err)
	port, err := env.FreePort(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.RouteService(t.Context(), server.Namespace, server.Name, port))
	s, err := process.Start(process.Spec{Path: "/bin/sh", Args: []string{
		"-c", `trap '' XFSZ; ulimit -f 0; if echo full > "$0"; then exit 9; fi; exec "$@"`, filepath.Join(t.TempDir(), "probe"),
		filepath.Join(root, "bin", "overrule"), "--kubeconfig=" + site.Account.Kubeconfig, "--drain-period=0s", fmt.Sprintf("--service-port=%d", port),
		fmt.Sprintf("--webhook-bind-address=127.0.0.1:%d", port), "--peer-bind-address=127.0.0.1:0", "--metrics-bind-address=0", "--health-bind-address=127.0.0.1:0",
	}})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.Stop())
		if t.Failed() {
			t.Log(s.Log())
		}
		c.removeWebhooks(t)
	})
	c.awaitCalled(t)
	succeed(t, g.apply(gatewayLimits))
	denied(t, g.apply(limits("name: p", 100)), "ConstraintViolated: ")
}
