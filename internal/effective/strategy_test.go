package effective_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// probeRef names a Probe.
func probeRef(namespace, name string) api.Ref {
	return api.Ref{Group: worlds.Group, Kind: "Probe", Namespace: namespace, Name: name}
}

// specOf returns the effective spec of the only path as JSON.
func specOf(t testing.TB, v *snapshot.View) string {
	t.Helper()
	all := walked(t, v, effective.Scope{All: true})
	if !assert.Len(t, all, 1) {
		return ""
	}
	data, err := yaml.Marshal(all[0].Spec())
	assert.NoError(t, err)
	data, err = yaml.YAMLToJSON(data)
	assert.NoError(t, err)
	return string(data)
}

// chain is a path from gateway g by listener http and route r to its rule x.
var chain = docs("kind: GatewayClass\nmetadata: {name: c}", gatewayDoc("g", "c", "http"), routeDoc("r", "[{name: x}]", "g"))

// Targets on the chain.
const (
	onGateway  = "targetRefs: [{kind: Gateway, name: g, namespace: infra}]\n"
	onListener = "targetRefs: [{kind: Gateway, name: g, namespace: infra, sectionName: http}]\n"
	onRoute    = "targetRefs: [{kind: HTTPRoute, name: r}]\n"
	onRule     = "targetRefs: [{kind: HTTPRoute, name: r, sectionName: x}]\n"
)

// probeDoc is a Probe in namespace app, created on a day.
func probeDoc(name string, day int, spec string) string {
	text := policyDoc("Probe", "app", name, spec)
	return strings.Replace(text, "name: "+name+"}", fmt.Sprintf("name: %s, creationTimestamp: '2026-01-%02dT00:00:00Z'}", name, day), 1)
}

func freeProbe(spec string) string {
	return worlds.ClassProfileDoc("inherited", "Probe", "targets: {fields: [targetRefs], namespaces: free}\n"+spec)
}

