package effective_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
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

// A field of the route itself is below every policy. An empty list, or nothing
// of any other kind, is unset.
func TestControlledFieldsOfRule(t *testing.T) {
	profile := freeProbe(controlling + "fields: [{rule: a, route: 'spec.rules[*].retry.codes'}, {rule: b, route: 'spec.rules[*].timeouts.request'}]")
	defaults, overrides := probeDoc("p", 1, onGateway+"defaults: {a: [5], b: 5s}"), probeDoc("p", 1, onGateway+"overrides: {a: [5], b: 5s}")
	tests := map[string]struct {
		rule, policy string
		want         string
		state        api.State
	}{
		"the route's own value replaces a default":   {"{name: x, retry: {codes: [1]}, timeouts: {request: 1s}}", defaults, "r#x: a=[1] r/object b=1s r/object", api.Overridden},
		"of several, each for itself":                {"{name: x, timeouts: {request: 1s}}", defaults, "r#x: a=[5] p/defaults b=1s r/object", api.PartiallyEnforced},
		"an empty list is unset":                     {"{name: x, retry: {codes: []}}", defaults, "r#x: a=[5] p/defaults b=5s p/defaults", api.Enforced},
		"so is an empty text":                        {"{name: x, timeouts: {request: ''}}", defaults, "r#x: a=[5] p/defaults b=5s p/defaults", api.Enforced},
		"null is unset":                              {"{name: x, retry: null, timeouts: {request: null}}", defaults, "r#x: a=[5] p/defaults b=5s p/defaults", api.Enforced},
		"an override replaces the route's own value": {"{name: x, retry: {codes: [1]}, timeouts: {request: 1s}}", overrides, "r#x: a=[5] p/overrides b=5s p/overrides", api.Enforced},
		"a bare rule is a default":                   {"{name: x, timeouts: {request: 1s}}", probeDoc("p", 1, onRoute+"b: 5s"), "r#x: b=1s r/object", api.Overridden},
		"a rule that controls no field stays":        {"{name: x, timeouts: {request: 1s}}", probeDoc("p", 1, onRoute+"b: 5s\nother: 1"), "r#x: b=1s r/object other=1 p/bare", api.PartiallyEnforced},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := world(t, docs(profile, gatewayDoc("g", "c", "http"), routeDoc("r", "["+test.rule+"]", "g"), test.policy))
			assert.Equal(t, []string{test.want}, fielded(t, v))
			out := outcomeOf(t, v, probeRef("app", "p"))
			assert.Equal(t, test.state, out.State)
			for _, l := range out.Lost {
				assert.Equal(t, routeRef("r"), l.To, "what beat it is the route")
			}
		})
	}
	t.Run("an HTTPRoute without rules has one, with nothing set", func(t *testing.T) {
		v := world(t, docs(profile, gatewayDoc("g", "c", "http"), "kind: HTTPRoute\nmetadata: {namespace: app, name: r}\nspec: {parentRefs: [{namespace: infra, name: g}]}", defaults))
		assert.Equal(t, []string{"r#rule-1: a=[5] p/defaults b=5s p/defaults"}, fielded(t, v))
	})
	t.Run("a route without a policy is no path", func(t *testing.T) {
		assert.Empty(t, fielded(t, world(t, docs(profile, gatewayDoc("g", "c", "http"), routeDoc("r", "[{retry: {codes: [1]}}]", "g")))))
	})
	t.Run("other kinds of routes do not have the field", func(t *testing.T) {
		v := world(t, docs(profile, gatewayDoc("g", "c", "http"), "kind: GRPCRoute\nmetadata: {namespace: app, name: r}\nspec: {parentRefs: [{namespace: infra, name: g}], rules: [{timeouts: {request: 1s}}]}", defaults))
		assert.Equal(t, []string{"r#rule-1: a=[5] p/defaults b=5s p/defaults"}, fielded(t, v))
	})
}

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
	shown := walked(t, v, effective.Scope{All: true})[1].API()
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

// Policies stay on the path if the route has a list where the profile expects none.
func TestControlledFieldNotFound(t *testing.T) {
	v := world(t, docs(freeProbe(controlling+"fields: [{rule: b, route: 'spec.rules[*].filters.timeout'}]"),
		gatewayDoc("g", "c", "http"), routeDoc("r", "[{filters: [{timeout: 9s}]}]", "g"), probeDoc("p", 1, onGateway+"b: 5s")))
	assert.Equal(t, []string{"r#rule-1: b=5s p/bare"}, fielded(t, v))
}
