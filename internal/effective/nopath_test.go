package effective_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/test/worlds"
)

// narrowDoc is a gateway whose listener "web" allows HTTPRoutes of its own namespace
// for one hostname, "all" those of any namespace for it, and "tcp" TCPRoutes.
const narrowDoc = `kind: Gateway
metadata: {namespace: infra, name: narrow}
spec:
  gatewayClassName: c
  listeners:
  - {name: web, port: 80, protocol: HTTP}
  - {name: all, port: 81, protocol: HTTP, hostname: a.example.com, allowedRoutes: {namespaces: {from: All}}}
  - {name: tcp, port: 82, protocol: TCP, allowedRoutes: {namespaces: {from: All}}}`

// SEMANTICS section 6, NoPath, and section 7: why a path is missing.
func TestNoPath(t *testing.T) {
	var (
		gw    = gatewayDoc("g", "c", "http")
		route = func(parents ...string) string {
			return docs(gw, narrowDoc, worlds.RouteTo("HTTPRoute", "app", "r", "[{}]", parents...))
		}
		narrow = func(rest string) string { return "{namespace: infra, name: narrow, " + rest + "}" }
		named  = func(host string) string {
			return docs(narrowDoc, "kind: HTTPRoute\nmetadata: {namespace: app, name: r}\nspec: {hostnames: ["+host+"], parentRefs: ["+narrow("sectionName: all")+"]}")
		}
		backends = worlds.ProfileDoc("Seal", "levels: [Gateway, Route, Rule, Backend]")
		services = worlds.ProfileDoc("Mesh", "levels: [Service, Route, Rule]")
		free     = worlds.ClassProfileDoc("inherited", "Free", `
targets: {fields: [targetRefs], namespaces: consumer, classFrom: ["*"]}
levels: [Mesh, GatewayClass, GatewayNamespace, Gateway, RouteNamespace, Route, Rule]`)
		all     = worlds.ProfileDoc("All", "levels: [Mesh, GatewayClass, GatewayNamespace, ServiceNamespace, Service, RouteNamespace, Route, Rule, Backend]")
		mesh    = worlds.ClassProfileDoc("inherited", "Mesh", "targets: {fields: [targetRefs], implicit: {meshNamespace: infra}}\nlevels: [Mesh, Gateway, Route, Rule]")
		fields  = worlds.ProfileDoc("Field", "strategy: {allowed: [merge]}\nfields: [{rule: a, route: 'spec.rules[*].filters[*].retry.codes'}]")
		web     = worlds.ClassProfileDoc("inherited", "Web", "targets: {fields: [targetRefs], kinds: [{group: gateway.networking.k8s.io, kind: Gateway}, {group: gateway.networking.k8s.io, kind: HTTPRoute}, {group: gateway.networking.k8s.io, kind: GRPCRoute}]}")
		to      = func(service string) string { return "[{backendRefs: [{name: " + service + ", port: 80}]}]" }
		toOther = "[{backendRefs: [{name: s, namespace: other, port: 80}]}]"
	)
	tests := map[string]struct {
		world, kind, namespace, target string
	}{
		"no parentRefs": {route(), "Paint", "app", "kind: HTTPRoute, name: r"},
		"default gateways": {
			"kind: HTTPRoute\nmetadata: {namespace: app, name: r}\nspec: {useDefaultGateways: All}", "Paint", "app", "kind: HTTPRoute, name: r",
		},
		"a parent that does not exist": {route(worlds.ToGateway("none")), "Paint", "app", "kind: HTTPRoute, name: r"},
		"a parent of a kind that is not read": {
			route("{group: networking.istio.io, kind: ServiceEntry, name: out}"), "Paint", "app", "kind: HTTPRoute, name: r",
		},
		"a Service as the parent, for a kind without a mesh": {
			docs(worlds.ServiceDoc("app", "s", 80), worlds.RouteTo("HTTPRoute", "app", "r", "[{}]", worlds.ToService("app", "s"))), "Paint", "app", "kind: HTTPRoute, name: r",
		},
		"a listener that does not exist": {route(narrow("sectionName: none")), "Paint", "app", "kind: HTTPRoute, name: r"},
		"a port of no listener":          {route(narrow("port: 99")), "Paint", "app", "kind: HTTPRoute, name: r"},
		"a listener with another port": {
			route(narrow("sectionName: web, port: 81")), "Paint", "app", "kind: HTTPRoute, name: r",
		},
		"a listener for its own namespace": {
			route(narrow("sectionName: web")), "Paint", "app", "kind: HTTPRoute, name: r",
		},
		"a listener for another kind": {
			route(narrow("sectionName: tcp")), "Paint", "app", "kind: HTTPRoute, name: r",
		},
		"a listener for another hostname": {
			named("b.example.com"), "Paint", "app", "kind: HTTPRoute, name: r",
		},
		"one reason for each parent": {
			route(worlds.ToGateway("a"), worlds.ToGateway("b")), "Paint", "app", "kind: HTTPRoute, name: r",
		},
		"many parents": {
			route(worlds.ToGateway("a"), worlds.ToGateway("b"), worlds.ToGateway("c"), worlds.ToGateway("d"), worlds.ToGateway("e")), "Paint", "app", "kind: HTTPRoute, name: r",
		},
		"a listener set of no gateway": {
			docs(worlds.SetDoc("app", "s", "none", "x"), worlds.RouteTo("HTTPRoute", "app", "r", "[{}]", worlds.ToSet("app", "s"))), "Paint", "app", "kind: HTTPRoute, name: r",
		},
		"a listener set without such a listener": {
			docs(gw, worlds.SetDoc("app", "s", "g", "x"), worlds.RouteTo("HTTPRoute", "app", "r", "[{}]", "{kind: ListenerSet, name: s, sectionName: none}")), "Paint", "app", "kind: HTTPRoute, name: r",
		},
		"a route without rules": {
			docs(gw, worlds.RouteTo("GRPCRoute", "app", "r", "[]", worlds.ToGateway("g"))), "Paint", "app", "kind: GRPCRoute, name: r",
		},
		"a route without backends": {docs(gw, backends, routeDoc("r", "[{}]", "g")), "Seal", "app", "kind: HTTPRoute, name: r"},
		"a rule without backends": {
			docs(gw, backends, routeDoc("r", "[{name: x}, {backendRefs: [{name: s, port: 80}]}]", "g")), "Seal", "app", "kind: HTTPRoute, name: r, sectionName: x",
		},
		"a backend without a grant": {
			docs(gw, backends, routeDoc("r", toOther, "g")), "Seal", "app", "kind: HTTPRoute, name: r",
		},

		"a gateway without routes": {gw, "Paint", "infra", "kind: Gateway, name: g"},
		"a gateway whose routes are not allowed": {
			route(narrow("sectionName: web")), "Paint", "infra", "kind: Gateway, name: narrow",
		},
		"a listener without routes": {
			docs(narrowDoc, routeDoc("r", "[{}]", "narrow")), "Paint", "infra", "kind: Gateway, name: narrow, sectionName: tcp",
		},
		"a gateway whose routes have no backends": {
			docs(gw, backends, routeDoc("r", "[{}]", "g")), "Seal", "infra", "kind: Gateway, name: g",
		},
		"a listener set that is not admitted": {
			docs(narrowDoc, worlds.SetDoc("infra", "s", "narrow", "x")), "Paint", "infra", "kind: ListenerSet, name: s",
		},
		"a listener set of a gateway that does not exist": {
			worlds.SetDoc("infra", "s", "none", "x"), "Paint", "infra", "kind: ListenerSet, name: s",
		},
		"a listener set of a parent that is not read": {
			"kind: ListenerSet\nmetadata: {namespace: infra, name: s}\nspec: {parentRef: {group: x.io, kind: Why, name: z}, listeners: [{name: x, port: 80, protocol: HTTP}]}", "Paint", "infra", "kind: ListenerSet, name: s",
		},
		"a listener set without routes": {
			docs(gw, worlds.SetDoc("infra", "s", "g", "x"), routeDoc("r", "[{}]", "g")), "Paint", "infra", "kind: ListenerSet, name: s",
		},

		"a backend of no route": {docs(gw, backends, worlds.ServiceDoc("app", "s", 80)), "Seal", "app", `group: "", kind: Service, name: s`},
		"a port that no route sends to": {
			docs(gw, backends, worlds.ServiceDoc("app", "s", 80, 81), routeDoc("r", to("s"), "g")), "Seal", "app", `group: "", kind: Service, name: s, sectionName: p81`,
		},
		"a backend of a route without a parent": {
			docs(backends, worlds.ServiceDoc("app", "s", 80), routeDoc("r", to("s"))), "Seal", "app", `group: "", kind: Service, name: s`,
		},
		"a backend of another namespace's route": {
			docs(gw, backends, worlds.ServiceDoc("other", "s", 80), routeDoc("r", toOther, "g")), "Seal", "other", `group: "", kind: Service, name: s`,
		},
		"a backend of another namespace's route without a parent": {
			docs(backends, worlds.ServiceDoc("other", "s", 80), routeDoc("r", toOther),
				worlds.GrantDoc("other", "all", "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: app}", `{group: "", kind: Service}`)), "Seal", "other", `group: "", kind: Service, name: s`,
		},
		"a parent of no route": {docs(services, worlds.ServiceDoc("app", "s", 80)), "Mesh", "app", `group: "", kind: Service, name: s`},
		"a parent that lacks the port": {
			docs(services, worlds.ServiceDoc("app", "s", 80), worlds.RouteTo("HTTPRoute", "app", "r", "[{}]", `{group: "", kind: Service, name: s, port: 81}`)), "Mesh", "app", "kind: HTTPRoute, name: r",
		},
		"a gateway as the parent, for a kind of a mesh": {
			docs(gw, services, routeDoc("r", "[{}]", "g")), "Mesh", "app", "kind: HTTPRoute, name: r",
		},

		"a class of no gateway": {
			docs(free, "kind: GatewayClass\nmetadata: {name: c}"), "Free", "infra", "kind: GatewayClass, name: c",
		},
		"a class whose gateways have no routes": {
			docs(free, "kind: GatewayClass\nmetadata: {name: c}", gw, "kind: GatewayClass\nmetadata: {name: d}", gatewayDoc("h", "d", "http"), routeDoc("r", "[{}]", "h")), "Free", "infra", "kind: GatewayClass, name: c",
		},
		"a namespace": {
			docs(free, gw), "Free", "infra", `group: "", kind: Namespace, name: infra`,
		},
		"a namespace, for a kind of a mesh, too": {
			docs(all, gw), "All", "infra", `group: "", kind: Namespace, name: infra`,
		},
		"the mesh": {mesh, "Mesh", "infra", ""},
		"a service, for a kind that ends there": {
			docs(all, worlds.ServiceDoc("app", "s", 80)), "All", "app", `group: "", kind: Service, name: s`,
		},
		"fields that no rule has": {
			docs(fields, gw, routeDoc("r", "[{}]", "g")), "Field", "app", "kind: HTTPRoute, name: r",
		},
		"kinds of routes that it does not apply to": {
			docs(web, narrowDoc, worlds.RouteTo("TCPRoute", "app", "r", "[{}]", narrow("sectionName: tcp"))), "Web", "infra", "kind: Gateway, name: narrow",
		},
		"a route of another namespace, on whose paths no client is of the policy's": {
			docs(free, gw, routeDoc("r", "[{}]", "g")), "Free", "shop", "kind: HTTPRoute, namespace: app, name: r",
		},
		"a gateway of another namespace, on whose paths no client is of the policy's": {
			docs(free, gw, routeDoc("r", "[{}]", "g")), "Free", "shop", "kind: Gateway, namespace: infra, name: g",
		},
	}
	var got []string
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := docs(test.world, policyDoc(test.kind, test.namespace, "p", strings.ReplaceAll("targetRefs: [{"+test.target+"}]", "[{}]", "[]")+"\na: 1"))
			v := world(t, text)
			p := v.Get(api.Ref{Group: worlds.Group, Kind: test.kind, Namespace: test.namespace, Name: "p"}).(*policykind.Policy)
			out := outcomeOf(t, v, p.Ref())
			require.Equal(t, api.NoPath, out.State, out.Message)
			why, advice := effective.NoPath(v, p, out.Targets[0])
			assert.Equal(t, out.Message, why)
			got = append(got, strings.TrimSuffix(name+": "+why+"; "+advice, "; "))
		})
	}
	slices.Sort(got)
	golden(t, "nopath", got)
}

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares messages with a golden file, one a line.
func golden(t *testing.T, name string, messages []string) {
	t.Helper()
	file, got := filepath.Join("testdata", name+".golden"), strings.Join(messages, "\n")+"\n"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, file)
}

