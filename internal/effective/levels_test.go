package effective_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// chainOf formats a path with all its elements, and the policies on it from the
// highest to the lowest, as in "Gateway infra/g > Listener infra/g#http | a b".
func chainOf(e *effective.Effective) string {
	var elements, policies []string
	for _, x := range e.Path.Elements() {
		elements = append(elements, x.String())
	}
	for _, o := range e.Outcomes {
		policies = append(policies, o.Policy.Name)
	}
	return strings.TrimSpace(strings.Join(elements, " > ") + " | " + strings.Join(policies, " "))
}

// chains formats all paths of a kind that have a policy.
func chains(t testing.TB, v *snapshot.View, kind string) []string {
	t.Helper()
	var out []string
	for _, e := range walked(t, v, effective.Scope{All: true}) {
		if e.Kind.Kind == kind {
			out = append(out, chainOf(e))
		}
	}
	return out
}

// probe returns a profile of a kind that can target any object.
func probe(spec string) string {
	return worlds.ClassProfileDoc("inherited", "Probe", "targets: {fields: [targetRefs], namespaces: free, classFrom: ['*']}\nstrategy: {allowed: [merge]}\n"+spec)
}

// probes is a policy for each target, named, in namespace app; each sets a rule
// of its own.
func probes(targets ...string) string {
	var out []string
	for _, target := range targets {
		name, ref, _ := strings.Cut(target, ": ")
		out = append(out, policyDoc("Probe", "app", name, fmt.Sprintf("targetRefs: [{%s}]\n'%s': 1", ref, name)))
	}
	return docs(out...)
}

// everywhere has a policy on each level of two paths: by a listener of the
// gateway, and by one of the same name of a ListenerSet.
var everywhere = docs(
	"kind: GatewayClass\nmetadata: {name: c}",
	gatewayDoc("g", "c", "http"), worlds.SetDoc("sets", "s", "g", "http"),
	worlds.RouteTo("HTTPRoute", "app", "r", "[{name: x, backendRefs: [{name: b, port: 80}]}]", worlds.ToGateway("g"), worlds.ToSet("sets", "s")),
	worlds.ServiceDoc("app", "b", 80, 81),
	probes(
		"class: kind: GatewayClass, name: c",
		"gateway-ns: kind: Namespace, name: infra",
		"gateway: kind: Gateway, name: g, namespace: infra",
		"listener: kind: Gateway, name: g, namespace: infra, sectionName: http",
		"set: kind: ListenerSet, name: s, namespace: sets",
		"set-listener: kind: ListenerSet, name: s, namespace: sets, sectionName: http",
		"route-ns: kind: Namespace, name: app",
		"route: kind: HTTPRoute, name: r",
		"rule: kind: HTTPRoute, name: r, sectionName: x",
		"backend: kind: Service, name: b",
		"port-80: kind: Service, name: b, sectionName: p80",
		"port-81: kind: Service, name: b, port: 81",
		"no-rule: kind: HTTPRoute, name: r, sectionName: y0",
		"no-listener: kind: Gateway, name: g, namespace: infra, sectionName: https",
	),
)

