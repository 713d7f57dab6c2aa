package policykind_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// profile reads a profile of Paint.example.com in YAML; what it says stands
// beside, or in place of, what Paint has.
func profile(t testing.TB, text string) api.PolicyProfileSpec {
	t.Helper()
	p := api.PolicyProfileSpec{
		Group: "example.com", Kind: "Paint", Class: api.Inherited,
		Targets: api.ProfileTargets{Fields: []string{"targetRef", "targetRefs"}},
	}
	into(t, text, &p)
	return p
}

// made compiles a profile as profile reads it.
func made(t testing.TB, text string) *policykind.Kind {
	t.Helper()
	k, err := policykind.Compile(profile(t, text), policykind.Cluster)
	require.NoError(t, err, text)
	return k
}

func TestProfilesThatMakeNoSense(t *testing.T) {
	const patch = "strategy: {allowed: [patch]}\n"
	tests := map[string]struct{ profile, want string }{
		"no kind":                      {"kind: ''", `kind is missing`},
		"a core group":                 {"{group: '', kind: Pod}", `group "" is one of Kubernetes' own: a profile is for the kinds of a CustomResourceDefinition`},
		"a group without a dot":        {"{group: apps, kind: Deployment}", `group "apps" is one of Kubernetes' own: a profile is for the kinds of a CustomResourceDefinition`},
		"a group of Kubernetes":        {"{group: networking.k8s.io, kind: NetworkPolicy}", `group "networking.k8s.io" is one of Kubernetes' own: a profile is for the kinds of a CustomResourceDefinition`},
		"another one":                  {"{group: rbac.authorization.k8s.io, kind: ClusterRole}", `group "rbac.authorization.k8s.io" is one of Kubernetes' own: a profile is for the kinds of a CustomResourceDefinition`},
		"a gateway":                    {"{group: gateway.networking.k8s.io, kind: Gateway}", `kind Gateway of gateway.networking.k8s.io is one that policies are attached to: a profile is for policy kinds`},
		"a route":                      {"{group: gateway.networking.k8s.io, kind: HTTPRoute}", `kind HTTPRoute of gateway.networking.k8s.io is one that policies are attached to: a profile is for policy kinds`},
		"an unknown level":             {"levels: [Gateway, Pod]", `levels: "Pod" is none of Mesh, GatewayClass, GatewayNamespace, Gateway, ListenerSet, Listener, ServiceNamespace, Service, RouteNamespace, Route, Rule, Backend`},
		"a level twice":                {"levels: [Gateway, Route, Route]", `levels: Route stands twice: name each once`},
		"a level twice, not in a row":  {"levels: [Gateway, Route, Gateway]", `levels: Gateway stands twice: name each once`},
		"levels out of order":          {"levels: [Route, Gateway]", `levels: Gateway stands below Route: name them from the root to the leaf`},
		"a class":                      {"class: both", `class "both" is none of inherited, direct`},
		"no class":                     {"class: ''", `class "" is none of inherited, direct`},
		"a sameTarget":                 {"sameTarget: newest", `sameTarget "newest" is none of hierarchical, oldestWins, none, fieldConflict, collect`},
		"a direct kind with defaults":  {"{class: direct, blocks: {defaults: [d]}}", `blocks: a direct kind has no defaults and overrides: set class to inherited, or leave them out`},
		"a direct kind with overrides": {"{class: direct, blocks: {overrides: [d]}}", `blocks: a direct kind has no defaults and overrides: set class to inherited, or leave them out`},
		"no targets":                   {"targets: {fields: []}", `targets: name the fields of spec that hold the target, in fields or selectors`},
		"nothing but workloads":        {"targets: {fields: [], workloads: [selector]}", `targets: name the fields of spec that hold the target, in fields or selectors`},
		"a leave":                      {"targets: {namespaces: any}", `targets.namespaces "any" is none of own, referenceGrant, consumer, free`},
		"a target kind without a kind": {"targets: {kinds: [{group: '', kind: Service}, {group: x.com, kind: ''}]}", `targets.kinds[1]: kind is missing`},
		"the meaning of a section":     {"targets: {kinds: [{group: '', kind: Service, section: Port}]}", `targets.kinds[0].section "Port" is none of None, Listener, Rule, PortName, PortNumber`},
		"a strategy":                   {"strategy: {allowed: [merge, deep]}", `strategy.allowed: strategy "deep" is none of atomic, merge, patch`},
		"a spelling of no strategy":    {"strategy: {allowed: [merge], spellings: {Deep: deep}}", `strategy.spellings.Deep: strategy "deep" is none of atomic, merge, patch`},
		"a spelling of one not there":  {"strategy: {allowed: [merge], spellings: {Whole: atomic}}", `strategy.spellings.Whole: atomic is not among strategy.allowed`},
		"who dictates":                 {"strategy: {by: both}", `strategy.by "both" is none of higher, lower`},
		"an annotation without a name": {"strategy: {annotation: {name: '', values: {}}}", `strategy.annotation: name is missing`},
		"an annotation's strategy":     {"strategy: {annotation: {name: a/b, values: {Deep: {strategy: deep}}}}", `strategy.annotation.values.Deep: strategy "deep" is none of atomic, merge, patch`},
		"a content":                    {"content: a..b", `content: address "a..b" cannot be read: write it like rules.authentication.*`},
		"a content of many places":     {"content: a.*", `content: address "a.*" stands for many places: name one, without *`},
		"a target field":               {"targets: {fields: [targetRef, '']}", `targets.fields[1]: address "" cannot be read: write it like rules.authentication.*`},
		"a target field of many":       {"targets: {fields: ['refs.*']}", `targets.fields[0]: address "refs.*" stands for many places: name one, without *`},
		"a selector field":             {"targets: {selectors: ['a b']}", `targets.selectors[0]: address "a b" cannot be read: write it like rules.authentication.*`},
		"a workload field":             {"targets: {workloads: [.a]}", `targets.workloads[0]: address ".a" cannot be read: write it like rules.authentication.*`},
		"an unset field":               {"unset: [a, 'b*']", `unset[1]: address "b*" cannot be read: write it like rules.authentication.*`},
		"what to ignore":               {"ignore: ['a.']", `ignore[0]: address "a." cannot be read: write it like rules.authentication.*`},
		"what to ignore in many":       {"ignore: ['*.note']", `ignore[0]: address "*.note" stands for many places: name one, without *`},
		"the field of bare rules":      {"blocks: {bare: {field: '', overrides: [x]}}", `blocks.bare.field: address "" cannot be read: write it like rules.authentication.*`},
		"a block that is a target":     {"blocks: {defaults: [targetRef]}", `blocks: "targetRef" is named as a block and as something else: name each field once`},
		"a block that is a selector":   {"{targets: {selectors: [s]}, blocks: {overrides: [s]}}", `blocks: "s" is named as a block and as something else: name each field once`},
		"a block that is an unset":     {"{unset: [u], blocks: {overrides: [u]}}", `blocks: "u" is named as a block and as something else: name each field once`},
		"a block that is both":         {"blocks: {defaults: [b], overrides: [b]}", `blocks: "b" is named as a block and as something else: name each field once`},
		"a block that lies deeper":     {"blocks: {defaults: [policy.defaults]}", `blocks: "policy.defaults" is no name of a field: what is deeper is named in content`},
		"a condition that does":        {"blocks: {when: a.b}", `blocks.when: "a.b" is no name of a field: what is deeper is named in content`},
		"a strategy's field that does": {"strategy: {field: a.b}", `strategy.field: "a.b" is no name of a field: what is deeper is named in content`},
		"a bare field that does":       {"strategy: {bareField: '*'}", `strategy.bareField: "*" is no name of a field: what is deeper is named in content`},
		"a rule":                       {"rules: [a.*, 'b..c']", `rules[1]: address "b..c" cannot be read: write it like rules.authentication.*`},
		"a whole map":                  {patch + "whole: ['']", `whole[0]: address "" cannot be read: write it like rules.authentication.*`},
		"a gate":                       {"gates: ['a b']", `gates[0]: address "a b" cannot be read: write it like rules.authentication.*`},
		"an alternative":               {"alternatives: ['a b']", `alternatives[0]: address "a b" cannot be read: write it like rules.authentication.*`},
		"a list without a key":         {patch + "lists: [{path: a, key: ''}]", `lists[0]: key is missing`},
		"a list without a path":        {patch + "lists: [{path: '', key: name}]", `lists[0].path: address "" cannot be read: write it like rules.authentication.*`},
		"lists without patch":          {"lists: [{path: a, key: name}]", `lists and whole are for kinds whose strategy.allowed has patch`},
		"whole maps without patch":     {"whole: [a]", `lists and whole are for kinds whose strategy.allowed has patch`},
		"rules with patch":             {patch + "rules: [a.*]", `rules are the leaves in a kind that allows patch: leave rules out, or patch`},
		"an order of nothing":          {"order: {default: '1'}", `order: set one of field and annotation`},
		"an order of two":              {"order: {field: a, annotation: b}", `order: set one of field and annotation`},
		"an order's field":             {"order: {field: 'a b'}", `order.field: address "a b" cannot be read: write it like rules.authentication.*`},
		"a default that is no number":  {"order: {field: a, default: first}", `order.default: "first" is no whole number of 32 bits`},
		"a default that is no value":   {"order: {field: a, values: [first, last], default: next}", `order.default: "next" is none of first, last`},
		"an order's field of many":     {"order: {field: '*.priority'}", `order.field: address "*.priority" stands for many places: name one, without *`},
		"a second key of nothing":      {"order: {field: a, then: {}}", `order.then: set one of field and annotation`},
		"a second key's default":       {"order: {field: a, then: {field: b, values: [first, last], default: next}}", `order.then.default: "next" is none of first, last`},
		"an order across levels":       {"order: {field: a, acrossLevels: true}", `order.acrossLevels is for kinds whose sameTarget is collect`},
		"a field's rule":               {"fields: [{rule: '', route: spec.rules}]", `fields[0].rule: a rule key cannot be empty`},
		"a field's route":              {"fields: [{rule: a, route: 'spec..x'}]", `fields[0].route: address "spec..x" cannot be read: write it like spec.rules[*].timeouts.request`},
		"a field's item":               {"fields: [{rule: a, route: 'spec.rules[0].x'}]", `fields[0].route: address "spec.rules[0].x" cannot be read: write it like spec.rules[*].timeouts.request`},
		"a field not below spec":       {"fields: [{rule: a, route: metadata.name}]", `fields[0].route: address "metadata.name" is not below spec: write it like spec.rules[*].timeouts.request`},
		"a field that is the spec":     {"fields: [{rule: a, route: spec}]", `fields[0].route: address "spec" is not below spec: write it like spec.rules[*].timeouts.request`},
		"a spec that is a list":        {"fields: [{rule: a, route: 'spec[*].x'}]", `fields[0].route: address "spec[*].x" is not below spec: write it like spec.rules[*].timeouts.request`},
		"a field that is an item":      {"fields: [{rule: a, route: 'spec.rules[*].filters[*]'}]", `fields[0].route: address "spec.rules[*].filters[*]" ends with a list's items: name the list, which is one value, or a field of its items`},
		"fields of two lists":          {"fields: [{rule: a, route: 'spec.rules[*].filters[*].x'}, {rule: b, route: 'spec.rules[*].backendRefs[*].x'}]", `fields: all have to be in the items of one list of a rule, or in none`},
		"fields of a list and a rule":  {"fields: [{rule: a, route: 'spec.rules[*].filters[*].x'}, {rule: b, route: 'spec.rules[*].x'}]", `fields: all have to be in the items of one list of a rule, or in none`},
		"fields without the rule":      {"{levels: [Gateway, Route], fields: [{rule: a, route: spec.hostnames}]}", `fields: add Rule to levels: the routes' own values are there`},
		"a field of all rules":         {"fields: [{rule: a, route: spec.rules.timeouts.request}]", `fields[0].route: address "spec.rules.timeouts.request": spec.rules is a list: write spec.rules[*], the rule of the path`},
		"a blast radius below zero":    {"blastRadius: -1", "blastRadius: -1 is negative: write a number of paths, 0 for no limit"},
		"a reason that is none":        {"actions: {Overriden: Deny}", `actions: reason "Overriden" is none of Invalid, TargetNotFound, NoPath, Conflicted, UnsetOverride, ConstraintViolated, Overridden, BlastRadius, ConditionSkipped, OverrideRemoved, OverrideEvaded, OverrideWeakened, EffectiveInvalid, TriggerUnmatched, LimitShadowed, LimitWidened`},
		"a reason that cannot change":  {"actions: {TooMuch: Warn}", `actions: reason "TooMuch" is none of Invalid, TargetNotFound, NoPath, Conflicted, UnsetOverride, ConstraintViolated, Overridden, BlastRadius, ConditionSkipped, OverrideRemoved, OverrideEvaded, OverrideWeakened, EffectiveInvalid, TriggerUnmatched, LimitShadowed, LimitWidened`},
		"an action":                    {"actions: {Overridden: Refuse}", `actions.Overridden "Refuse" is none of Deny, Warn, Audit`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := profile(t, test.profile)
			k, err := policykind.Compile(p, policykind.Cluster)
			assert.Nil(t, k)
			require.EqualError(t, err, "profile of "+api.PolicyKind{Group: p.Group, Kind: p.Kind}.String()+": "+test.want)
		})
	}
}

