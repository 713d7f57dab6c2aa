package merge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/merge"
)

// SEMANTICS section 3: keys that are prefixes of each other, nulls and empty
// maps.
func TestFoldPlaces(t *testing.T) {
	d := func(rules ...merge.Rule) *merge.Policy { return policy("gw", defaults(patch, rules...)) }
	o := func(rules ...merge.Rule) *merge.Policy { return policy("gw", overrides(patch, rules...)) }
	r := func(rules ...merge.Rule) *merge.Policy { return policy("route", bare(rules...)) }
	tests := map[string]struct {
		gateway, route  *merge.Policy
		effective, lost []string
		spec            map[string]any
	}{
		"an override of a scalar replaces the map that is there": {
			gateway:   o(rule("a", 1)),
			route:     r(rule("a.b", 2), rule("a.c.d", 3), rule("z", 0)),
			effective: []string{"a=1 gw/overrides", "z=0 route/bare"},
			lost:      []string{"route: a.b bare to gw/overrides", "route: a.c.d bare to gw/overrides"},
			spec:      map[string]any{"a": int64(1), "z": int64(0)},
		},
		"an override inside a map replaces the scalar that is there": {
			gateway:   o(rule("a.b", 1)),
			route:     r(rule("a", 2)),
			effective: []string{"a.b=1 gw/overrides"},
			lost:      []string{"route: a bare to gw/overrides"},
			spec:      map[string]any{"a": map[string]any{"b": int64(1)}},
		},
		"a default of a scalar gives way to a map": {
			gateway:   d(rule("a", 1), rule("z", 0)),
			route:     r(rule("a.b", 2)),
			effective: []string{"a.b=2 route/bare", "z=0 gw/defaults"},
			lost:      []string{"gw: a defaults to route/bare"},
		},
		"a default inside a map gives way to a scalar": {
			gateway:   d(rule("a.b", 1), rule("a.c.d", 1), rule("ab", 1)),
			route:     r(rule("a", 2)),
			effective: []string{"a=2 route/bare", "ab=1 gw/defaults"},
			lost:      []string{"gw: a.b defaults to route/bare", "gw: a.c.d defaults to route/bare"},
		},
		"a lower null keeps a higher default out, and is not shown": {
			gateway:   d(rule("a", 1), rule("b", 1)),
			route:     r(rule("a", nil)),
			effective: []string{"a=<nil> route/bare", "b=1 gw/defaults"},
			lost:      []string{"gw: a defaults to route/bare"},
			spec:      map[string]any{"b": int64(1)},
		},
		"a lower null keeps out what is below its place": {
			gateway:   d(rule("a.b", 1)),
			route:     r(rule("a", nil)),
			effective: []string{"a=<nil> route/bare"},
			lost:      []string{"gw: a.b defaults to route/bare"},
			spec:      map[string]any{},
		},
		"a null makes E not empty": {
			gateway:   policy("gw", defaults(atomic, rule("b", 1))),
			route:     r(rule("a", nil)),
			effective: []string{"a=<nil> route/bare"},
			lost:      []string{"gw: b defaults to route/bare"},
			spec:      map[string]any{},
		},
		"a null in an override removes what is there": {
			gateway:   o(rule("a", nil)),
			route:     r(rule("a", 1), rule("b", 2)),
			effective: []string{"a=<nil> gw/overrides", "b=2 route/bare"},
			lost:      []string{"route: a bare to gw/overrides"},
			spec:      map[string]any{"b": int64(2)},
		},
		"and all that lies below it": {
			gateway:   o(rule("a", nil)),
			route:     r(rule("a.b", 1), rule("a.c", 2)),
			effective: []string{"a=<nil> gw/overrides"},
			lost:      []string{"route: a.b bare to gw/overrides", "route: a.c bare to gw/overrides"},
			spec:      map[string]any{},
		},
		"a lower null cannot erase a higher override": {
			gateway:   o(rule("a", 1)),
			route:     r(rule("a", nil)),
			effective: []string{"a=1 gw/overrides"},
			lost:      []string{"route: a bare to gw/overrides"},
			spec:      map[string]any{"a": int64(1)},
		},
		"two nulls are equal values": {
			gateway:   d(rule("a", nil)),
			route:     r(rule("a", nil)),
			effective: []string{"a=<nil> route/bare"},
			lost:      []string{"gw: a defaults to route/bare (equal)"},
			spec:      map[string]any{},
		},
		"an empty map in an override replaces nothing below it": {
			gateway:   o(hollow("a")),
			route:     r(rule("a.b", 1)),
			effective: []string{"a=map[] gw/overrides", "a.b=1 route/bare"},
			spec:      map[string]any{"a": map[string]any{"b": int64(1)}},
		},
		"an empty map in an override replaces no scalar": {
			gateway:   o(hollow("a"), hollow("c.d")),
			route:     r(rule("a", 1), rule("c", 1)),
			effective: []string{"a=1 route/bare", "c=1 route/bare"},
			lost:      []string{"gw: a overrides to route/bare", "gw: c.d overrides to route/bare"},
		},
		"an empty map takes the place that another rule of its block cleared": {
			gateway:   o(hollow("a.b"), rule("a.c", 2)),
			route:     r(rule("a", 1)),
			effective: []string{"a.b=map[] gw/overrides", "a.c=2 gw/overrides"},
			lost:      []string{"route: a bare to gw/overrides"},
			spec:      map[string]any{"a": map[string]any{"b": map[string]any{}, "c": int64(2)}},
		},
		"an empty map is set where nothing is": {
			gateway:   o(hollow("a"), rule("c", 1)),
			route:     r(rule("b", 1)),
			effective: []string{"a=map[] gw/overrides", "b=1 route/bare", "c=1 gw/overrides"},
			spec:      map[string]any{"a": map[string]any{}, "b": int64(1), "c": int64(1)},
		},
		"an empty map as a default stands beside what is below it": {
			gateway:   d(hollow("a")),
			route:     r(rule("a.b", 1)),
			effective: []string{"a=map[] gw/defaults", "a.b=1 route/bare"},
			spec:      map[string]any{"a": map[string]any{"b": int64(1)}},
		},
		"a lower empty map leaves room for defaults below it": {
			gateway:   d(rule("a.b", 1)),
			route:     r(hollow("a")),
			effective: []string{"a=map[] route/bare", "a.b=1 gw/defaults"},
			spec:      map[string]any{"a": map[string]any{"b": int64(1)}},
		},
		"a lower empty map keeps a scalar default out of its place": {
			gateway:   d(rule("a", 1)),
			route:     r(hollow("a")),
			effective: []string{"a=map[] route/bare"},
			lost:      []string{"gw: a defaults to route/bare"},
		},
		"a lower empty map below the place of a scalar default keeps it out": {
			gateway:   d(rule("a", 1)),
			route:     r(hollow("a.b")),
			effective: []string{"a.b=map[] route/bare"},
			lost:      []string{"gw: a defaults to route/bare"},
		},
		"an override replaces an empty map": {
			gateway:   o(rule("a", 1)),
			route:     r(hollow("a")),
			effective: []string{"a=1 gw/overrides"},
			lost:      []string{"route: a bare to gw/overrides"},
		},
		"two empty maps are equal values": {
			gateway:   o(hollow("a")),
			route:     r(hollow("a")),
			effective: []string{"a=map[] gw/overrides"},
			lost:      []string{"route: a bare to gw/overrides (equal)"},
		},
		"lists are replaced whole": {
			gateway:   o(rule("a", []any{int64(1)})),
			route:     r(rule("a", []any{int64(1), int64(2)})),
			effective: []string{"a=[1] gw/overrides"},
			lost:      []string{"route: a bare to gw/overrides"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			result := fold(t, stack(test.gateway, test.route)...)
			assert.Equal(t, test.effective, effectiveOf(result), "effective")
			assert.Equal(t, test.lost, lossesOf(result), "lost")
			if test.spec != nil {
				assert.Equal(t, test.spec, result.Spec(), "spec")
			}
		})
	}
}

// Spec returns a new spec each time, and does not edit the empty maps of policies.
func TestSpecDoesNotEditPolicies(t *testing.T) {
	empty := hollow("a")
	result := fold(t, stack(policy("gw", defaults(patch, rule("a.b", 1))), policy("route", bare(empty)))...)
	first := result.Spec()
	assert.Equal(t, map[string]any{"a": map[string]any{"b": int64(1)}}, first)
	assert.Empty(t, empty.Value)
	first["more"] = true
	assert.NotEqual(t, first, result.Spec())
}
