package effective_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
)

// conflicting returns the effective policies of two kinds that set one field of a route.
// The value of kind A is hidden.
func conflicting(valueOfB string) []api.EffectivePolicy {
	path := []api.PathElement{{Kind: "HTTPRouteRule", Namespace: "app", Name: "r"}}
	item := func(kind string, f api.EffectiveField, spec map[string]any) api.EffectivePolicy {
		f.Field, f.Block, f.From = "spec.rules[0].timeouts.request", "bare", &api.Ref{Kind: kind, Name: "p"}
		return api.EffectivePolicy{PolicyKind: api.PolicyKind{Kind: kind}, Path: path, Route: &api.EffectiveRoute{Fields: []api.EffectiveField{f}, Spec: spec}}
	}
	rules := func(timeouts map[string]any) map[string]any {
		return map[string]any{"rules": []any{map[string]any{"timeouts": timeouts}}}
	}
	return []api.EffectivePolicy{
		item("A", api.EffectiveField{Redacted: true}, rules(map[string]any{})),
		item("B", api.EffectiveField{Value: valueOfB}, rules(map[string]any{"request": valueOfB})),
	}
}

func TestHiddenValueCountsAsConflictWithAnyOther(t *testing.T) {
	for name, value := range map[string]any{"with a value": "1s", "with none": nil} {
		items := conflicting("1s")
		items[1].Route.Fields[0].Value = value
		effective.ResolveConflicts(items, func(k api.PolicyKind) bool { return k.Kind == "A" })
		for _, item := range items {
			f := item.Route.Fields[0]
			assert.Len(t, f.ConflictsWith, 1, name)
			assert.Nil(t, f.Value, "the hidden value takes precedence")
			assert.True(t, f.Redacted)
			assert.Equal(t, &api.Ref{Kind: "A", Name: "p"}, f.From)
			assert.Equal(t, map[string]any{"rules": []any{map[string]any{"timeouts": map[string]any{}}}}, item.Route.Spec)
		}
	}
}

func TestShownValueTakesPrecedenceOverHiddenOne(t *testing.T) {
	items := conflicting("1s")
	effective.ResolveConflicts(items, func(k api.PolicyKind) bool { return k.Kind == "B" })
	for _, item := range items {
		f := item.Route.Fields[0]
		assert.Equal(t, "1s", f.Value)
		assert.False(t, f.Redacted)
		assert.Equal(t, map[string]any{"rules": []any{map[string]any{"timeouts": map[string]any{"request": "1s"}}}}, item.Route.Spec)
	}
}

// A null in an override of a hidden policy removes the route's own value.
func TestWhetherAHiddenValueIsNullIsNotShown(t *testing.T) {
	profile := freeProbe("strategy: {allowed: [patch, merge]}\nblocks: {defaults: [defaults], overrides: [overrides]}\n" +
		"fields: [{rule: b, route: 'spec.rules[*].timeouts'}]")
	answer := func(value string) api.EffectivePolicy {
		v := world(t, docs(profile, gatewayDoc("g", "c", "http"), routeDoc("r", "[{timeouts: {request: 1s, backend: 1s}}]", "g"),
			probeDoc("p", 1, onGateway+"overrides: {strategy: patch, b: {backend: "+value+", request: null}}"),
			probeDoc("own", 1, onRoute+"b: {zone: a}")))
		paths := walked(t, v, effective.Scope{All: true})
		require.Len(t, paths, 1)
		return effective.Hides(func(ref api.Ref) bool { return ref.Name == "p" }).Item(paths[0])
	}
	null, set := answer("null"), answer("5s")
	assert.Equal(t, set, null)
	f := null.Route.Fields[0]
	assert.True(t, f.Redacted)
	assert.Nil(t, f.Value)
	assert.Equal(t, "p", f.From.Name)
}