// For kinds of every shape, each policy without a path has a specific reason. If paths
// go through its target, the reason is that they are of clients in other namespaces.
func TestNoPathAlwaysHasAReasonInRandomWorlds(t *testing.T) {
	reasons := 0
	for seed := range uint64(300) {
		w := newRandomWorld(t, newDice(seed))
		var sum effective.Outcomes
		paths := make(map[api.PolicyKind]map[api.Ref]bool) // what they go through
		require.NoError(t, effective.NewEngine().Walk(w.View, effective.Scope{All: true}, true, unlimited(), func(e *effective.Effective) error {
			sum.Add(e)
			if paths[e.Kind.Ref()] == nil {
				paths[e.Kind.Ref()] = make(map[api.Ref]bool)
			}
			for _, at := range e.Path.Elements() {
				paths[e.Kind.Ref()][api.Ref{Kind: at.Kind, Namespace: at.Namespace, Name: at.Name}] = true
			}
			return nil
		}))
		for _, k := range w.Kinds() {
			for p := range w.Policies(k.Ref()) {
				out := sum.Of(w.View, p)
				accepted := slices.IndexFunc(out.Targets, func(t api.Target) bool { return t.Accepted })
				if out.State != api.NoPath || accepted < 0 || p.Unread != "" || effective.NoLevelReason(p, out.Targets[accepted]) != "" {
					continue
				}
				reasons++
				at := out.Targets[accepted]
				require.NotContains(t, out.Message, "no path for policies", "seed %d: %s", seed, p.Ref())
				if at.Section == "" && at.Port == 0 && paths[k.Ref()][api.Ref{Kind: at.Target.Kind, Namespace: at.Target.Namespace, Name: at.Target.Name}] {
					require.Contains(t, out.Message, "apply only to clients of that namespace", "seed %d: %s", seed, p.Ref())
				}
			}
		}
	}
	assert.Greater(t, reasons, 100)
}
