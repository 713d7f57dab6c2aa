package guard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// net is a kind whose paths start at Services and end at rules.
var net = worlds.ProfileDoc("Net", "levels: [ServiceNamespace, Service, RouteNamespace, Route, Rule]\nstrategy: {allowed: [merge]}\nblocks: {overrides: [overrides]}")

// netOn is an override of app.
func netOn(targetRef string) string {
	return policyDoc("Net", "app", "top", "targetRefs: ["+targetRef+"]\noverrides: {a: 1}")
}

// meshRoute is a route with the Service app/s as its parent.
func meshRoute(kind, namespace, name, rules string, created int) string {
	doc := worlds.RouteTo(kind, namespace, name, rules, worlds.ToService("app", "s"))
	return strings.Replace(doc, "name: "+name+"}", fmt.Sprintf("name: %s, creationTimestamp: '20%d-01-01T00:00:00Z'}", name, created), 1)
}

// meshCase is a write in a mesh, and the losses of overrides by it, each with a request.
type meshCase struct {
	before string
	write  string // or
	delete string
	want   []string
}

func (c meshCase) run(t *testing.T) {
	t.Helper()
	v := world(t, docs(net, c.before))
	w := guard.Change{Operation: guard.Delete}
	if c.delete != "" {
		w.Before = v.Get(read(t, v, c.delete).Ref())
	} else {
		w = change(v, read(t, v, c.write))
	}
	assert.Equal(t, c.want, lossesWithRequests(t, v, w))
}

func lossesWithRequests(t *testing.T, v *snapshot.View, c guard.Change) []string {
	t.Helper()
	ev := evaluateAs(t, bossAndDev(), "dev", v, c)
	var out []string
	for _, f := range slices.Concat(ev.Denials, ev.Warnings) {
		if strings.HasPrefix(string(f.Code), "Override") && f.Policy != nil {
			out = append(out, fmt.Sprintf("%s %s %s: %s by %s", f.Action, f.Code, f.Policy, f.Request, f.ServedBy))
		}
	}
	return out
}

