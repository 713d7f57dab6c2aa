package server

import (
	"bytes"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

func TestStoreCollector(t *testing.T) {
	s := snapshot.New("gateways")
	kinds := policykind.BuiltinKinds()
	for _, k := range kinds {
		if k.Group == "kuadrant.io" && (k.Kind == "AuthPolicy" || k.Kind == "RateLimitPolicy") {
			s.AddKind(k)
			s.KindListed(k.Ref())
		}
	}
	auth := api.PolicyKind{Group: "kuadrant.io", Kind: "AuthPolicy"}
	for kind, manifest := range map[string]string{
		"Gateway":   `{"metadata":{"namespace":"infra","name":"edge"},"spec":{"gatewayClassName":"c","listeners":[{"name":"http","protocol":"HTTP","port":80,"allowedRoutes":{"namespaces":{"from":"All"}}}]}}`,
		"HTTPRoute": `{"metadata":{"namespace":"app","name":"r"},"spec":{"parentRefs":[{"namespace":"infra","name":"edge"}],"rules":[{},{}]}}`,
	} {
		o, err := snapshot.Decode(api.PolicyKind{Group: api.GatewayGroup, Kind: kind}, nil, []byte(manifest), 0)
		require.NoError(t, err)
		s.Apply(snapshot.Put(o))
	}
	v, _ := s.View()
	o, err := snapshot.Decode(auth, v.Kind(auth), []byte(`{"metadata":{"namespace":"app","name":"p"},"spec":{
		"targetRef":{"group":"gateway.networking.k8s.io","kind":"HTTPRoute","name":"r","sectionName":"rule-2"},
		"rules":{"authentication":{"a":{}}}}}`), 0)
	require.NoError(t, err)
	s.Apply(snapshot.Put(o))

	want, err := os.ReadFile("testdata/store.prom")
	require.NoError(t, err)
	held := newStoreCollector(s, effective.NewEngine(), logr.Discard())
	names := []string{"overrule_cache_ready", "overrule_objects", "overrule_paths", "overrule_policies"}
	require.NoError(t, testutil.CollectAndCompare(held, bytes.NewReader(want), names...))
	s.Listed("gateways")
	require.NoError(t, testutil.CollectAndCompare(held, bytes.NewReader(bytes.Replace(want, []byte("ready 0"), []byte("ready 1"), 1)), names...))
	problems, err := testutil.CollectAndLint(held)
	require.NoError(t, err)
	assert.Empty(t, problems)
}