// The lower policy decides whether it is merged onto its closest parent.
func TestLowerPolicyDecidesStrategy(t *testing.T) {
	profile := freeProbe("strategy: {allowed: [atomic, merge], bareField: mergeType, spellings: {Together: merge}, by: lower}")
	const merged = "mergeType: merge\n"
	tests := map[string]struct {
		policies []string
		want     string
	}{
		"the most specific replaces": {
			[]string{probeDoc("gateway", 1, onGateway+"a: gateway\nb: gateway"), probeDoc("route", 1, onRoute+"a: route")},
			`{"a":"route"}`,
		},
		"merged onto its parent": {
			[]string{probeDoc("gateway", 1, onGateway+"a: gateway\nb: gateway"), probeDoc("route", 1, onRoute+merged+"a: route\nc: route")},
			`{"a":"route","b":"gateway","c":"route"}`,
		},
		"in another word for it": {
			[]string{probeDoc("gateway", 1, onGateway+"b: gateway"), probeDoc("route", 1, onRoute+"mergeType: Together\na: route")},
			`{"a":"route","b":"gateway"}`,
		},
		"the closest parent alone": {
			[]string{
				probeDoc("gateway", 1, onGateway+"a: gateway\nb: gateway\nd: gateway"), probeDoc("listener", 1, onListener+"a: listener\nb: listener"),
				probeDoc("route", 1, onRoute+merged+"a: route"),
			},
			`{"a":"route","b":"listener"}`,
		},
		"the parent's own word is about what is above it": {
			[]string{
				probeDoc("gateway", 1, onGateway+"a: gateway\nd: gateway"), probeDoc("listener", 1, onListener+merged+"a: listener\nb: listener"),
				probeDoc("route", 1, onRoute+merged+"a: route"),
			},
			`{"a":"route","b":"listener","d":"gateway"}`,
		},
		"and no way past one that replaces": {
			[]string{
				probeDoc("gateway", 1, onGateway+"d: gateway"), probeDoc("listener", 1, onListener+merged+"b: listener"),
				probeDoc("route", 1, onRoute+"a: route"),
			},
			`{"a":"route"}`,
		},
		"a higher policy's word is not about what is below it": {
			[]string{probeDoc("gateway", 1, onGateway+merged+"b: gateway"), probeDoc("route", 1, onRoute+"a: route")},
			`{"a":"route"}`,
		},
		"a rule onto its route": {
			[]string{probeDoc("gateway", 1, onGateway+"d: gateway"), probeDoc("route", 1, onRoute+"b: route"), probeDoc("rule", 1, onRule+merged+"a: rule")},
			`{"a":"rule","b":"route"}`,
		},
		"one without a rule replaces all above it": {
			[]string{probeDoc("gateway", 1, onGateway+"d: gateway"), probeDoc("listener", 1, onListener+merged+"b: listener"), probeDoc("route", 1, onRoute)},
			`{}`,
		},
		"and what is merged onto it stays": {
			[]string{probeDoc("gateway", 1, onGateway+"d: gateway"), probeDoc("route", 1, onRoute), probeDoc("rule", 1, onRule+merged+"a: rule")},
			`{"a":"rule"}`,
		},
		"merged without a rule it changes nothing": {
			[]string{probeDoc("gateway", 1, onGateway+"d: gateway"), probeDoc("listener", 1, onListener+merged+"b: listener"), probeDoc("route", 1, onRoute+merged)},
			`{"b":"listener","d":"gateway"}`,
		},
		"nor between two that are merged": {
			[]string{probeDoc("gateway", 1, onGateway+"d: gateway"), probeDoc("route", 1, onRoute+merged), probeDoc("rule", 1, onRule+merged+"a: rule")},
			`{"a":"rule","d":"gateway"}`,
		},
		"nor under one that replaces": {
			[]string{probeDoc("gateway", 1, onGateway+"d: gateway"), probeDoc("route", 1, onRoute+"b: route"), probeDoc("rule", 1, onRule+merged)},
			`{"b":"route"}`,
		},
		"alone": {[]string{probeDoc("route", 1, onRoute+merged+"a: route")}, `{"a":"route"}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, specOf(t, world(t, docs(append(test.policies, profile, chain)...))))
		})
	}
}

// SEMANTICS section 3: in kinds in which the closest policy replaces those above
// it, one without a rule does, too, but not in kinds with merging, overrides or
// collecting.
func TestPolicyWithoutRulesReplaces(t *testing.T) {
	tests := map[string]struct{ profile, want string }{
		"an inherited kind that does not merge": {freeProbe(""), `{}`},
		"a direct kind at two levels":           {worlds.ClassProfileDoc("direct", "Probe", "targets: {fields: [targetRefs], namespaces: free}"), `{}`},
		"content that is left out":              {freeProbe("content: a"), `{}`},
		"a kind that merges":                    {freeProbe("strategy: {allowed: [merge]}"), `{"a":{"x":1}}`},
		"a kind in which the higher dictates":   {freeProbe("strategy: {allowed: [atomic, merge], bareField: how}"), `{"a":{"x":1}}`},
		"a kind with blocks":                    {freeProbe("blocks: {defaults: [defaults], overrides: [overrides]}"), `{"a":{"x":1}}`},
		"a kind whose bare rules may override":  {freeProbe("blocks: {bare: {field: mode, overrides: [Override]}}"), `{"a":{"x":1}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := world(t, docs(test.profile, chain, probeDoc("gateway", 1, onGateway+"a: {x: 1}"), probeDoc("route", 1, onRoute)))
			got := specOf(t, v)
			assert.Equal(t, test.want, got)
			above, empty := api.Overridden, outcomeOf(t, v, probeRef("app", "route"))
			if got != `{}` {
				above = api.Enforced
			}
			assert.Equal(t, above, outcomeOf(t, v, probeRef("app", "gateway")).State)
			assert.Equal(t, api.Enforced, empty.State)
			assert.Empty(t, empty.Lost)
		})
	}
}

// The outcome of the policy above names the policy without a rule as the winner.
func TestLostToPolicyWithoutRules(t *testing.T) {
	v := world(t, docs(freeProbe(""), chain, probeDoc("gateway", 1, onGateway+"a: 1"), probeDoc("route", 1, onRoute)))
	assert.Equal(t, []api.LostCount{{Rule: "a", To: probeRef("app", "route"), Paths: 1, Whole: 1}}, outcomeOf(t, v, probeRef("app", "gateway")).Lost)
}

// On a target where the oldest wins, a newer policy without a rule does not
// replace an older one; an older one without a rule replaces.
func TestPolicyWithoutRulesWhereOldestWins(t *testing.T) {
	profile := freeProbe("sameTarget: oldestWins")
	for want, policies := range map[string][]string{
		`{"a":1}`: {probeDoc("older", 1, onRoute+"a: 1"), probeDoc("newer", 2, onRoute)},
		`{}`:      {probeDoc("older", 1, onRoute), probeDoc("newer", 2, onRoute+"a: 1")},
	} {
		policies = append(policies, probeDoc("gateway", 1, onGateway+"b: 1"))
		assert.Equal(t, want, specOf(t, world(t, docs(append(policies, profile, chain)...))))
	}
}

