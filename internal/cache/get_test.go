package cache

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

func unreachable(t *testing.T) *Watcher {
	t.Helper()
	w, err := New(&rest.Config{Host: "http://127.0.0.1:1"}, snapshot.New(Sources...), Options{})
	require.NoError(t, err)
	return w
}

func TestLiveIgnoresInvalidNames(t *testing.T) {
	w := unreachable(t)
	for sentence, ref := range map[string]api.Ref{
		"no name":                        {Group: api.GatewayGroup, Kind: "Gateway", Namespace: "infra"},
		"a name with path elements":      {Group: api.GatewayGroup, Kind: "Gateway", Namespace: "infra", Name: ".."},
		"a namespace with path elements": {Group: api.GatewayGroup, Kind: "Gateway", Namespace: "a/b", Name: "edge"},
		"a kind that is not read":        {Kind: "Pod", Namespace: "infra", Name: "edge"},
		"a kind of another group":        {Group: "example.com", Kind: "Gateway", Namespace: "infra", Name: "edge"},
	} {
		t.Run(sentence, func(t *testing.T) {
			o, err := w.ReadLive(t.Context(), ref)
			require.NoError(t, err)
			assert.Nil(t, o)
		})
	}
}

func TestLiveReturnsReadErrors(t *testing.T) {
	_, err := unreachable(t).ReadLive(t.Context(), api.Ref{Group: api.GatewayGroup, Kind: "Gateway", Namespace: "infra", Name: "edge"})
	require.ErrorContains(t, err, "read Gateway infra/edge ")
}

func TestListUnreachableCluster(t *testing.T) {
	_, _, err := List(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"})
	require.ErrorContains(t, err, "http://127.0.0.1:1: ")
	require.ErrorContains(t, err, "; check the kubeconfig and its current context")
	assert.Equal(t, 1, strings.Count(err.Error(), "refused"), err)
}

func TestInvalidConfigIsAnError(t *testing.T) {
	wrong := &rest.Config{Host: "https://example.com", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("x"), Insecure: true}}
	_, err := New(wrong, snapshot.New(), Options{})
	require.ErrorContains(t, err, "create client for https://example.com: ")
	_, _, err = List(t.Context(), wrong)
	require.ErrorContains(t, err, "create client for https://example.com: ")
}

func TestNeedLeaderElection(t *testing.T) {
	assert.False(t, unreachable(t).NeedLeaderElection())
}

func TestStored(t *testing.T) {
	r := newTestRegistry(t)
	c, err := newClients(&rest.Config{Host: "http://127.0.0.1:1"}, 0)
	require.NoError(t, err)
	w := &Watcher{clients: c, registry: r.registry}
	r.replace(r.definitionsOf(colorCRD))
	r.list(colorCRD.obj().Name)
	v, _ := r.store.View()
	kind := v.Kind(colorRef)
	ref := api.Ref{Group: colorRef.Group, Kind: colorRef.Kind, Namespace: "app", Name: "p"}
	_, err = w.Stored(t.Context(), kind, ref)
	require.ErrorContains(t, err, "read "+ref.String()+" ")

	other := ref
	other.Name = ".."
	o, err := w.Stored(t.Context(), kind, other)
	require.NoError(t, err)
	assert.Nil(t, o)
	other = ref
	other.Kind = "Pod"
	o, err = w.Stored(t.Context(), kind, other)
	require.NoError(t, err)
	assert.Nil(t, o)
}