// SEMANTICS section 1: the levels of a kind decide where its paths end, and which
// policies are on them.
func TestLevels(t *testing.T) {
	tests := map[string]struct {
		levels string
		want   []string
	}{
		"all of them": {
			"[GatewayClass, GatewayNamespace, Gateway, ListenerSet, Listener, RouteNamespace, Route, Rule, Backend]", []string{
				"GatewayClass c > Namespace infra > Gateway infra/g > Listener infra/g#http > Namespace app > HTTPRoute app/r > HTTPRouteRule app/r#x > Service app/b#80 | class gateway-ns gateway listener route-ns route rule backend port-80",
				"GatewayClass c > Namespace infra > Gateway infra/g > ListenerSet sets/s > Listener sets/s#http > Namespace app > HTTPRoute app/r > HTTPRouteRule app/r#x > Service app/b#80 | class gateway-ns gateway set set-listener route-ns route rule backend port-80",
			},
		},
		"default levels, if the profile has none": {
			"[]", []string{
				"GatewayClass c > Gateway infra/g > Listener infra/g#http > HTTPRoute app/r > HTTPRouteRule app/r#x | class gateway listener route rule",
				"GatewayClass c > Gateway infra/g > ListenerSet sets/s > Listener sets/s#http > HTTPRoute app/r > HTTPRouteRule app/r#x | class gateway set set-listener route rule",
			},
		},
		"to the gateway": {"[GatewayClass, Gateway]", []string{"GatewayClass c > Gateway infra/g | class gateway"}},
		"to the gateway, its namespace above it": {
			"[GatewayNamespace, Gateway]", []string{"GatewayClass c > Namespace infra > Gateway infra/g | gateway-ns gateway"},
		},
		"the class alone": {"[GatewayClass]", []string{"GatewayClass c > Gateway infra/g | class"}},
		"to the listener": {
			"[Gateway, ListenerSet, Listener]", []string{
				"GatewayClass c > Gateway infra/g > Listener infra/g#http | gateway listener",
				"GatewayClass c > Gateway infra/g > ListenerSet sets/s > Listener sets/s#http | gateway set set-listener",
			},
		},
		"to the listener set: its listeners are where it ends": {
			"[ListenerSet]", []string{"GatewayClass c > Gateway infra/g > ListenerSet sets/s > Listener sets/s#http | set"},
		},
		"to the route": {
			"[Gateway, Route]", []string{
				"GatewayClass c > Gateway infra/g > Listener infra/g#http > HTTPRoute app/r | gateway route",
				"GatewayClass c > Gateway infra/g > ListenerSet sets/s > Listener sets/s#http > HTTPRoute app/r | gateway route",
			},
		},
		"the route's namespace ends at the route": {
			"[Listener, RouteNamespace]", []string{
				"GatewayClass c > Gateway infra/g > Listener infra/g#http > Namespace app > HTTPRoute app/r | listener route-ns",
				"GatewayClass c > Gateway infra/g > ListenerSet sets/s > Listener sets/s#http > Namespace app > HTTPRoute app/r | set-listener route-ns",
			},
		},
		"the rule without the route": {
			"[Gateway, Rule]", []string{
				"GatewayClass c > Gateway infra/g > Listener infra/g#http > HTTPRoute app/r > HTTPRouteRule app/r#x | gateway rule",
				"GatewayClass c > Gateway infra/g > ListenerSet sets/s > Listener sets/s#http > HTTPRoute app/r > HTTPRouteRule app/r#x | gateway rule",
			},
		},
		"to the backend": {
			"[GatewayClass, Backend]", []string{
				"GatewayClass c > Gateway infra/g > Listener infra/g#http > HTTPRoute app/r > HTTPRouteRule app/r#x > Service app/b#80 | class backend port-80",
				"GatewayClass c > Gateway infra/g > ListenerSet sets/s > Listener sets/s#http > HTTPRoute app/r > HTTPRouteRule app/r#x > Service app/b#80 | class backend port-80",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, chains(t, world(t, docs(probe("levels: "+test.levels), everywhere)), "Probe"))
		})
	}
}