// A route's annotation about the policies above it takes precedence over a policy
// without a rule.
func TestAnnotationOverPolicyWithoutRules(t *testing.T) {
	profile := freeProbe("strategy: {annotation: {name: example.com/how, values: {deep: {strategy: merge}, flat: {strategy: atomic}}}}")
	policies := docs(probeDoc("gateway", 1, onGateway+"a: gateway"), probeDoc("listener", 1, onListener), probeDoc("route", 1, onRoute))
	plain := world(t, docs(profile, chain, policies))
	assert.Equal(t, `{}`, specOf(t, plain))
	for _, how := range []string{"deep", "flat"} {
		annotated := strings.Replace(chain, "name: r}", "name: r, annotations: {example.com/how: "+how+"}}", 1)
		assert.JSONEq(t, `{"a":"gateway"}`, specOf(t, world(t, docs(profile, annotated, policies))), how)
	}
}

// An annotation of the route decides how the policies above it are applied.
func TestRouteAnnotationDecidesStrategy(t *testing.T) {
	profile := freeProbe("strategy: {allowed: [atomic, merge], annotation: {name: example.com/how, values: " +
		"{deep: {strategy: merge}, deep-over: {strategy: merge, overrides: true}, over: {strategy: atomic, overrides: true}}}}")
	policies := docs(
		probeDoc("gateway", 1, onGateway+"a: gateway\nb: gateway"), probeDoc("listener", 1, onListener+"a: listener\nd: listener"),
		probeDoc("route", 1, onRoute+"a: route\nc: route"), probeDoc("rule", 1, onRule+"a: rule"),
	)
	for value, want := range map[string]string{
		"":          `{"a":"rule"}`,
		"unheard":   `{"a":"rule"}`,
		"deep":      `{"a":"rule","b":"gateway","d":"listener"}`, // the route's own policy is atomic still
		"deep-over": `{"a":"gateway","b":"gateway","d":"listener"}`,
		"over":      `{"a":"gateway","b":"gateway"}`,
	} {
		annotated := strings.Replace(chain, "name: r}", "name: r, annotations: {example.com/how: '"+value+"'}}", 1)
		assert.Equal(t, want, specOf(t, world(t, docs(profile, annotated, policies))), value)
	}
}

// A field of the policy makes its bare rules overrides.
func TestBareRulesAsOverrides(t *testing.T) {
	profile := freeProbe("strategy: {allowed: [merge]}\nblocks: {bare: {field: mode, overrides: [Override, Force]}}")
	for mode, want := range map[string]string{
		"":               `{"a":"route","b":"gateway"}`,
		"mode: Default":  `{"a":"route","b":"gateway"}`,
		"mode: Override": `{"a":"gateway","b":"gateway"}`,
		"mode: Force":    `{"a":"gateway","b":"gateway"}`,
	} {
		v := world(t, docs(profile, chain, probeDoc("gateway", 1, onGateway+mode+"\na: gateway\nb: gateway"), probeDoc("route", 1, onRoute+"a: route")))
		assert.Equal(t, want, specOf(t, v), mode)
	}
}

// Items of keyed lists are merged one by one, and returned as a list.
func TestKeyedLists(t *testing.T) {
	profile := freeProbe("strategy: {allowed: [patch]}\nblocks: {overrides: [overrides]}\nlists: [{path: rules, key: name}]")
	v := world(t, docs(profile, chain,
		probeDoc("gateway", 1, onGateway+"rules: [{name: z, limit: 1, unit: s}, {name: b, limit: 1}]\noverrides: {rules: [{name: m, limit: 9}]}"),
		probeDoc("route", 1, onRoute+"rules: [{name: m, limit: 2, unit: m}, {name: z, limit: 2}]"),
	))
	assert.JSONEq(t, `{"rules":[{"limit":1,"name":"b"},{"limit":9,"name":"m","unit":"m"},{"limit":2,"name":"z","unit":"s"}]}`, specOf(t, v))
	assert.Equal(t, []api.LostCount{
		{Rule: "rules.m.limit", To: probeRef("app", "gateway"), Paths: 1},
		{Rule: "rules.m.name", To: probeRef("app", "gateway"), Paths: 1, Equal: true},
	}, outcomeOf(t, v, probeRef("app", "route")).Lost)
}

