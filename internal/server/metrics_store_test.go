package server

import (
	"strings"
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

	const want = `
# HELP overrule_cache_ready 1 once all kinds are listed.
# TYPE overrule_cache_ready gauge
overrule_cache_ready 0
# HELP overrule_objects Gateways, listener sets and routes in the cache, by kind.
# TYPE overrule_objects gauge
overrule_objects{kind="GRPCRoute"} 0
overrule_objects{kind="Gateway"} 1
overrule_objects{kind="HTTPRoute"} 1
overrule_objects{kind="ListenerSet"} 0
overrule_objects{kind="TCPRoute"} 0
overrule_objects{kind="TLSRoute"} 0
overrule_objects{kind="UDPRoute"} 0
overrule_objects{kind="XListenerSet"} 0
# HELP overrule_paths Paths by policy kind and state of the policies on them: Enforced, PartiallyEnforced, Inactive, or none without a policy.
# TYPE overrule_paths gauge
overrule_paths{policy_kind="AuthPolicy.kuadrant.io",state="Enforced"} 1
overrule_paths{policy_kind="AuthPolicy.kuadrant.io",state="Inactive"} 0
overrule_paths{policy_kind="AuthPolicy.kuadrant.io",state="PartiallyEnforced"} 0
overrule_paths{policy_kind="AuthPolicy.kuadrant.io",state="none"} 1
overrule_paths{policy_kind="RateLimitPolicy.kuadrant.io",state="Enforced"} 0
overrule_paths{policy_kind="RateLimitPolicy.kuadrant.io",state="Inactive"} 0
overrule_paths{policy_kind="RateLimitPolicy.kuadrant.io",state="PartiallyEnforced"} 0
overrule_paths{policy_kind="RateLimitPolicy.kuadrant.io",state="none"} 2
# HELP overrule_policies Policies in the cache, by kind.
# TYPE overrule_policies gauge
overrule_policies{kind="AuthPolicy.kuadrant.io"} 1
overrule_policies{kind="RateLimitPolicy.kuadrant.io"} 0
`
	held := newStoreCollector(s, effective.NewEngine(), logr.Discard())
	names := []string{"overrule_cache_ready", "overrule_objects", "overrule_paths", "overrule_policies"}
	require.NoError(t, testutil.CollectAndCompare(held, strings.NewReader(want[1:]), names...))
	s.Listed("gateways")
	require.NoError(t, testutil.CollectAndCompare(held, strings.NewReader(strings.Replace(want[1:], "ready 0", "ready 1", 1)), names...))
	problems, err := testutil.CollectAndLint(held)
	require.NoError(t, err)
	assert.Empty(t, problems)
}