// Who mends a profile wants to know all at once.
func TestAllFaultsOfAProfileAreTold(t *testing.T) {
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
		`profile of Paint.apps: group "apps" is one of Kubernetes' own: a profile is for the kinds of a CustomResourceDefinition`,
		`levels: Gateway stands below Route: name them from the root to the leaf`,
		`levels: Gateway stands twice: name each once`,
		`levels: "Pod" is none of Mesh, GatewayClass, GatewayNamespace, Gateway, ListenerSet, Listener, ServiceNamespace, Service, RouteNamespace, Route, Rule, Backend`,
		`class "both" is none of inherited, direct`,
		`targets: name the fields of spec that hold the target, in fields or selectors`,
		`targets.namespaces "any" is none of own, referenceGrant, consumer, free`,
		`strategy.allowed: strategy "deep" is none of atomic, merge, patch`,
		`strategy.by "both" is none of higher, lower`,
		`content: address "a..b" cannot be read: write it like rules.authentication.*`,
		`rules[0]: address "c..d" cannot be read: write it like rules.authentication.*`,
		`rules[1]: address "" cannot be read: write it like rules.authentication.*`,
		`lists[0]: key is missing`,
		`lists and whole are for kinds whose strategy.allowed has patch`,
		`order: set one of field and annotation`,
		`fields[0].rule: a rule key cannot be empty`,
		`fields[1].route: address "x" is not below spec: write it like spec.rules[*].timeouts.request`,
		`actions.Conflicted "Refuse" is none of Deny, Warn, Audit`,
		`actions.Overridden "Refuse" is none of Deny, Warn, Audit`,
	}, strings.Split(err.Error(), "\n"))
}