// SEMANTICS section 5, sameTarget: two policies of one gateway.
func TestSameTarget(t *testing.T) {
	type outcome struct {
		state api.State
		lost  []string
	}
	both := func(older, newer string) []string {
		return []string{probeDoc("z-older", 1, onGateway+older), probeDoc("newer", 2, onGateway+newer)}
	}
	defaults := both("defaults: {a: older, b: older}", "defaults: {a: newer, c: newer}")
	overrides := both("overrides: {a: older, b: older}", "overrides: {a: newer, c: newer}")
	against := both("overrides: {a: older}", "defaults: {a: newer, c: newer}")
	upwards := both("defaults: {a: older, b: older}", "overrides: {a: newer}")
	apart := both("defaults: {b: older}", "overrides: {c: newer}")
	enforced, conflicted := outcome{state: api.Enforced}, outcome{state: api.Conflicted}
	loses := func(rules ...string) outcome { return outcome{api.PartiallyEnforced, rules} }
	tests := []struct {
		mode         string
		what         string
		policies     []string
		want         string
		older, newer outcome
	}{
		{"hierarchical", "of defaults the newer wins", defaults, `{"a":"newer","b":"older","c":"newer"}`, loses("a"), enforced},
		{"hierarchical", "of overrides the older", overrides, `{"a":"older","b":"older","c":"newer"}`, enforced, loses("a")},
		{"hierarchical", "an override beats a newer default", against, `{"a":"older","c":"newer"}`, enforced, loses("a")},
		{"hierarchical", "and an older one", upwards, `{"a":"newer","b":"older"}`, loses("a"), enforced},
		{"hierarchical", "apart they do not meet", apart, `{"b":"older","c":"newer"}`, enforced, enforced},

		{"oldestWins", "of defaults the older wins", defaults, `{"a":"older","b":"older","c":"newer"}`, enforced, loses("a")},
		{"oldestWins", "of overrides, too", overrides, `{"a":"older","b":"older","c":"newer"}`, enforced, loses("a")},
		{"oldestWins", "an override beats a newer default", against, `{"a":"older","c":"newer"}`, enforced, loses("a")},
		{"oldestWins", "and an older one", upwards, `{"a":"newer","b":"older"}`, loses("a"), enforced},
		{"oldestWins", "apart they do not meet", apart, `{"b":"older","c":"newer"}`, enforced, enforced},

		{"none", "the older holds the target", defaults, `{"a":"older","b":"older"}`, enforced, conflicted},
		{"none", "whatever the blocks", upwards, `{"a":"older","b":"older"}`, enforced, conflicted},
		{"none", "apart, too", apart, `{"b":"older"}`, enforced, conflicted},

		{"fieldConflict", "where rules meet the newer is out as a whole", defaults, `{"a":"older","b":"older"}`, enforced, conflicted},
		{"fieldConflict", "whatever the blocks", upwards, `{"a":"older","b":"older"}`, enforced, conflicted},
		{"fieldConflict", "apart they do not meet", apart, `{"b":"older","c":"newer"}`, enforced, enforced},
	}
	for _, test := range tests {
		t.Run(test.mode+": "+test.what, func(t *testing.T) {
			profile := freeProbe("strategy: {allowed: [merge]}\nblocks: {defaults: [defaults], overrides: [overrides]}\nsameTarget: " + test.mode)
			v := world(t, docs(append(test.policies, profile, chain)...))
			assert.Equal(t, test.want, specOf(t, v))
			for name, want := range map[string]outcome{"z-older": test.older, "newer": test.newer} {
				got := outcomeOf(t, v, probeRef("app", name))
				assert.Equal(t, want.state, got.State, name)
				var lost []string
				for _, l := range got.Lost {
					lost = append(lost, l.Rule)
				}
				assert.Equal(t, want.lost, lost, name)
			}
		})
	}
}

// SEMANTICS section 6: Conflicted is reported per target; the state is that of the
// targets that are accepted.
func TestConflictedPerTarget(t *testing.T) {
	profile := freeProbe("strategy: {allowed: [merge]}\nsameTarget: none")
	v := world(t, docs(profile, chain,
		probeDoc("holder", 1, onGateway+"a: 1"),
		probeDoc("newer", 2, "targetRefs: [{kind: Gateway, name: g, namespace: infra}, {kind: HTTPRoute, name: r}, {kind: HTTPRoute, name: none}]\na: 2"),
	))
	out, by := outcomeOf(t, v, probeRef("app", "newer")), probeRef("app", "holder")
	assert.Equal(t, api.Enforced, out.State)
	assert.Equal(t, []api.Target{
		{Target: gatewayRef("g"), Reason: api.Conflicted, By: &by},
		{Target: routeRef("none"), Reason: api.TargetNotFound}, {Target: routeRef("r"), Accepted: true},
	}, out.Targets)
}

