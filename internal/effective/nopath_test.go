package effective_test

import (
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
	const (
		attach  = "change that or choose another target"
		onRoute = "it takes effect on routes that are attached later"
		onDo    = "it takes effect on routes that do so later"
		r       = "HTTPRoute app/r is not attached to any Gateway: "
	)
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
		why, advice                    string
	}{
		"no parentRefs": {route(), "Paint", "app", "kind: HTTPRoute, name: r", r + "it has no parentRefs", attach},
		"default gateways": {
			"kind: HTTPRoute\nmetadata: {namespace: app, name: r}\nspec: {useDefaultGateways: All}", "Paint", "app", "kind: HTTPRoute, name: r",
			r + "it uses default gateways, which are not supported", attach,
		},
		"a parent that does not exist": {route(worlds.ToGateway("none")), "Paint", "app", "kind: HTTPRoute, name: r", r + "Gateway infra/none does not exist", attach},
		"a parent of a kind that is not read": {
			route("{group: networking.istio.io, kind: ServiceEntry, name: out}"), "Paint", "app", "kind: HTTPRoute, name: r",
			r + "ServiceEntry app/out is of kind ServiceEntry.networking.istio.io, which is not supported", attach,
		},
		"a Service as the parent, for a kind without a mesh": {
			docs(worlds.ServiceDoc("app", "s", 80), worlds.RouteTo("HTTPRoute", "app", "r", "[{}]", worlds.ToService("app", "s"))), "Paint", "app", "kind: HTTPRoute, name: r",
			r + "policies of kind Paint do not apply to routes of Service app/s", attach,
		},
		"a listener that does not exist": {route(narrow("sectionName: none")), "Paint", "app", "kind: HTTPRoute, name: r", r + "Gateway infra/narrow has no listener named none", attach},
		"a port of no listener":          {route(narrow("port: 99")), "Paint", "app", "kind: HTTPRoute, name: r", r + "Gateway infra/narrow has no listener with port 99", attach},
		"a listener with another port": {
			route(narrow("sectionName: web, port: 81")), "Paint", "app", "kind: HTTPRoute, name: r", r + "Gateway infra/narrow has no listener named web with port 81", attach,
		},
		"a listener for its own namespace": {
			route(narrow("sectionName: web")), "Paint", "app", "kind: HTTPRoute, name: r", r + "no listener named web of Gateway infra/narrow allows routes from namespace app", attach,
		},
		"a listener for another kind": {
			route(narrow("sectionName: tcp")), "Paint", "app", "kind: HTTPRoute, name: r",
			r + "no listener named tcp of Gateway infra/narrow allows routes of kind HTTPRoute from namespace app", attach,
		},
		"a listener for another hostname": {
			named("b.example.com"), "Paint", "app", "kind: HTTPRoute, name: r",
			r + "no listener named all of Gateway infra/narrow that allows the route has a hostname that intersects with its hostnames", attach,
		},
		"one reason for each parent": {
			route(worlds.ToGateway("a"), worlds.ToGateway("b")), "Paint", "app", "kind: HTTPRoute, name: r", r + "Gateway infra/a does not exist, Gateway infra/b does not exist", attach,
		},
		"many parents": {
			route(worlds.ToGateway("a"), worlds.ToGateway("b"), worlds.ToGateway("c"), worlds.ToGateway("d"), worlds.ToGateway("e")), "Paint", "app", "kind: HTTPRoute, name: r",
			r + "Gateway infra/a does not exist, Gateway infra/b does not exist, Gateway infra/c does not exist, and 2 more", attach,
		},
		"a listener set of no gateway": {
			docs(worlds.SetDoc("app", "s", "none", "x"), worlds.RouteTo("HTTPRoute", "app", "r", "[{}]", worlds.ToSet("app", "s"))), "Paint", "app", "kind: HTTPRoute, name: r",
			r + "ListenerSet app/s is not attached to any Gateway", attach,
		},
		"a listener set without such a listener": {
			docs(gw, worlds.SetDoc("app", "s", "g", "x"), worlds.RouteTo("HTTPRoute", "app", "r", "[{}]", "{kind: ListenerSet, name: s, sectionName: none}")), "Paint", "app", "kind: HTTPRoute, name: r",
			r + "ListenerSet app/s has no listener named none", attach,
		},
		"a route without rules": {
			docs(gw, worlds.RouteTo("GRPCRoute", "app", "r", "[]", worlds.ToGateway("g"))), "Paint", "app", "kind: GRPCRoute, name: r", "GRPCRoute app/r has no rules", attach,
		},
		"a route without backends": {docs(gw, backends, routeDoc("r", "[{}]", "g")), "Seal", "app", "kind: HTTPRoute, name: r", "HTTPRoute app/r has no backends", attach},
		"a rule without backends": {
			docs(gw, backends, routeDoc("r", "[{name: x}, {backendRefs: [{name: s, port: 80}]}]", "g")), "Seal", "app", "kind: HTTPRoute, name: r, sectionName: x",
			"HTTPRoute app/r section x has no backends", attach,
		},
		"a backend without a grant": {
			docs(gw, backends, routeDoc("r", toOther, "g")), "Seal", "app", "kind: HTTPRoute, name: r",
			"no ReferenceGrant in namespace other allows HTTPRoute app/r to refer to Service other/s", attach,
		},

		"a gateway without routes": {gw, "Paint", "infra", "kind: Gateway, name: g", "no route is attached to Gateway infra/g", onRoute},
		"a gateway whose routes are not allowed": {
			route(narrow("sectionName: web")), "Paint", "infra", "kind: Gateway, name: narrow", "no route is attached to Gateway infra/narrow", onRoute,
		},
		"a listener without routes": {
			docs(narrowDoc, routeDoc("r", "[{}]", "narrow")), "Paint", "infra", "kind: Gateway, name: narrow, sectionName: tcp", "no route is attached to Gateway infra/narrow section tcp", onRoute,
		},
		"a gateway whose routes have no backends": {
			docs(gw, backends, routeDoc("r", "[{}]", "g")), "Seal", "infra", "kind: Gateway, name: g", "no route that is attached to Gateway infra/g has anything that policies of kind Seal apply to", onRoute,
		},
		"a listener set that is not admitted": {
			docs(narrowDoc, worlds.SetDoc("infra", "s", "narrow", "x")), "Paint", "infra", "kind: ListenerSet, name: s",
			"ListenerSet infra/s is not attached to any Gateway: the allowedListeners of Gateway infra/narrow do not allow listener sets from namespace infra", onRoute,
		},
		"a listener set of a gateway that does not exist": {
			worlds.SetDoc("infra", "s", "none", "x"), "Paint", "infra", "kind: ListenerSet, name: s",
			"ListenerSet infra/s is not attached to any Gateway: Gateway infra/none does not exist", onRoute,
		},
		"a listener set of a parent that is not read": {
			"kind: ListenerSet\nmetadata: {namespace: infra, name: s}\nspec: {parentRef: {group: x.io, kind: Why, name: z}, listeners: [{name: x, port: 80, protocol: HTTP}]}", "Paint", "infra", "kind: ListenerSet, name: s",
			"ListenerSet infra/s is not attached to any Gateway: Why infra/z is of kind Why.x.io, which is not supported", onRoute,
		},
		"a listener set without routes": {
			docs(gw, worlds.SetDoc("infra", "s", "g", "x"), routeDoc("r", "[{}]", "g")), "Paint", "infra", "kind: ListenerSet, name: s", "no route is attached to ListenerSet infra/s", onRoute,
		},

		"a backend of no route": {docs(gw, backends, worlds.ServiceDoc("app", "s", 80)), "Seal", "app", `group: "", kind: Service, name: s`, "no route sends requests to Service app/s", onDo},
		"a port that no route sends to": {
			docs(gw, backends, worlds.ServiceDoc("app", "s", 80, 81), routeDoc("r", to("s"), "g")), "Seal", "app", `group: "", kind: Service, name: s, sectionName: p81`,
			"no route sends requests to Service app/s section p81", onDo,
		},
		"a backend of a route without a parent": {
			docs(backends, worlds.ServiceDoc("app", "s", 80), routeDoc("r", to("s"))), "Seal", "app", `group: "", kind: Service, name: s`,
			r + "it has no parentRefs", onDo,
		},
		"a backend of another namespace's route": {
			docs(gw, backends, worlds.ServiceDoc("other", "s", 80), routeDoc("r", toOther, "g")), "Seal", "other", `group: "", kind: Service, name: s`,
			"no ReferenceGrant in namespace other allows routes of other namespaces to refer to Service other/s", onDo,
		},
		"a backend of another namespace's route without a parent": {
			docs(backends, worlds.ServiceDoc("other", "s", 80), routeDoc("r", toOther),
				worlds.GrantDoc("other", "all", "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: app}", `{group: "", kind: Service}`)), "Seal", "other", `group: "", kind: Service, name: s`,
			"no route that sends requests to Service other/s is attached to a Gateway and has anything that policies of kind Seal apply to", onDo,
		},
		"a parent of no route": {docs(services, worlds.ServiceDoc("app", "s", 80)), "Mesh", "app", `group: "", kind: Service, name: s`, "no route has Service app/s as its parent", onDo},
		"a parent that lacks the port": {
			docs(services, worlds.ServiceDoc("app", "s", 80), worlds.RouteTo("HTTPRoute", "app", "r", "[{}]", `{group: "", kind: Service, name: s, port: 81}`)), "Mesh", "app", "kind: HTTPRoute, name: r",
			"HTTPRoute app/r is not attached to any Service: Service app/s does not have the port that the parentRef names", attach,
		},
		"a gateway as the parent, for a kind of a mesh": {
			docs(gw, services, routeDoc("r", "[{}]", "g")), "Mesh", "app", "kind: HTTPRoute, name: r",
			"HTTPRoute app/r is not attached to any Service: policies of kind Mesh do not apply to routes of Gateway infra/g", attach,
		},

		"a class of no gateway": {
			docs(free, "kind: GatewayClass\nmetadata: {name: c}"), "Free", "infra", "kind: GatewayClass, name: c", "no route is attached to any Gateway of GatewayClass c", onRoute,
		},
		"a class whose gateways have no routes": {
			docs(free, "kind: GatewayClass\nmetadata: {name: c}", gw, "kind: GatewayClass\nmetadata: {name: d}", gatewayDoc("h", "d", "http"), routeDoc("r", "[{}]", "h")), "Free", "infra", "kind: GatewayClass, name: c",
			"no route is attached to any Gateway of GatewayClass c", onRoute,
		},
		"a namespace": {
			docs(free, gw), "Free", "infra", `group: "", kind: Namespace, name: infra`,
			"no route is attached to any Gateway in namespace infra, and no route in namespace infra is attached to any Gateway", onRoute,
		},
		"a namespace, for a kind of a mesh, too": {
			docs(all, gw), "All", "infra", `group: "", kind: Namespace, name: infra`,
			"no route is attached to any Gateway in namespace infra, and no route has a Service in namespace infra as its parent, and no route in namespace infra is attached to any Gateway or Service", onRoute,
		},
		"the mesh": {mesh, "Mesh", "infra", "", "no route is attached to any Gateway", onRoute},
		"a service, for a kind that ends there": {
			docs(all, worlds.ServiceDoc("app", "s", 80)), "All", "app", `group: "", kind: Service, name: s`, "no route has Service app/s as its parent or sends requests to it", onDo,
		},
		"fields that no rule has": {
			docs(fields, gw, routeDoc("r", "[{}]", "g")), "Field", "app", "kind: HTTPRoute, name: r", "HTTPRoute app/r has none of the fields that policies of kind Field control", attach,
		},
		"kinds of routes that it does not apply to": {
			docs(web, narrowDoc, worlds.RouteTo("TCPRoute", "app", "r", "[{}]", narrow("sectionName: tcp"))), "Web", "infra", "kind: Gateway, name: narrow",
			"no GRPCRoute or HTTPRoute is attached to Gateway infra/narrow", onRoute,
		},
		"a route of another namespace, on whose paths no client is of the policy's": {
			docs(free, gw, routeDoc("r", "[{}]", "g")), "Free", "shop", "kind: HTTPRoute, namespace: app, name: r",
			"policies in namespace shop apply only to clients of that namespace, and none of their paths goes through HTTPRoute app/r", "",
		},
		"a gateway of another namespace, on whose paths no client is of the policy's": {
			docs(free, gw, routeDoc("r", "[{}]", "g")), "Free", "shop", "kind: Gateway, namespace: infra, name: g",
			"policies in namespace shop apply only to clients of that namespace, and none of their paths goes through Gateway infra/g", "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := docs(test.world, policyDoc(test.kind, test.namespace, "p", strings.ReplaceAll("targetRefs: [{"+test.target+"}]", "[{}]", "[]")+"\na: 1"))
			v := world(t, text)
			p := v.Get(api.Ref{Group: worlds.Group, Kind: test.kind, Namespace: test.namespace, Name: "p"}).(*policykind.Policy)
			out := outcomeOf(t, v, p.Ref())
			require.Equal(t, api.NoPath, out.State, out.Message)
			assert.Equal(t, test.why, out.Message)
			why, advice := effective.NoPath(v, p, out.Targets[0])
			assert.Equal(t, test.why, why)
			assert.Equal(t, test.advice, advice)
		})
	}
}

// For kinds of every shape, each policy without a path has a specific reason. If paths
// go through its target, the reason is that they are of clients in other namespaces.
func TestNoPathAlwaysHasAReason(t *testing.T) {
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
