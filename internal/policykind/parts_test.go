package policykind_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// rulesIn returns the rules of a part of a policy.
func rulesIn(p *merge.Policy, part int) []string {
	var out []string
	for _, b := range p.In(part) {
		for _, r := range b.Rules {
			out = append(out, show(r))
		}
	}
	return out
}

// Content for single routes: the closest identifier counts, and its rules take the place of
// those at, above and below them.
func TestContentForRoutes(t *testing.T) {
	k := mustCompile(t, `
content: general
routeContents: {field: routes, route: of, content: set}
strategy: {allowed: [patch]}
whole: [check]`)
	p := spec(t, k, onRoute+`
general: {a: 1, check: {b: 1}, tags: {x: 1, k: 1}, empty: {}}
routes:
- {of: {kind: HTTPRoute}, set: {a: 2}}
- {of: {kind: HTTPRoute, name: r}, set: {a: 3}}
- {of: {kind: HTTPRoute, namespace: app}, set: {check: {c: 4}, tags: {x: 4}}}
- {of: {kind: HTTPRoute, namespace: app}, set: {a: 5}}
- {of: {kind: HTTPRoute, namespace: app, name: r}, set: {tags: 6}}
- {of: {kind: TCPRoute}, set: {}}`)
	require.NoError(t, p.Invalid)
	of := func(kind, namespace, name string) []string {
		return rulesIn(&p.Policy, p.PartFor(api.Ref{Group: api.GatewayGroup, Kind: kind, Namespace: namespace, Name: name}))
	}
	general := []string{"a=1", "check=map[b:1]", "empty hollow", "tags.k=1", "tags.x=1"}
	assert.Equal(t, []string{"a=1", "check=map[b:1]", "empty hollow", "tags=6"}, of("HTTPRoute", "app", "r"))
	assert.Equal(t, []string{"a=1", "check=map[c:4]", "empty hollow", "tags.k=1", "tags.x=4"}, of("HTTPRoute", "app", "other"), "the first of two")
	assert.Equal(t, []string{"a=2", "check=map[b:1]", "empty hollow", "tags.k=1", "tags.x=1"}, of("HTTPRoute", "infra", "r"))
	assert.Equal(t, general, of("TCPRoute", "app", "t"), "an item without rules")
	assert.Equal(t, general, of("GRPCRoute", "app", "g"))
	packed := p.Pack()
	assert.True(t, packed.Same(p))
	assert.Len(t, packed.Parts, len(p.Parts))
	assert.False(t, p.Same(spec(t, k, onRoute+"general: {a: 1, check: {b: 1}, tags: {x: 1, k: 1}, empty: {}}")))
}

// Items for one direction of the traffic are left out of the other one's part, and so is the
// field that says so.
func TestDirections(t *testing.T) {
	k := mustCompile(t, `
directions: {lists: [logs, metrics.*.of], field: match.mode, gateway: IN, waypoint: OUT}
strategy: {allowed: [patch]}
lists: [{path: metrics, default: all}, {path: metrics.*.of, key: name}]`)
	p := spec(t, k, onRoute+`
other: 1
logs: [{match: {mode: OUT}, a: 1}]
metrics: [{every: 1s, of: [{name: x, match: {mode: IN}, a: 1}, {name: k, match: {mode: OUT, z: 1}, a: 2}, {name: z, a: 3}, {name: w, match: {mode: BOTH}}, 5]}]`)
	require.NoError(t, p.Invalid)
	assert.Equal(t, []string{
		"metrics.all.every=1s", "metrics.all.of=[map[a:1 name:x] map[a:3 name:z] map[name:w] 5]", "other=1",
	}, rulesIn(&p.Policy, 0))
	assert.Equal(t, []string{
		"logs=[map[a:1]]", "metrics.all.every=1s", "metrics.all.of=[map[a:2 match:map[z:1] name:k] map[a:3 name:z] map[name:w] 5]", "other=1",
	}, rulesIn(&p.Policy, 1))
	only := spec(t, k, onRoute+"logs: [{match: {mode: OUT}, a: 1}]")
	assert.Empty(t, only.Blocks)
	assert.False(t, only.Empty(), "it has a rule at waypoints")
}

// Rules that have no effect at some places, and items for the listeners of a port.
func TestPlaces(t *testing.T) {
	k := mustCompile(t, `
ports: ports
ignoreOn:
- {where: PortItem, rules: [all.a]}
- {where: Listener, rules: [all.b, ports.*.b]}
- {where: AboveListener, rules: [all.c]}
- {where: Merged, rules: [all.e], target: HTTPRoute}
- {where: Merged, rules: [all.d], target: Gateway}
- {route: GRPCRoute, rules: [all.d]}
- {beside: Other.example.com, rules: [all.e]}
strategy: {allowed: [patch]}
lists: [{path: ports, key: port}]`)
	p := spec(t, k, onRoute+`
all: {a: 1, b: 2, c: 3, d: 4, e: 5}
ports: [{port: 80, a: 5, b: 6}, {port: 90, a: 7}]`)
	require.NoError(t, p.Invalid)
	for want, at := range map[string]policykind.Place{
		"all.a=1 all.b=2 all.d=4 all.e=5":                                    {},
		"all.a=1 all.c=3 all.d=4 all.e=5":                                    {Route: "HTTPRoute", Listener: true},
		"all.b=2 all.d=4 all.e=5":                                            {Port: "70"},
		"all.c=3 all.d=4 all.e=5":                                            {Port: "70", Listener: true},
		"all.b=2 all.d=4 all.e=5 ports.80.a=5 ports.80.b=6 ports.80.port=80": {Port: "80"},
		"all.c=3 all.e=5 ports.80.a=5 ports.80.port=80":                      {Port: "80", Listener: true, Route: "GRPCRoute"},
		"all.c=3 ports.90.a=7 ports.90.port=90":                              {Port: "90", Listener: true, Route: "GRPCRoute", Merged: true},
		"all.a=1 all.b=2 all.d=4":                                            {Merged: true},
		"all.a=1 all.c=3 all.d=4":                                            {Beside: true, Listener: true},
	} {
		assert.Equal(t, want, strings.Join(rulesIn(&p.Policy, p.PartAt(at)), " "))
	}
	assert.True(t, p.HasPort("90"))
	assert.False(t, p.HasPort("70"))
	assert.False(t, p.OnlyForPorts())
	assert.True(t, spec(t, k, onRoute+"ports: [{port: 80, a: 5}]").OnlyForPorts())
	assert.False(t, spec(t, k, onRoute+"all: {c: 3}").OnlyForPorts())

	var many strings.Builder
	for i := range 200 {
		fmt.Fprintf(&many, "\nf%d: 1", i)
	}
	many.WriteString("\nports:")
	for i := range 50 {
		fmt.Fprintf(&many, "\n- {port: %d}", i)
	}
	assert.ErrorContains(t, spec(t, k, onRoute+many.String()).Invalid, "must have at most 16384 fields for all ports")
}
