package policykind_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
	"overrule.dev/overrule/test/messages"
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
	const patch = "strategy: {allowed: [patch]}\n"
	tests := map[string]struct{ profile, want string }{
		"no kind":                      {"kind: ''", `spec.kind: Required value`},
		"a core group":                 {"{group: '', kind: Pod}", `spec.group: Invalid value: ""`},
		"a group without a dot":        {"{group: apps, kind: Deployment}", `spec.group: Invalid value: "apps"`},
		"a group of Kubernetes":        {"{group: networking.k8s.io, kind: NetworkPolicy}", `spec.group: Invalid value: "networking.k8s.io"`},
		"another one":                  {"{group: rbac.authorization.k8s.io, kind: ClusterRole}", `spec.group: Invalid value: "rbac.authorization.k8s.io"`},
		"a gateway":                    {"{group: gateway.networking.k8s.io, kind: Gateway}", `spec.kind: Invalid value: "Gateway"`},
		"a route":                      {"{group: gateway.networking.k8s.io, kind: HTTPRoute}", `spec.kind: Invalid value: "HTTPRoute"`},
		"an unknown level":             {"levels: [Gateway, Pod]", `spec.levels[1]: Unsupported value: "Pod"`},
		"a level twice":                {"levels: [Gateway, Route, Route]", `spec.levels[2]: Duplicate value: "Route"`},
		"a level twice, not in a row":  {"levels: [Gateway, Route, Gateway]", `spec.levels[2]: Duplicate value: "Gateway"`},
		"levels out of order":          {"levels: [Route, Gateway]", `spec.levels[1]: Invalid value: "Gateway"`},
		"a class":                      {"class: both", `spec.class: Unsupported value: "both"`},
		"no class":                     {"class: ''", `spec.class: Unsupported value: ""`},
		"a sameTarget":                 {"sameTarget: newest", `spec.sameTarget: Unsupported value: "newest"`},
		"a direct kind with defaults":  {"{class: direct, blocks: {defaults: [d]}}", `spec.blocks: Forbidden`},
		"a direct kind with overrides": {"{class: direct, blocks: {overrides: [d]}}", `spec.blocks: Forbidden`},
		"no targets":                   {"targets: {fields: []}", `spec.targets: Required value`},
		"nothing but workloads":        {"targets: {fields: [], workloads: [selector]}", `spec.targets: Required value`},
		"a leave":                      {"targets: {namespaces: any}", `spec.targets.namespaces: Unsupported value: "any"`},
		"a target kind without a kind": {"targets: {kinds: [{group: '', kind: Service}, {group: x.com, kind: ''}]}", `spec.targets.kinds[1].kind: Required value`},
		"the meaning of a section":     {"targets: {kinds: [{group: '', kind: Service, section: Port}]}", `spec.targets.kinds[0].section: Unsupported value: "Port"`},
		"a strategy":                   {"strategy: {allowed: [merge, deep]}", `spec.strategy.allowed[1]: Unsupported value: "deep"`},
		"a spelling of no strategy":    {"strategy: {allowed: [merge], spellings: {Deep: deep}}", `spec.strategy.spellings[Deep]: Unsupported value: "deep"`},
		"a spelling of one not there":  {"strategy: {allowed: [merge], spellings: {Whole: atomic}}", `spec.strategy.spellings[Whole]: Invalid value: "atomic"`},
		"who dictates":                 {"strategy: {by: both}", `spec.strategy.by: Unsupported value: "both"`},
		"an annotation without a name": {"strategy: {annotation: {name: '', values: {}}}", `spec.strategy.annotation.name: Required value`},
		"an annotation's strategy":     {"strategy: {annotation: {name: a/b, values: {Deep: {strategy: deep}}}}", `spec.strategy.annotation.values[Deep].strategy: Unsupported value: "deep"`},
		"a content":                    {"content: a..b", `spec.content: Invalid value: "a..b"`},
		"a content of many places":     {"content: a.*", `spec.content: Invalid value: "a.*"`},
		"a target field":               {"targets: {fields: [targetRef, '']}", `spec.targets.fields[1]: Invalid value: ""`},
		"a target field of many":       {"targets: {fields: ['refs.*']}", `spec.targets.fields[0]: Invalid value: "refs.*"`},
		"a selector field":             {"targets: {selectors: ['a b']}", `spec.targets.selectors[0]: Invalid value: "a b"`},
		"a workload field":             {"targets: {workloads: [.a]}", `spec.targets.workloads[0]: Invalid value: ".a"`},
		"an unset field":               {"unset: [a, 'b*']", `spec.unset[1]: Invalid value: "b*"`},
		"what to ignore":               {"ignore: ['a.']", `spec.ignore[0]: Invalid value: "a."`},
		"what to ignore in many":       {"ignore: ['*.note']", `spec.ignore[0]: Invalid value: "*.note"`},
		"the field of bare rules":      {"blocks: {bare: {field: '', overrides: [x]}}", `spec.blocks.bare.field: Invalid value: ""`},
		"a block that is a target":     {"blocks: {defaults: [targetRef]}", `spec.blocks.defaults[0]: Invalid value: "targetRef"`},
		"a block that is a selector":   {"{targets: {selectors: [s]}, blocks: {overrides: [s]}}", `spec.blocks.overrides[0]: Invalid value: "s"`},
		"a block that is an unset":     {"{unset: [u], blocks: {overrides: [u]}}", `spec.blocks.overrides[0]: Invalid value: "u"`},
		"a block that is both":         {"blocks: {defaults: [b], overrides: [b]}", `spec.blocks.overrides[0]: Invalid value: "b"`},
		"a block that lies deeper":     {"blocks: {defaults: [policy.defaults]}", `spec.blocks.defaults[0]: Invalid value: "policy.defaults"`},
		"a condition that does":        {"blocks: {when: a.b}", `spec.blocks.when: Invalid value: "a.b"`},
		"a strategy's field that does": {"strategy: {field: a.b}", `spec.strategy.field: Invalid value: "a.b"`},
		"a bare field that does":       {"strategy: {bareField: '*'}", `spec.strategy.bareField: Invalid value: "*"`},
		"a rule":                       {"rules: [a.*, 'b..c']", `spec.rules[1]: Invalid value: "b..c"`},
		"a whole map":                  {patch + "whole: ['']", `spec.whole[0]: Invalid value: ""`},
		"a gate":                       {"gates: ['a b']", `spec.gates[0]: Invalid value: "a b"`},
		"an alternative":               {"alternatives: ['a b']", `spec.alternatives[0]: Invalid value: "a b"`},
		"a list without a key":         {patch + "lists: [{path: a, key: ''}]", `spec.lists[0].key: Required value`},
		"a list without a path":        {patch + "lists: [{path: '', key: name}]", `spec.lists[0].path: Invalid value: ""`},
		"lists without patch":          {"lists: [{path: a, key: name}]", `spec.lists: Forbidden`},
		"whole maps without patch":     {"whole: [a]", `spec.whole: Forbidden`},
		"rules with patch":             {patch + "rules: [a.*]", `spec.rules: Forbidden`},
		"an order of nothing":          {"order: {default: '1'}", `spec.order: Required value`},
		"an order of two":              {"order: {field: a, annotation: b}", `spec.order.annotation: Forbidden`},
		"an order's field":             {"order: {field: 'a b'}", `spec.order.field: Invalid value: "a b"`},
		"a default that is no number":  {"order: {field: a, default: first}", `spec.order.default: Invalid value: "first"`},
		"a default that is no value":   {"order: {field: a, values: [first, last], default: next}", `spec.order.default: Unsupported value: "next"`},
		"an order's field of many":     {"order: {field: '*.priority'}", `spec.order.field: Invalid value: "*.priority"`},
		"a second key of nothing":      {"order: {field: a, then: {}}", `spec.order.then: Required value`},
		"a second key's default":       {"order: {field: a, then: {field: b, values: [first, last], default: next}}", `spec.order.then.default: Unsupported value: "next"`},
		"an order across levels":       {"order: {field: a, acrossLevels: true}", `spec.order.acrossLevels: Forbidden`},
		"a field's rule":               {"fields: [{rule: '', route: spec.rules}]", `spec.fields[0].rule: Invalid value: ""`},
		"a field's route":              {"fields: [{rule: a, route: 'spec..x'}]", `spec.fields[0].route: Invalid value: "spec..x"`},
		"a field's item":               {"fields: [{rule: a, route: 'spec.rules[0].x'}]", `spec.fields[0].route: Invalid value: "spec.rules[0].x"`},
		"a field not below spec":       {"fields: [{rule: a, route: metadata.name}]", `spec.fields[0].route: Invalid value: "metadata.name"`},
		"a field that is the spec":     {"fields: [{rule: a, route: spec}]", `spec.fields[0].route: Invalid value: "spec"`},
		"a spec that is a list":        {"fields: [{rule: a, route: 'spec[*].x'}]", `spec.fields[0].route: Invalid value: "spec[*].x"`},
		"a field that is an item":      {"fields: [{rule: a, route: 'spec.rules[*].filters[*]'}]", `spec.fields[0].route: Invalid value: "spec.rules[*].filters[*]"`},
		"fields of two lists":          {"fields: [{rule: a, route: 'spec.rules[*].filters[*].x'}, {rule: b, route: 'spec.rules[*].backendRefs[*].x'}]", `spec.fields: Forbidden`},
		"fields of a list and a rule":  {"fields: [{rule: a, route: 'spec.rules[*].filters[*].x'}, {rule: b, route: 'spec.rules[*].x'}]", `spec.fields: Forbidden`},
		"fields without the rule":      {"{levels: [Gateway, Route], fields: [{rule: a, route: spec.hostnames}]}", `spec.fields: Forbidden`},
		"a field of all rules":         {"fields: [{rule: a, route: spec.rules.timeouts.request}]", `spec.fields[0].route: Invalid value: "spec.rules.timeouts.request"`},
		"whom overrides bind":          {"routeOverridesBind: All", `spec.routeOverridesBind: Unsupported value: "All"`},
		"overrides of no routes":       {"{levels: [Gateway, Listener], routeOverridesBind: AllNamespaces}", `spec.routeOverridesBind: Forbidden`},
		"a blast radius below zero":    {"blastRadius: -1", "spec.blastRadius: Invalid value: -1"},
		"a reason that is none":        {"actions: {Overriden: Deny}", `spec.actions: Unsupported value: "Overriden"`},
		"a reason that cannot change":  {"actions: {TooMuch: Warn}", `spec.actions: Unsupported value: "TooMuch"`},
		"an action":                    {"actions: {Overridden: Refuse}", `spec.actions[Overridden]: Unsupported value: "Refuse"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := profile(t, test.profile)
			k, err := policykind.Compile(p, policykind.Cluster)
			assert.Nil(t, k)
			require.ErrorContains(t, err, api.PolicyKind{Group: p.Group, Kind: p.Kind}.String())
			assert.Equal(t, []string{test.want}, messages.Fields(t, err))
		})
	}
}

func TestCompileReportsAllErrors(t *testing.T) {
	_, err := policykind.Compile(profile(t, `
group: apps
class: both
levels: [Route, Gateway, Gateway, Pod]
targets: {fields: [], namespaces: any}
strategy: {allowed: [deep], by: both}
content: a..b
rules: ['c..d', '']
lists: [{path: x, key: ''}]
order: {}
fields: [{rule: '', route: spec.x}, {rule: a, route: x}]
actions: {Overridden: Refuse, Conflicted: Refuse}
`), policykind.Cluster)
	require.Error(t, err)
	assert.Equal(t, []string{
		`spec.group: Invalid value: "apps"`,
		`spec.levels[1]: Invalid value: "Gateway"`,
		`spec.levels[2]: Duplicate value: "Gateway"`,
		`spec.levels[3]: Unsupported value: "Pod"`,
		`spec.class: Unsupported value: "both"`,
		`spec.targets: Required value`,
		`spec.targets.namespaces: Unsupported value: "any"`,
		`spec.strategy.allowed[0]: Unsupported value: "deep"`,
		`spec.strategy.by: Unsupported value: "both"`,
		`spec.content: Invalid value: "a..b"`,
		`spec.rules[0]: Invalid value: "c..d"`,
		`spec.rules[1]: Invalid value: ""`,
		`spec.lists[0].key: Required value`,
		`spec.lists: Forbidden`,
		`spec.order: Required value`,
		`spec.fields[0].rule: Invalid value: ""`,
		`spec.fields[1].route: Invalid value: "x"`,
		`spec.actions[Conflicted]: Unsupported value: "Refuse"`,
		`spec.actions[Overridden]: Unsupported value: "Refuse"`,
	}, messages.Fields(t, err))
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
	assert.Nil(t, k.Reading(map[string]string{"a": "b"}))
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