// SEMANTICS section 7, ListenerSets.
func TestListenerSets(t *testing.T) {
	const own, bySet = "GatewayClass c > Gateway infra/g > Listener infra/g#http", "GatewayClass c > Gateway infra/g > ListenerSet sets/s > Listener sets/s#http"
	closed := strings.Replace(gatewayDoc("g", "c", "http"), "allowedListeners: {namespaces: {from: All}}", "", 1)
	labelled := strings.Replace(gatewayDoc("g", "c", "http"), "{from: All}", "{from: Selector, selector: {matchLabels: {sets: welcome}}}", 1)
	set, other := worlds.SetDoc("sets", "s", "g", "http"), worlds.SetDoc("sets", "t", "g", "http")
	route := func(parents ...string) string { return worlds.RouteTo("HTTPRoute", "app", "r", "[{}]", parents...) }
	tests := map[string]struct {
		objects []string
		want    []string
	}{
		"a set that its gateway does not admit adds no listener": {
			[]string{closed, set, route(worlds.ToSet("sets", "s"), worlds.ToGateway("g"))}, []string{own + " > HTTPRoute app/r | gateway route"},
		},
		"a namespace that the gateway's selector admits": {
			[]string{labelled, set, "kind: Namespace\nmetadata: {name: sets, labels: {sets: welcome}}", route(worlds.ToSet("sets", "s"))},
			[]string{bySet + " > HTTPRoute app/r | gateway set route"},
		},
		"a namespace that the gateway's selector does not admit": {
			[]string{labelled, set, "kind: Namespace\nmetadata: {name: sets}", route(worlds.ToSet("sets", "s"))}, nil,
		},
		"a parentRef to the gateway never reaches the listeners of its sets": {
			[]string{gatewayDoc("g", "c"), set, route(worlds.ToGateway("g"))}, nil,
		},
		"by two sets and the gateway itself, each once": {
			[]string{gatewayDoc("g", "c", "http"), set, other, route(worlds.ToSet("sets", "t"), worlds.ToSet("sets", "s"), worlds.ToGateway("g"), worlds.ToSet("sets", "s"))},
			[]string{
				own + " > HTTPRoute app/r | gateway route", bySet + " > HTTPRoute app/r | gateway set route",
				"GatewayClass c > Gateway infra/g > ListenerSet sets/t > Listener sets/t#http > HTTPRoute app/r | gateway route",
			},
		},
		"a listener of two sets by a sectionName of one": {
			[]string{gatewayDoc("g", "c", "http"), worlds.SetDoc("sets", "s", "g", "http", "alt"), route("{kind: ListenerSet, namespace: sets, name: s, sectionName: http}")},
			[]string{bySet + " > HTTPRoute app/r | gateway set route"},
		},
		"a set of a missing gateway": {
			[]string{set, route(worlds.ToSet("sets", "s"))}, nil,
		},
		"a missing set": {[]string{gatewayDoc("g", "c", "http"), route(worlds.ToSet("sets", "s"))}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := world(t, docs(append(test.objects, probe("levels: [Gateway, ListenerSet, Route]"), probes(
				"gateway: kind: Gateway, name: g, namespace: infra", "set: kind: ListenerSet, name: s, namespace: sets", "route: kind: HTTPRoute, name: r",
			))...))
			assert.Equal(t, test.want, chains(t, v, "Probe"))
		})
	}
}

