package effective_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
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
		for _, r := range explain.Item(all[0]).Rules {
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