// SEMANTICS section 5, fieldConflict: a conflicted policy conflicts with no other.
func TestConflictedPolicyDoesNotConflictWithOthers(t *testing.T) {
	profile := freeProbe("strategy: {allowed: [merge]}\nsameTarget: fieldConflict")
	v := world(t, docs(profile, chain, probeDoc("one", 1, onGateway+"a: 1"), probeDoc("two", 2, onGateway+"a: 2\nb: 2"), probeDoc("three", 3, onGateway+"b: 3")))
	assert.JSONEq(t, `{"a":1,"b":3}`, specOf(t, v))
	assert.Equal(t, api.Conflicted, outcomeOf(t, v, probeRef("app", "two")).State)
	assert.Equal(t, api.Enforced, outcomeOf(t, v, probeRef("app", "three")).State)
}

// Rules conflict, too, if one is below the other.
func TestFieldConflicts(t *testing.T) {
	profile := freeProbe("strategy: {allowed: [patch]}\nsameTarget: fieldConflict")
	for content, want := range map[string]api.State{
		"a: {b: 1}": api.Conflicted, "a: {c: 1}": api.Enforced, "a: {}": api.Enforced, "a: 1": api.Conflicted,
		"a: {b: {d: 1}}": api.Conflicted, "ab: 1": api.Enforced, "a: null": api.Conflicted,
	} {
		v := world(t, docs(profile, chain, probeDoc("one", 1, onGateway+"a: {b: 5, e: 5}\nz: 1"), probeDoc("two", 2, onGateway+content+"\nq: 1")))
		assert.Equal(t, want, outcomeOf(t, v, probeRef("app", "two")).State, content)
	}
}

// SEMANTICS section 5, collect: all apply, the higher level first, then by the
// kind's own order, then the older.
func TestCollect(t *testing.T) {
	policies := docs(
		probeDoc("route", 1, onRoute+"id: route\nrank: 1"), probeDoc("late", 3, onGateway+"id: late\nrank: 5"),
		probeDoc("early", 1, onGateway+"id: early\nrank: 5"), probeDoc("first", 9, onGateway+"id: first\nrank: 2"), probeDoc("unranked", 1, onListener+"id: unranked"),
	)
	for order, want := range map[string]string{
		"":                                   "early late first unranked route",
		"order: {field: rank, default: '9'}": "first early late unranked route",
		"order: {field: rank, default: '9', highestFirst: true}":                               "early late first unranked route",
		"order: {field: rank, default: '9', acrossLevels: true}":                               "route first early late unranked",
		"order: {field: rank, values: ['5', '9', '2', '1'], default: '9', acrossLevels: true}": "early late unranked first route",
		"order: {field: rank, values: ['5', '9', '2', '1'], default: '9'}":                     "early late first unranked route",
	} {
		profile := freeProbe("strategy: {allowed: [merge]}\nsameTarget: collect\nignore: [rank]\n" + order)
		v := world(t, docs(profile, chain, policies))
		all := walked(t, v, effective.Scope{All: true})
		assert.Len(t, all, 1)
		var ids []string
		for _, item := range all[0].Spec().([]any) {
			ids = append(ids, item.(map[string]any)["id"].(string))
		}
		assert.Equal(t, want, strings.Join(ids, " "), order)
		items := make(map[string]int)
		for _, r := range all[0].API().Rules {
			items[r.From.Name] = *r.Item
			assert.Equal(t, `["app/`+r.From.Name+`"]`, r.Rule)
		}
		for i, id := range ids {
			assert.Equal(t, i, items[id], "each rule says which item it is")
		}
		assert.Equal(t, api.Enforced, outcomeOf(t, v, probeRef("app", "late")).State)
	}
}

// A kind's own order takes precedence over age.
func TestOrderByRank(t *testing.T) {
	profile := freeProbe("strategy: {allowed: [merge]}\nsameTarget: oldestWins\norder: {annotation: example.com/weight, highestFirst: true, default: '0'}")
	weighing := func(doc string, weight int) string {
		return strings.Replace(doc, ", creationTimestamp", fmt.Sprintf(", annotations: {example.com/weight: '%d'}, creationTimestamp", weight), 1)
	}
	v := world(t, docs(profile, chain,
		probeDoc("older", 1, onGateway+"a: older\nb: older"), weighing(probeDoc("heavy", 2, onGateway+"a: heavy"), 10), weighing(probeDoc("light", 1, onGateway+"a: light\nb: light"), -1)))
	assert.JSONEq(t, `{"a":"heavy","b":"older"}`, specOf(t, v))
}