// Rules of routes at a Service take requests from each other.
func TestMeshRequests(t *testing.T) {
	const (
		onX = "{kind: HTTPRoute, name: r, sectionName: x}"
		onR = "{kind: HTTPRoute, name: r}"
		onS = "{group: '', kind: Service, name: s}"
	)
	service := worlds.ServiceDoc("app", "s", 80, 8080)
	r := func(rules string) string { return meshRoute("HTTPRoute", "app", "r", "["+rules+"]", 20) }
	other := func(rules string, created int) string {
		return meshRoute("HTTPRoute", "app", "other", "["+rules+"]", created)
	}
	consumer := func(rules string) string { return meshRoute("HTTPRoute", "shop", "c", "["+rules+"]", 21) }
	const (
		x      = "{name: x, " + ruleA + "}"
		z      = "{name: z, " + ruleB + "}"
		header = "{name: h, matches: [{path: {value: /a}, headers: [{name: X-Team, value: a}]}]}"
		long   = "{name: l, matches: [{path: {value: /a/long}}]}"
		exact  = "{name: e, matches: [{path: {type: Exact, value: /a}}]}"
	)
	base := func(override string) string { return docs(service, r(x+", "+z), netOn(override)) }
	lost := func(request, by string) []string {
		return []string{"Deny OverrideEvaded Net app/top: " + request + " by " + by}
	}
	for name, c := range map[string]meshCase{
		"a match is respelled":                                {before: base(onX), write: r("{name: x, matches: [{path: {value: /a/}}]}, " + z)},
		"a match is split in two rules":                       {before: base(onR), write: r(x + ", " + long + ", " + z)},
		"a rule is renamed":                                   {before: base(onR), write: r("{name: new, " + ruleA + "}, " + z)},
		"a rule is renamed, with the override on the Service": {before: base(onS), write: r("{name: new, " + ruleA + "}")},
		"rules are reordered":                                 {before: base(onX), write: r(z + ", " + x)},
		"the rule with the override is renamed":               {before: base(onX), write: r("{name: new, " + ruleA + "}, " + z), want: lost("", "")},
		"a longer prefix":                                     {before: base(onX), write: r(x + ", " + z + ", " + long), want: lost("GET http://s.app/a/long", "HTTPRouteRule app/r#l")},
		"a header more":                                       {before: base(onX), write: r(x + ", " + z + ", " + header), want: lost("GET http://s.app/a with x-team: a", "HTTPRouteRule app/r#h")},
		"an exact path":                                       {before: base(onX), write: r(x + ", " + z + ", " + exact), want: lost("GET http://s.app/a", "HTTPRouteRule app/r#e")},
		"a rule for all paths takes what is left":             {before: docs(service, r(x+", {name: z}"), netOn(onX)), write: r("{name: z}"), want: lost("GET http://s.app/a", "HTTPRouteRule app/r#z")},
		"nothing takes what is left":                          {before: base(onX), write: r(z)},
		"an older route":                                      {before: base(onR), write: other(x, 10), want: lost("GET http://s.app/a", "HTTPRouteRule app/other#x")},
		"a younger route":                                     {before: base(onR), write: other(x, 30)},
		"a younger route with a longer prefix":                {before: base(onR), write: other(long, 30), want: lost("GET http://s.app/a/long", "HTTPRouteRule app/other#l")},
		"another route, with the override on the Service":     {before: base(onS), write: other(long, 30)},
		"the route is deleted, another one stays":             {before: docs(base(onR), other("{name: all}", 30)), delete: r(x), want: lost("GET http://s.app/a", "HTTPRouteRule app/other#all")},
		"the route is deleted, and none stays":                {before: base(onR), delete: r(x)},
		"the route is detached":                               {before: base(onR), write: worlds.RouteTo("HTTPRoute", "app", "r", "["+x+"]")},
		"an HTTPRoute's calls go to a GRPCRoute": {
			before: base(onR), write: meshRoute("GRPCRoute", "app", "g", "[{name: g}]", 30),
			want: []string{"Warn OverrideEvaded Net app/top: gRPC http://s.app/a/ by GRPCRouteRule app/g#g"},
		},
		"a consumer route of another namespace": {
			before: base(onR), write: consumer(x),
			want: []string{"Warn OverrideEvaded Net app/top: GET http://s.app/a from namespace shop by HTTPRouteRule shop/c#x"},
		},
		"a consumer route, with the override on the Service":   {before: base(onS), write: consumer(x)},
		"a consumer route for other paths":                     {before: base(onR), write: consumer("{name: other, " + ruleC + "}")},
		"a producer route takes nothing from a consumer route": {before: docs(service, consumer(x), policyDoc("Net", "shop", "top", "targetRefs: [{kind: HTTPRoute, name: c}]\noverrides: {a: 1}")), write: r(x)},
		"a consumer route with an override gives way to a producer": {
			before: docs(service, r(x), consumer(x), policyDoc("Net", "shop", "top", "targetRefs: [{kind: HTTPRoute, name: c}]\noverrides: {a: 1}")), delete: consumer(x),
			want: []string{"Deny OverrideEvaded Net shop/top: GET http://s.app/a from namespace shop by HTTPRouteRule app/r#x"},
		},
		"a port of the Service is given another name, by which a route is on it": {
			before: docs(service, other("{name: all}", 30), strings.Replace(r(x), "name: s}", "name: s, sectionName: p8080}", 1), netOn(onR)),
			write:  strings.Replace(service, "p8080", "web", 1),
			want:   lost("GET http://s.app:8080/a", "HTTPRouteRule app/other#all"),
		},
		"a port of the Service is given the name by which an older route is on it": {
			before: docs(base(onR), strings.Replace(other(x, 10), "name: s}", "name: s, sectionName: web}", 1)),
			write:  strings.Replace(service, "p8080", "web", 1),
			want:   lost("GET http://s.app:8080/a", "HTTPRouteRule app/other#x"),
		},
		"a route moves to one port, and another one takes the rest": {
			before: docs(service, other("{name: all}", 30), r(x), netOn(onR)), write: strings.Replace(r(x), "name: s}", "name: s, port: 80}", 1),
			want: lost("GET http://s.app:8080/a", "HTTPRouteRule app/other#all"),
		},
		"a route moves to one port, with the override on the Service": {
			before: docs(service, other("{name: all}", 30), r(x), netOn(onS)), write: strings.Replace(r(x), "name: s}", "name: s, port: 80}", 1),
		},
		"a route moves to another port": {
			before: docs(service, strings.Replace(r(x), "name: s}", "name: s, port: 80}", 1), netOn("{group: '', kind: Service, name: s, sectionName: p80}")),
			write:  strings.Replace(r(x), "name: s}", "name: s, port: 8080}", 1),
			want:   lost("", ""),
		},
		"a Service without ports": {
			before: docs(worlds.ServiceDoc("app", "s"), r(x), netOn(onX)), write: r(x + ", " + long), want: lost("GET http://s.app/a/long", "HTTPRouteRule app/r#l"),
		},
		"a regular expression beside a prefix": {
			before: base(onX), write: r(x + ", {name: re, matches: [{path: {type: RegularExpression, value: '/a/.*'}}]}"),
			want: []string{"Warn OverrideEvaded Net app/top: GET http://s.app/a/ by HTTPRouteRule app/r#re"},
		},
	} {
		t.Run(name, c.run)
	}
}
