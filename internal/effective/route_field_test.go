package effective_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/internal/snapshot"
)

// fielded formats the paths of kind Probe with their rules, as in
// "r#x filters[0]: a=1 p/bare".
func fielded(t testing.TB, v *snapshot.View) []string {
	t.Helper()
	var out []string
	for _, e := range walked(t, v, effective.Scope{All: true}) {
		text := e.Path.Route.Name + "#" + e.Path.Route.RuleName(e.Path.Rule)
		if e.Path.Member != "" {
			text += " " + e.Path.Member
		}
		text += ":"
		for _, r := range e.Rules {
			text += fmt.Sprintf(" %s=%v %s/%s", r.Key, r.Value, r.From.Policy.Name, r.From.Block)
		}
		out = append(out, text)
	}
	return out
}

const controlling = "strategy: {allowed: [merge]}\nblocks: {defaults: [defaults], overrides: [overrides]}\n"

// Items of a list in a rule have paths of their own, if they have the object with the
// fields.
func TestControlledFieldsOfItems(t *testing.T) {
	profile := freeProbe(controlling + "fields: [{rule: codes, route: 'spec.rules[*].filters[*].retry.codes'}, {rule: tries, route: 'spec.rules[*].filters[*].retry.tries'}]")
	v := world(t, docs(profile, gatewayDoc("g", "c", "http"),
		routeDoc("r", "[{name: x, filters: [{retry: {codes: [1]}}, {other: 1}, {retry: {tries: 2}}]}, {name: without}, {name: empty, filters: []}]", "g"),
		probeDoc("p", 1, onGateway+"defaults: {codes: [5], tries: 5}"), probeDoc("rule", 1, onRule+"overrides: {tries: 9}"),
	))
	assert.Equal(t, []string{
		"r#x filters[0]: codes=[1] r/object tries=9 rule/overrides",
		"r#x filters[2]: codes=[5] p/defaults tries=9 rule/overrides",
	}, fielded(t, v))
	assert.Equal(t, api.PathCounts{Total: 2, Overridden: 1, PartiallyEnforced: 1}, outcomeOf(t, v, probeRef("app", "p")).Paths)
	shown := explain.Item(walked(t, v, effective.Scope{All: true})[1])
	assert.Equal(t, "filters[2]", shown.Path[len(shown.Path)-1].Member)
	everything := []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/"}}}
	assert.Equal(t, []any{map[string]any{"name": "x", "matches": everything, "filters": []any{
		map[string]any{"retry": map[string]any{"codes": []any{int64(1)}}}, map[string]any{"other": int64(1)},
		map[string]any{"retry": map[string]any{"codes": []any{int64(5)}, "tries": int64(9)}},
	}}}, shown.Route.Spec["rules"], "the item of the path alone has what is in force")

	none := world(t, docs(profile, gatewayDoc("g", "c", "http"), routeDoc("r", "[{}]", "g"), probeDoc("p", 1, onGateway+"defaults: {codes: [5]}")))
	assert.Empty(t, fielded(t, none))
	assert.Equal(t, api.NoPath, outcomeOf(t, none, probeRef("app", "p")).State)
}

// Fields outside the rules belong to each rule.
func TestControlledFieldsOfRoute(t *testing.T) {
	profile := freeProbe(controlling + "fields: [{rule: a, route: spec.session.name}]")
	v := world(t, docs(profile, gatewayDoc("g", "c", "http"),
		"kind: HTTPRoute\nmetadata: {namespace: app, name: r}\nspec: {session: {name: own}, parentRefs: [{namespace: infra, name: g}], rules: [{}, {}]}",
		probeDoc("p", 1, onGateway+"defaults: {a: 5}")))
	assert.Equal(t, []string{"r#rule-1: a=own r/object", "r#rule-2: a=own r/object"}, fielded(t, v))
}

// A change of the route's own field changes the effective policy.
func TestControlledFieldChange(t *testing.T) {
	profile := freeProbe(controlling + "fields: [{rule: b, route: 'spec.rules[*].timeouts.request'}]")
	before := world(t, docs(profile, gatewayDoc("g", "c", "http"), routeDoc("r", "[{timeouts: {request: 1s}}]", "g"), probeDoc("p", 1, onGateway+"defaults: {b: 5s}")))
	for rule, want := range map[string]string{
		"[{timeouts: {request: 1s}}]": "r: [0] b=1s -> [0] b=1s",
		"[{timeouts: {request: 2s}}]": "r: [0] b=1s -> [0] b=2s changed",
		"[{}]":                        "r: [0] b=1s -> [0] b=5s changed",
	} {
		after := before.With(putChange(t, before, routeDoc("r", rule, "g")))
		assert.Equal(t, []string{want}, compared(t, before, after, objectScope(routeRef("r"))), rule)
	}
}

// A list without [*] stands for its first item that has the field. Policies stay on the
// path if none has it.
func TestControlledFieldOfAnyItem(t *testing.T) {
	for filters, want := range map[string]string{
		"[{}, {timeout: 9s}, {timeout: 8s}]": "r#rule-1: b=9s r/object",
		"[{}]":                               "r#rule-1: b=5s p/bare",
		"[]":                                 "r#rule-1: b=5s p/bare",
	} {
		v := world(t, docs(freeProbe(controlling+"fields: [{rule: b, route: 'spec.rules[*].filters.timeout'}]"),
			gatewayDoc("g", "c", "http"), routeDoc("r", "[{filters: "+filters+"}]", "g"), probeDoc("p", 1, onGateway+"b: 5s")))
		assert.Equal(t, []string{want}, fielded(t, v), filters)
	}
}
