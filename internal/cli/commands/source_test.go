package commands

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

const kubeconfig = `
apiVersion: v1
kind: Config
current-context: here
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts:
- {name: here, context: {cluster: c, user: u, namespace: app}}
- {name: there, context: {cluster: c, user: u}}
`

// runOnCluster runs a command on a cluster with the demo, as a user who is not
// allowed to remove overrides.
func runOnCluster(t *testing.T, args ...string) result {
	t.Helper()
	s := startReviewer(t, false)
	a := &app{reader: reader{connection: connection{list: func(_ context.Context, config *rest.Config) (*snapshot.View, []cache.Problem, error) {
		assert.Equal(t, s.url, config.Host)
		return clusterView(t, nil), []cache.Problem{{Resource: "grpcroutes", Err: errors.New("not served")}}, nil
	}}}}
	return a.exec(t, "", append(args, "--kubeconfig", s.kubeconfig(t))...)
}

// clusterView is the view of a cluster with the demo and Kuadrant's kinds. given are
// kinds with profiles of the cluster.
func clusterView(t *testing.T, given []*policykind.Kind) *snapshot.View {
	t.Helper()
	set, err := manifest.Read([]string{demo + "cluster.yaml", demo + "gateway-policies.yaml", demo + "route-auth.yaml"}, nil)
	require.NoError(t, err)
	kinds := manifest.NewKinds(snapshot.KindsOf(given...))
	v, err := set.View(kinds, "default")
	require.NoError(t, err)
	return v.WithKinds(slices.DeleteFunc(slices.Clone(v.Kinds()), func(k *policykind.Kind) bool {
		return k.Group != "kuadrant.io"
	}))
}

func TestReadCluster(t *testing.T) {
	t.Run("the namespace is the context's", func(t *testing.T) {
		got := runOnCluster(t, "effective", "httproute/toystore", "-o", "json")
		require.Equal(t, exitOK, got.code, got.stderr)
		assert.Len(t, decode[api.EffectivePolicyList](t, got.stdout).Items, 4)
		assert.Equal(t, "warning: read grpcroutes: not served\n", got.stderr)
	})
	t.Run("or that of another context", func(t *testing.T) {
		got := runOnCluster(t, "effective", "httproute/toystore", "--context", "there")
		assert.Equal(t, exitNegative, got.code)
		assert.Contains(t, got.stderr, "HTTPRoute default/toystore not found")
	})
	t.Run("or the given one", func(t *testing.T) {
		got := runOnCluster(t, "outcome", "authpolicy/gw-auth", "-n", "infra")
		assert.Equal(t, exitOK, got.code, got.stderr)
	})
	t.Run("everything is everything", func(t *testing.T) {
		got := runOnCluster(t, "effective", "-o", "json")
		assert.Len(t, decode[api.EffectivePolicyList](t, got.stdout).Outcomes, 3)
	})
	t.Run("a change is evaluated against it", func(t *testing.T) {
		got := runOnCluster(t, "check", "-f", demo+"route-auth-unset.yaml")
		assert.Equal(t, exitNegative, got.code, got.stderr)
		assert.Contains(t, got.stdout, "UnsetOverride")
	})
}

func TestUnreachableCluster(t *testing.T) {
	file := write(t, "config", kubeconfig)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"not reached":           {[]string{"--kubeconfig", file}, "https://127.0.0.1:1"},
		"no kubeconfig":         {[]string{"--kubeconfig", file + "x"}, "read the kubeconfig"},
		"an invalid kubeconfig": {[]string{"--kubeconfig", write(t, "broken", "x: [")}, "read the kubeconfig"},
		"an unknown context":    {[]string{"--kubeconfig", file, "--context", "x"}, `context "x" does not exist`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, command := range [][]string{{"effective"}, {"check", "-f", demo + "route-auth.yaml"}} {
				got := run(t, "", append(command, c.args...)...)
				assert.Equal(t, exitError, got.code)
				assert.Contains(t, got.stderr, c.want)
				assert.Contains(t, got.stderr, "specify manifests with -f or --against")
				assert.Empty(t, got.stdout)
			}
		})
	}
}

const loneNamespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n"

func TestManifestErrorsAreLimited(t *testing.T) {
	for n, more := range map[int]string{21: "", 61: "and 40 more"} {
		got := run(t, strings.Repeat(loneNamespace+"---\n", n), "outcome", "-f", "-")
		assert.Equal(t, exitError, got.code)
		assert.Equal(t, 20, strings.Count(got.stderr, "duplicate object"))
		assert.Equal(t, more != "", strings.Contains(got.stderr, "more"))
		assert.Contains(t, got.stderr, more)
	}
}