// Paths that end at backends.
func TestBackends(t *testing.T) {
	const above = "GatewayClass c > Gateway infra/g > Listener infra/g#http > HTTPRoute app/r > HTTPRouteRule app/r#rule-"
	toB := worlds.GrantDoc("zoo", "t", "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: app}", `{group: "", kind: Service, name: b}`)
	tests := map[string]struct {
		rules string
		more  []string
		short bool
		want  []string
	}{
		"each backend of a rule": {
			rules: "[{backendRefs: [{name: b, port: 80}, {name: other, port: 80}]}]",
			want:  []string{above + "1 > Service app/b#80 | gateway b", above + "1 > Service app/other#80 | gateway"},
		},
		"each port of it": {
			rules: "[{backendRefs: [{name: b, port: 80}, {name: b, port: 81}]}]",
			want:  []string{above + "1 > Service app/b#80 | gateway b", above + "1 > Service app/b#81 | gateway b port-81"},
		},
		"named twice by a rule it is one": {
			rules: "[{backendRefs: [{name: b, port: 80, weight: 1}, {name: b, port: 80, weight: 2}]}]",
			want:  []string{above + "1 > Service app/b#80 | gateway b"},
		},
		"named by two rules": {
			rules: "[{backendRefs: [{name: b, port: 80}]}, {backendRefs: [{name: b, port: 80}]}]",
			want:  []string{above + "1 > Service app/b#80 | gateway b", above + "2 > Service app/b#80 | gateway b"},
		},
		"of no Service": {
			rules: "[{backendRefs: [{group: example.com, kind: Bucket, name: box}]}]",
			want:  []string{above + "1 > Bucket app/box | gateway bucket"},
		},
		"of no Service, with a port": {
			rules: "[{backendRefs: [{group: example.com, kind: Bucket, name: box, port: 81}]}]",
			want:  []string{above + "1 > Bucket app/box#81 | gateway bucket bucket-81"},
		},
		"in another namespace, without a grant": {rules: "[{backendRefs: [{name: b, namespace: zoo, port: 80}]}]"},
		"in another namespace, with a grant": {
			rules: "[{backendRefs: [{name: b, namespace: zoo, port: 80}, {name: ungranted, namespace: zoo, port: 80}]}]", more: []string{toB},
			want: []string{above + "1 > Service zoo/b#80 | gateway zoo-b"},
		},
		"a rule without backends has no path":         {rules: "[{}, {backendRefs: [{name: b, port: 80}]}]", want: []string{above + "2 > Service app/b#80 | gateway b"}},
		"or a short path, if the profile allows it":   {rules: "[{}, {backendRefs: [{name: b, port: 80}]}]", short: true, want: []string{above + "1 | gateway", above + "2 > Service app/b#80 | gateway b"}},
		"but not for a backend that it may not reach": {rules: "[{backendRefs: [{name: b, namespace: zoo, port: 80}]}]", short: true},
		"a missing Service, and its policy":           {rules: "[{backendRefs: [{name: gone, port: 80}]}]", want: []string{above + "1 > Service app/gone#80 | gateway"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := world(t, docs(append(test.more, probe(fmt.Sprintf("levels: [Gateway, Backend]\nshortPaths: %t", test.short)),
				"kind: GatewayClass\nmetadata: {name: c}", gatewayDoc("g", "c", "http"), worlds.RouteTo("HTTPRoute", "app", "r", test.rules, worlds.ToGateway("g")),
				worlds.ServiceDoc("app", "b", 80, 81), worlds.ServiceDoc("zoo", "b", 80),
				probes(
					"gateway: kind: Gateway, name: g, namespace: infra",
					"b: kind: Service, name: b", "port-81: kind: Service, name: b, port: 81", "no-port: kind: Service, name: b, sectionName: p99",
					"zoo-b: kind: Service, name: b, namespace: zoo", "gone: kind: Service, name: gone",
					"bucket: group: example.com, kind: Bucket, name: box", "bucket-81: group: example.com, kind: Bucket, name: box, port: 81",
				))...))
			assert.Equal(t, test.want, chains(t, v, "Probe"))
		})
	}
}

