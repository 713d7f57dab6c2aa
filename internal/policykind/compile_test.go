package policykind_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/tables"
)

// profile reads a profile of Paint.example.com in YAML, merged into that of Paint.
func profile(t testing.TB, text string) api.PolicyProfileSpec {
	t.Helper()
	p := api.PolicyProfileSpec{
		Group: "example.com", Kind: "Paint", Class: api.Inherited,
		Targets: api.ProfileTargets{Fields: []string{"targetRef", "targetRefs"}},
	}
	unmarshalStrict(t, text, &p)
	return p
}

// mustCompile compiles a profile in YAML, as profile reads it.
func mustCompile(t testing.TB, text string) *policykind.Kind {
	t.Helper()
	k, err := policykind.Compile(profile(t, text), policykind.Cluster)
	require.NoError(t, err, text)
	return k
}

func TestCompileInvalid(t *testing.T) {
	tests := tables.Read[map[string]struct{ Profile, Want string }](t, "testdata/tables/compile-invalid.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := profile(t, test.Profile)
			k, err := policykind.Compile(p, policykind.Cluster)
			assert.Nil(t, k)
			require.ErrorContains(t, err, api.PolicyKind{Group: p.Group, Kind: p.Kind}.String())
			assert.Equal(t, []string{test.Want}, messages.Fields(t, err))
		})
	}
}

func TestCompileReportsAllErrors(t *testing.T) {
	test := tables.Read[struct {
		Profile json.RawMessage
		Want    []string
	}](t, "testdata/tables/compile-errors.yaml")
	_, err := policykind.Compile(profile(t, string(test.Profile)), policykind.Cluster)
	require.Error(t, err)
	assert.Equal(t, test.Want, messages.Fields(t, err))
}

func TestGroupsOfPolicyKinds(t *testing.T) {
	for _, text := range []string{
		"{group: gateway.networking.k8s.io, kind: BackendTLSPolicy}",
		"{group: policy.networking.k8s.io, kind: AdminNetworkPolicy}",
		"{group: gateway.networking.x-k8s.io, kind: XBackendTrafficPolicy}",
		"{group: kuadrant.io, kind: Gateway}",
	} {
		k := mustCompile(t, text)
		assert.Equal(t, profile(t, text).Group, k.Group)
	}
}

func TestCompileDefaults(t *testing.T) {
	k := mustCompile(t, "{}")
	assert.Equal(t, []api.LevelName{"GatewayClass", "Gateway", "ListenerSet", "Listener", "Route", "Rule"}, k.Levels)
	assert.Equal(t, api.Hierarchical, k.SameTarget)
	assert.Equal(t, api.NamespacesOwn, k.Targets.Namespaces)
	assert.Equal(t, policykind.Cluster, k.Source)
	assert.Empty(t, k.Controls())
	p := spec(t, k, onRoute+"strategy: merge\ndefaults: {a: 1}\nlist: [{name: a}]\n")
	require.NoError(t, p.Invalid)
	assert.Equal(t, []string{"bare atomic", "  defaults=map[a:1]", "  list=[map[name:a]]", "  strategy=merge"}, blocksOf(p), "all is bare, each field a rule")
	assert.Equal(t, 0, p.Rank)
	require.NotNil(t, p.StrategyOnHigher)
	assert.Equal(t, merge.Atomic, *p.StrategyOnHigher, "the closest policy replaces those above it")
	assert.Equal(t, api.None, mustCompile(t, "class: direct").SameTarget)
	assert.Equal(t, api.Collect, mustCompile(t, "{class: direct, sameTarget: collect}").SameTarget)
	assert.Equal(t, api.None, mustCompile(t, "sameTarget: none").SameTarget)

	assert.False(t, k.BindsAllNamespaces())
	assert.False(t, mustCompile(t, "{levels: [Gateway], routeOverridesBind: SameNamespace}").BindsAllNamespaces())
	for _, level := range []string{"RouteNamespace", "Route", "Rule", "Backend"} {
		assert.True(t, mustCompile(t, "{levels: [Gateway, "+level+"], routeOverridesBind: AllNamespaces}").BindsAllNamespaces(), level)
	}

	assert.False(t, mustCompile(t, "levels: [Gateway, Route, Rule, Backend]").RoutesFirst())
	assert.True(t, mustCompile(t, "levels: [Gateway, Backend, Route, Rule]").RoutesFirst())
	assert.Empty(t, profile(t, "{}").Levels, "what is filled in is the kind's own")
	assert.Equal(t, []api.LevelName{"Mesh", "GatewayClass", "GatewayNamespace", "Gateway", "ListenerSet", "Listener", "ServiceNamespace", "Service", "RouteNamespace", "Route", "Rule", "Backend"},
		mustCompile(t, "levels: [Mesh, GatewayClass, GatewayNamespace, Gateway, ListenerSet, Listener, ServiceNamespace, Service, RouteNamespace, Route, Rule, Backend]").Levels, "all of them, from the root to the leaf")
}

func TestMeet(t *testing.T) {
	for same, want := range map[api.SameTarget]merge.SameTarget{
		api.Hierarchical: merge.SameTargetHierarchical, api.OldestWins: merge.SameTargetOldestWins, api.Collect: merge.SameTargetCollect,
		api.None: merge.SameTargetHierarchical, api.FieldConflict: merge.SameTargetHierarchical,
	} {
		assert.Equal(t, want, mustCompile(t, "sameTarget: "+string(same)).MergeSameTarget(), same)
	}
}

func TestHasLevelFor(t *testing.T) {
	gw := func(kind string) api.PolicyKind { return api.PolicyKind{Group: api.GatewayGroup, Kind: kind} }
	service, bucket := api.PolicyKind{Kind: "Service"}, api.PolicyKind{Group: "example.com", Kind: "Bucket"}
	tests := map[string][]api.PolicyKind{
		"Mesh":             {{Kind: "Mesh"}},
		"GatewayClass":     {gw("GatewayClass")},
		"GatewayNamespace": {{Kind: "Namespace"}},
		"Gateway":          {gw("Gateway")},
		"ListenerSet":      {gw("ListenerSet")},
		"Listener":         {gw("Gateway"), gw("ListenerSet")},
		"ServiceNamespace": {{Kind: "Namespace"}},
		"Service":          {service},
		"RouteNamespace":   {{Kind: "Namespace"}},
		"Route":            {gw("HTTPRoute"), gw("UDPRoute")},
		"Rule":             {gw("HTTPRoute"), gw("UDPRoute")},
		"Backend":          {service, bucket},
	}
	all := []api.PolicyKind{
		gw("GatewayClass"), gw("Gateway"), gw("ListenerSet"), gw("HTTPRoute"), gw("UDPRoute"),
		{Kind: "Namespace"}, {Kind: "Mesh"}, service, bucket,
	}
	for level, want := range tests {
		k := mustCompile(t, "levels: ["+level+"]")
		var on []api.PolicyKind
		for _, kind := range all {
			if k.HasLevelFor(kind) {
				on = append(on, kind)
			}
		}
		assert.ElementsMatch(t, want, on, level)
	}
}