func TestGroupsOfPolicyKinds(t *testing.T) {
	for _, text := range []string{
		"{group: gateway.networking.k8s.io, kind: BackendTLSPolicy}",
		"{group: policy.networking.k8s.io, kind: AdminNetworkPolicy}",
		"{group: gateway.networking.x-k8s.io, kind: XBackendTrafficPolicy}",
		"{group: kuadrant.io, kind: Gateway}",
	} {
		k := made(t, text)
		assert.Equal(t, profile(t, text).Group, k.Group)
	}
}

func TestWhatAProfileLeavesOut(t *testing.T) {
	k := made(t, "{}")
	assert.Equal(t, []api.LevelName{"GatewayClass", "Gateway", "ListenerSet", "Listener", "Route", "Rule"}, k.Levels)
	assert.Equal(t, api.Hierarchical, k.SameTarget)
	assert.Equal(t, api.LeaveOwn, k.Targets.Namespaces)
	assert.Equal(t, policykind.Cluster, k.Source)
	assert.Empty(t, k.Controls())
	assert.Nil(t, k.Reading(map[string]string{"a": "b"}))
	p := spec(t, k, onRoute+"strategy: merge\ndefaults: {a: 1}\nlist: [{name: a}]\n")
	require.NoError(t, p.Invalid)
	assert.Equal(t, []string{"bare atomic", "  defaults=map[a:1]", "  list=[map[name:a]]", "  strategy=merge"}, blocksOf(p), "all is bare, each field a rule")
	assert.Equal(t, 0, p.Rank)
	require.NotNil(t, p.StrategyOnHigher)
	assert.Equal(t, merge.Atomic, *p.StrategyOnHigher, "the closest policy replaces those above it")
	assert.Equal(t, api.None, made(t, "class: direct").SameTarget)
	assert.Equal(t, api.Collect, made(t, "{class: direct, sameTarget: collect}").SameTarget)
	assert.Equal(t, api.None, made(t, "sameTarget: none").SameTarget)

	assert.Empty(t, profile(t, "{}").Levels, "what is filled in is the kind's own")
	assert.Equal(t, []api.LevelName{"Mesh", "GatewayClass", "GatewayNamespace", "Gateway", "ListenerSet", "Listener", "ServiceNamespace", "Service", "RouteNamespace", "Route", "Rule", "Backend"},
		made(t, "levels: [Mesh, GatewayClass, GatewayNamespace, Gateway, ListenerSet, Listener, ServiceNamespace, Service, RouteNamespace, Route, Rule, Backend]").Levels, "all of them, from the root to the leaf")
}

func TestMeet(t *testing.T) {
	for same, want := range map[api.SameTarget]merge.Meet{
		api.Hierarchical: merge.MeetHierarchical, api.OldestWins: merge.MeetOldestWins, api.Collect: merge.MeetCollect,
		api.None: merge.MeetHierarchical, api.FieldConflict: merge.MeetHierarchical,
	} {
		assert.Equal(t, want, made(t, "sameTarget: "+string(same)).Meet(), same)
	}
}

// The levels at which policies on an object of a kind stand.
func TestMayStandOn(t *testing.T) {
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
		k := made(t, "levels: ["+level+"]")
		var on []api.PolicyKind
		for _, kind := range all {
			if k.HasLevelFor(kind) {
				on = append(on, kind)
			}
		}
		assert.ElementsMatch(t, want, on, level)
	}
}