// Every kind of route, on a listener that allows it. A policy kind that lists kinds of
// routes has paths through only these.
func TestRouteKinds(t *testing.T) {
	listeners := ""
	for _, protocol := range []string{"HTTP", "TLS", "TCP", "UDP"} {
		listeners += fmt.Sprintf("  - {name: %s, port: 1, protocol: %s, allowedRoutes: {namespaces: {from: All}}}\n", strings.ToLower(protocol), protocol)
	}
	objects := []string{"kind: Gateway\nmetadata: {namespace: infra, name: g}\nspec:\n  gatewayClassName: c\n  listeners:\n" + listeners}
	for _, kind := range []string{"HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"} {
		objects = append(objects, worlds.RouteTo(kind, "app", "r", "[{}]", worlds.ToGateway("g")))
	}
	objects = append(objects, probes("gateway: kind: Gateway, name: g, namespace: infra"))
	const gateway = "GatewayClass c > Gateway infra/g > Listener infra/g#"
	all := []string{
		gateway + "http > GRPCRoute app/r > GRPCRouteRule app/r#rule-1 | gateway", gateway + "http > HTTPRoute app/r > HTTPRouteRule app/r#rule-1 | gateway",
		gateway + "tls > TCPRoute app/r > TCPRouteRule app/r#rule-1 | gateway", gateway + "tcp > TCPRoute app/r > TCPRouteRule app/r#rule-1 | gateway",
		gateway + "tls > TLSRoute app/r > TLSRouteRule app/r#rule-1 | gateway", gateway + "udp > UDPRoute app/r > UDPRouteRule app/r#rule-1 | gateway",
	}
	for kinds, want := range map[string][]string{
		"": all,
		", kinds: [{group: gateway.networking.k8s.io, kind: '*'}]":                                                                                  all,
		", kinds: [{group: gateway.networking.k8s.io, kind: Gateway}]":                                                                              all,
		", kinds: [{group: gateway.networking.k8s.io, kind: Gateway}, {group: gateway.networking.k8s.io, kind: HTTPRoute}]":                         all[1:2],
		", kinds: [{group: gateway.networking.k8s.io, kind: Gateway}, {group: gateway.networking.k8s.io, kind: UDPRoute}, {group: '*', kind: '*'}]": all,
	} {
		profile := worlds.ClassProfileDoc("inherited", "Probe", "targets: {fields: [targetRefs], namespaces: free"+kinds+"}")
		assert.Equal(t, want, chains(t, world(t, docs(append(objects, profile)...)), "Probe"), kinds)
	}
}

// SEMANTICS section 5: a GatewayClass is targeted from the namespaces in the profile.
func TestGatewayClassPolicyInNamespace(t *testing.T) {
	base := docs("kind: GatewayClass\nmetadata: {name: c}", gatewayDoc("g", "c", "http"), routeDoc("r", "[{}]", "g"))
	policies := docs(
		policyDoc("Probe", "infra", "from-infra", "targetRefs: [{kind: GatewayClass, name: c}]\na: 1"),
		policyDoc("Probe", "app", "from-app", "targetRefs: [{kind: GatewayClass, name: c}]\nb: 1"),
		"kind: Probe\nmetadata: {name: from-cluster}\nspec: {targetRefs: [{kind: GatewayClass, name: c}], c: 1}",
	)
	for from, want := range map[string][]string{
		"[]":      {"GatewayClass c > Gateway infra/g | from-cluster"},
		"[infra]": {"GatewayClass c > Gateway infra/g | from-cluster from-infra"},
		"['*']":   {"GatewayClass c > Gateway infra/g | from-cluster from-app from-infra"},
	} {
		profile := worlds.ClassProfileDoc("inherited", "Probe", "targets: {fields: [targetRefs], classFrom: "+from+"}\nlevels: [GatewayClass, Gateway]")
		assert.Equal(t, want, chains(t, world(t, docs(profile, base, policies)), "Probe"), from)
	}
}

// A policy whose class or Service does not exist has no target and no path.
func TestMissingTargetHasNoPath(t *testing.T) {
	v := world(t, docs(probe("levels: [GatewayClass, Gateway]"), gatewayDoc("g", "c", "http"), probes("class: kind: GatewayClass, name: c")))
	assert.Empty(t, chains(t, v, "Probe"))
	ref := paintRef("app", "class")
	ref.Kind = "Probe"
	out := outcomeOf(t, v, ref)
	assert.Equal(t, "TargetNotFound: GatewayClass c does not exist", string(out.State)+": "+out.Message)
	v = v.With(putChange(t, v, "kind: GatewayClass\nmetadata: {name: c}"))
	assert.Equal(t, []string{"GatewayClass c > Gateway infra/g | class"}, chains(t, v, "Probe"))
}
