//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

// requireWritable requires that every object that a cluster needs to start
// Overrule can be created, changed and deleted.
func (c *cluster) requireWritable(t *testing.T) {
	t.Helper()
	others := fmt.Sprintf("others-%d", time.Now().UnixNano()) // does not wait for the deletion of the last one
	once, err := os.ReadFile("testdata/bootstrap.yaml")
	require.NoError(t, err)
	each, err := os.ReadFile("testdata/bootstrap-namespaced.yaml")
	require.NoError(t, err)
	all := strings.ReplaceAll(string(once), "OTHERS", others)
	for _, namespace := range []string{server.Namespace, "kube-system", others} {
		all += "---\n" + strings.ReplaceAll(string(each), "NAMESPACE", namespace)
	}
	succeed(t, c.Apply(all))
	succeed(t, c.KubectlWith(all, "label", "-f", "-", "changed=yes"))
	// The deletion of the namespace, which is first, may be faster.
	succeed(t, c.KubectlWith(all, "delete", "-f", "-", "--wait=false", "--ignore-not-found"))
}

// requireCallFailed requires that a write failed because no server answers, and
// that the message names the webhook and its Service.
func requireCallFailed(t *testing.T, got env.Result) {
	t.Helper()
	require.Equal(t, 1, got.Code, got.Stdout+got.Stderr)
	assert.Regexp(t, `failed calling webhook "(mutate|validate)\.overrule\.dev"`, got.Stderr)
	assert.Contains(t, got.Stderr, "https://overrule.overrule-system.svc:", "the message names the Service")
}

// requireEvaluated requires that writes are evaluated: the gateway's limits are
// enforced.
func requireEvaluated(t *testing.T, g testNamespaces) {
	t.Helper()
	soon(t, func() bool { return g.apply(gatewayLimits).Code == 0 }, "a policy cannot be written")
	denied(t, g.apply(limits("name: p", 100)), "ConstraintViolated: ")
	succeed(t, g.apply(limits("name: p", 20)))
}

// awaitEvaluated is requireEvaluated for servers that have yet to observe a
// change.
func awaitEvaluated(t *testing.T, g testNamespaces) {
	t.Helper()
	soon(t, func() bool {
		return g.apply(gatewayLimits).Code == 0 && strings.Contains(g.apply(limits("name: p", 100)).Stderr, "ConstraintViolated: ")
	}, "writes are not evaluated")
	requireEvaluated(t, g)
}

// requireRunning requires that a server has not exited.
func requireRunning(t *testing.T, s *server.Server) {
	t.Helper()
	select {
	case <-s.Done():
		t.Fatalf("the server exited: %s", s.Tail())
	default:
	}
}

// folders returns the folders of the installed manifests.
func folders(t *testing.T) (base, ours, gw string) {
	t.Helper()
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	module, err := env.ModuleFolder(t.Context(), "sigs.k8s.io/gateway-api")
	require.NoError(t, err)
	return filepath.Join(root, "deploy", "base"), filepath.Join(root, "deploy", "crds"), filepath.Join(module, "config", "crd", "standard")
}
