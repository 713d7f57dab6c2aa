//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
)

// warned is a write that any user may make, with a warning about an override
// that does not hold for some requests afterwards, or may not.
type warned struct {
	objects string
	write   command
}

func (w warned) run(t *testing.T, g testNamespaces) {
	succeed(t, g.apply(w.objects))
	var got env.Result
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if got = g.runAs(unprivileged, w.write.dryRun()); strings.Contains(got.Stderr, "would no longer apply") {
			break
		}
	}
	require.Contains(t, got.Stderr, "Warning: ", "%v: %s", w.write.args, got.Stdout)
	got = g.runAs(unprivileged, w.write)
	succeed(t, got)
	assert.Contains(t, got.Stderr, "Warning: override ")
	assert.Contains(t, got.Stderr, "would no longer apply")
}

// Rules of routes and listeners.
const (
	toysRule  = "{name: toys, matches: [{path: {type: PathPrefix, value: /toys}}]}"
	adminRule = "{name: admin, matches: [{path: {type: PathPrefix, value: /admin}}]}"
	emptyRule = "{name: admin, matches: [{path: {type: PathPrefix, value: /nothing}}]}"
	headers   = "{path: {type: PathPrefix, value: /admin}, headers: [{name: X-Team, value: a}, {name: X-Tier, value: b}]}"
	// respelled takes the same requests as headers.
	respelled = "{path: {type: PathPrefix, value: /admin/}, headers: [{name: x-tier, value: b}, {name: x-team, value: a}]}"

	onMesh        = "{group: '', kind: Service, namespace: APP, name: store}"
	onHTTPS       = "{name: https, protocol: HTTPS, port: 443, tls: {certificateRefs: [{name: cert}]}, allowedRoutes: {namespaces: {from: All}}}"
	onPassthrough = "{name: pass, protocol: TLS, port: 443, hostname: shop.example.com, tls: {mode: Passthrough}, allowedRoutes: {namespaces: {from: All}}}"
)

var (
	// byHeaders has the override on a rule with a match of two headers.
	byHeaders = namespaces + gateway("edge", onHTTP) + route(onEdge, toysRule+", {name: admin, matches: ["+headers+"]}") + onSection(routeRef("toystore"), "admin")
	// guarded has the override on the whole route.
	guarded = namespaces + others + gateway("edge", onHTTP) + route(onEdge, adminRule) +
		auth("APP", "gw-auth", routeRef("toystore"), overrides)
	// beside has the override on one of two listeners with a hostname.
	beside = namespaces + gateway("edge", onHost("shop", "shop.example.com"), onHost("toys", "toys.example.com")) + route(onEdge, byPath) +
		onSection(gatewayRef("edge"), "shop")
	// labelledRoute has the override on all routes of a namespace with a label.
	labelledRoute = namespaces + gateway("edge", onHTTP) + otherRoute("toystore, labels: {tier: public}", "", byPath) +
		paintPolicyIn("APP", "gw-paint", "targetSelectors: [{group: gateway.networking.k8s.io, kind: HTTPRoute, matchLabels: {tier: public}}]")
	// neighborRoute takes requests of a route in another namespace.
	neighborRoute = object("HTTPRoute", "namespace: INFRA-sec, name: shopfront", "{parentRefs: ["+onEdge+"], hostnames: [shop.example.com], rules: ["+adminRule+"]}")
	// inMesh has the override on a rule of a route to a Service.
	inMesh = namespaces + others + store("http") + route(onMesh, byPath) +
		primerPolicy("APP", "targetRef: {"+routeRef("toystore")+", sectionName: admin}")
	dropTier = kubectl("-n", "APP", "label", "httproute/toystore", "tier-")
)

// otherRoute returns a route on the gateway; hostnames may be empty.
func otherRoute(name, hostnames, rules string) string {
	return object("HTTPRoute", "namespace: APP, name: "+name, "{parentRefs: ["+onEdge+"], hostnames: ["+hostnames+"], rules: ["+rules+"]}")
}

// requestRows are writes by which other rules, routes or listeners serve requests
// on which an override holds.
var requestRows = map[string]row{
	"listeners-swap-ports": bypass{
		objects: listened, code: "OverrideEvaded",
		write: edit("INFRA", "gateway/edge", `[{"op":"replace","path":"/spec/listeners/0/port","value":8080},{"op":"replace","path":"/spec/listeners/1/port","value":80}]`),
	},
	"listeners-swap-hostnames": bypass{
		objects: beside, code: "OverrideEvaded",
		write: edit("INFRA", "gateway/edge", `[{"op":"replace","path":"/spec/listeners/0/hostname","value":"toys.example.com"},{"op":"replace","path":"/spec/listeners/1/hostname","value":"shop.example.com"}]`),
	},
	"listener-more-specific": bypass{
		objects: namespaces + gateway("edge", onHTTP) + route(onEdge, byPath) + onSection(gatewayRef("edge"), "http"), code: "OverrideEvaded",
		write: apply(gateway("edge", onHTTP, onHost("shop", "shop.example.com"))),
	},
	"listener-set-more-specific": bypass{
		objects: strings.Replace(extended, listenerSet, "", 1) + route(onEdge+", "+extra, byPath) + onSection(gatewayRef("edge"), "http"), code: "OverrideEvaded",
		write: apply(strings.Replace(listenerSet, "port: 8081", "port: 80, hostname: shop.example.com", 1)),
	},
	"listener-for-passthrough": bypass{
		objects: namespaces + gateway("edge", onHTTPS) + route(onEdge, byPath) +
			object("TLSRoute", "namespace: APP, name: tunnel", "{parentRefs: ["+onEdge+"], hostnames: [shop.example.com], rules: [{backendRefs: [{name: store, port: 443}]}]}") +
			paintPolicy("gw-paint", "targetRef: {"+gatewayRef("edge")+", sectionName: https}"),
		code:  "OverrideEvaded",
		write: apply(gateway("edge", onHTTPS, onPassthrough)),
	},
	"match-headers-reordered": bypass{
		objects: byHeaders, code: "OverrideEvaded",
		write: apply(route(onEdge, "{name: toys, matches: ["+strings.Replace(respelled, "/admin/", "/admin", 1)+"]}, "+emptyRule)),
	},
	"match-trailing-slash": bypass{
		objects: admin, code: "OverrideEvaded",
		write: apply(route(onEdge, "{name: toys, matches: [{path: {type: PathPrefix, value: /admin/}}]}, "+emptyRule)),
	},
	"match-split-by-method": bypass{
		objects: admin, code: "OverrideEvaded",
		write: apply(route(onEdge, adminRule+", {name: read, matches: [{path: {type: PathPrefix, value: /admin}, method: GET}]}, {name: write, matches: [{path: {type: PathPrefix, value: /admin}, method: POST}]}")),
	},
	"rule-for-all-paths": bypass{
		objects: admin, code: "OverrideEvaded",
		write: apply(route(onEdge, toysRule+", "+emptyRule+", {name: rest, matches: [{path: {type: PathPrefix, value: /}}]}")),
	},
	"rule-with-longer-path": bypass{
		objects: admin, code: "OverrideEvaded",
		write:    apply(route(onEdge, byPath+", {name: users, matches: [{path: {type: PathPrefix, value: /admin/users}}]}")),
		contains: []string{"for example, GET http://any-host/admin/users would be served by HTTPRouteRule rule-with-longer-path-app/toystore#users"},
	},
	"rule-with-header": bypass{
		objects: admin, code: "OverrideEvaded",
		write:    apply(route(onEdge, byPath+", {name: team, matches: [{path: {type: PathPrefix, value: /admin}, headers: [{name: X-Team, value: a}]}]}")),
		contains: []string{"for example, GET http://any-host/admin with x-team: a would be served by HTTPRouteRule rule-with-header-app/toystore#team"},
	},
	"mesh-rule-with-longer-path": bypass{
		objects: inMesh, code: "OverrideEvaded",
		write:    apply(route(onMesh, byPath+", {name: users, matches: [{path: {type: PathPrefix, value: /admin/users}}]}")),
		contains: []string{"for example, GET http://store.mesh-rule-with-longer-path-app/admin/users would be served by HTTPRouteRule mesh-rule-with-longer-path-app/toystore#users"},
	},
	"rule-before-its-equal": bypass{
		objects: admin, code: "OverrideEvaded",
		write: apply(route(onEdge, "{name: first, matches: [{path: {type: PathPrefix, value: /admin}}]}, "+byPath)),
	},
	"rule-deleted-beside-all-paths": bypass{
		objects: namespaces + gateway("edge", onHTTP) + route(onEdge, "{name: rest, matches: [{path: {type: PathPrefix, value: /}}]}, "+adminRule) + onSection(routeRef("toystore"), "admin"), code: "OverrideEvaded",
		write: edit("APP", "httproute/toystore", `[{"op":"remove","path":"/spec/rules/1"}]`),
	},
	"route-older": bypass{
		objects: namespaces + gateway("edge", onHTTP) + otherRoute("elder", "", toysRule) + route(onEdge, adminRule) + auth("APP", "gw-auth", routeRef("toystore"), overrides), code: "OverrideEvaded",
		write: apply(otherRoute("elder", "", adminRule)),
	},
	"route-more-specific": bypass{
		objects: guarded, code: "OverrideEvaded",
		write:    apply(otherRoute("shopfront", "shop.example.com", adminRule)),
		contains: []string{"for example, GET http://shop.example.com/admin would be served by HTTPRouteRule route-more-specific-app/shopfront#admin"},
	},
	"route-of-bound-neighbor": bypass{
		objects: routeWithOverride("Copper"), code: "OverrideEvaded",
		write:    apply(neighborRoute),
		contains: []string{"for example, GET http://shop.example.com/admin would be served by HTTPRouteRule route-of-bound-neighbor-infra-sec/shopfront#admin"},
	},
	"route-hostname-dropped-to-other": bypass{
		objects: namespaces + gateway("edge", onHTTP) + otherRoute("toystore", "a.example.com, b.example.com", byPath) + otherRoute("rest", "", byPath) + auth("APP", "gw-auth", routeRef("toystore"), overrides), code: "OverrideEvaded",
		write: patch("APP", "httproute/toystore", `{"spec":{"hostnames":["b.example.com"]}}`),
	},
	"route-deleted-beside-other": bypass{
		objects: namespaces + gateway("edge", onHTTP) + otherRoute("toystore", "a.example.com", byPath) + otherRoute("rest", "", byPath) + auth("APP", "gw-auth", routeRef("toystore"), overrides), code: "OverrideEvaded",
		write: remove("APP", "httproute/toystore"),
	},
	"route-detached-beside-other": bypass{
		objects: namespaces + gateway("edge", onHTTP) + otherRoute("toystore", "a.example.com", byPath) + otherRoute("rest", "", byPath) + auth("APP", "gw-auth", routeRef("toystore"), overrides), code: "OverrideEvaded",
		write: patch("APP", "httproute/toystore", `{"spec":{"parentRefs":null}}`),
	},
	"listener-removed-beside-other": bypass{
		objects: namespaces + gateway("edge", onHost("shop", "shop.example.com"), onHTTP) + route("{namespace: INFRA, name: edge, sectionName: shop}", byPath) +
			object("HTTPRoute", "namespace: APP, name: rest", "{parentRefs: [{namespace: INFRA, name: edge, sectionName: http}], rules: ["+byPath+"]}") + onSection(gatewayRef("edge"), "shop"), code: "OverrideEvaded",
		write: apply(gateway("edge", onHTTP)),
	},
	"listener-set-deleted-beside-other": bypass{
		objects: strings.Replace(extended, "port: 8081", "port: 80, hostname: shop.example.com", 1) + route(extra, byPath) + otherRoute("rest", "", byPath) + onSet, code: "OverrideEvaded",
		write: remove("APP", "listenerset/extra"),
	},

	"listeners-widened": bypass{
		objects: strings.Replace(namespaces+object("Gateway", "namespace: INFRA, name: edge", "{gatewayClassName: bypass, listeners: ["+onHTTP+"]}")+
			listenerSet, "port: 8081", "port: 80, hostname: shop.example.com", 1) + route(onEdge, byPath) +
			object("HTTPRoute", "namespace: APP, name: shopfront", "{parentRefs: ["+extra+"], rules: ["+byPath+"]}") + onSection(gatewayRef("edge"), "http"), code: "OverrideEvaded",
		write: patch("INFRA", "gateway/edge", `{"spec":{"allowedListeners":{"namespaces":{"from":"All"}}}}`),
	},
	"namespace-deleted-beside-other": bypass{
		objects: namespaces + others + gateway("edge", onHTTP) + otherRoute("toystore", "a.example.com", byPath) + auth("APP", "gw-auth", routeRef("toystore"), overrides) +
			object("HTTPRoute", "namespace: INFRA-sec, name: rest", "{parentRefs: ["+onEdge+"], rules: ["+byPath+"]}"), code: "OverrideEvaded", dry: true,
		write: kubectl("delete", "namespace/APP", "--timeout=2m"),
	},

	"listener-renamed-whole": permitted{
		objects: baseObjects,
		write:   edit("INFRA", "gateway/edge", `[{"op":"replace","path":"/spec/listeners/0/name","value":"web"}]`),
	},
	"rule-renamed-whole": permitted{
		objects: baseObjects,
		write:   edit("APP", "httproute/toystore", `[{"op":"replace","path":"/spec/rules/1/name","value":"manage"}]`),
	},
	"named-rules-reordered": permitted{
		objects: admin, probe: &deleteHeld,
		write: apply(route(onEdge, adminRule+", "+toysRule)),
	},
	"match-respelled": permitted{
		objects: byHeaders, probe: &deleteHeld,
		write: apply(route(onEdge, toysRule+", {name: admin, matches: ["+respelled+"]}")),
	},
	"route-canary": permitted{
		objects: labelledRoute, probe: &dropTier,
		write: apply(otherRoute("canary, labels: {tier: public}", "", "{matches: [{path: {type: PathPrefix, value: /admin}, headers: [{name: X-Canary, value: 'yes'}]}], backendRefs: [{name: canary, port: 80}]}")),
	},
	"backends-switched": permitted{
		objects: namespaces + gateway("edge", onHTTP) + route(onEdge, "{name: admin, backendRefs: [{name: blue, port: 80}]}") + onSection(routeRef("toystore"), "admin"), probe: &deleteHeld,
		write: edit("APP", "httproute/toystore", `[{"op":"replace","path":"/spec/rules/0/backendRefs/0/name","value":"green"}]`),
	},
	"redirect-added": permitted{
		objects: admin, probe: &deleteHeld,
		write: edit("APP", "httproute/toystore", `[{"op":"add","path":"/spec/rules/1/filters","value":[{"type":"RequestRedirect","requestRedirect":{"scheme":"https"}}]}]`),
	},
	"mesh-match-respelled": permitted{
		objects: inMesh, probe: &deletePrimer,
		write: apply(route(onMesh, toysRule+", {name: admin, matches: [{path: {type: PathPrefix, value: /admin/}}]}")),
	},
	"route-split": sequence(splitRoute),
	"route-hostnames": permitted{
		objects: namespaces + gateway("edge", onHost("shop", "shop.example.com"), onHost("toys", "toys.example.com")) +
			otherRoute("toystore", "shop.example.com", byPath) + onSection(gatewayRef("edge"), "shop"),
		write: patch("APP", "httproute/toystore", `{"spec":{"hostnames":["toys.example.com"]}}`),
	},
	"rule-deleted": permitted{
		objects: admin, probe: &deleteHeld,
		write: edit("APP", "httproute/toystore", `[{"op":"remove","path":"/spec/rules/1"}]`),
	},

	"grpc-route-on-same-hostname": warned{
		objects: guarded,
		write: apply(object("GRPCRoute", "namespace: APP, name: calls",
			"{parentRefs: ["+onEdge+"], rules: [{matches: [{method: {service: admin, method: Users}}]}]}")),
	},
	"listeners-isolated": warned{
		objects: namespaces + gateway("edge", onHost("shop", "shop.example.com"), onHTTP) + route("{namespace: INFRA, name: edge, sectionName: http}", byPath) +
			onSection(gatewayRef("edge"), "http"),
		write: apply(object("HTTPRoute", "namespace: APP, name: rest", "{parentRefs: [{namespace: INFRA, name: edge, sectionName: shop}], rules: ["+byPath+"]}")),
	},
	"regex-beside-prefix": warned{
		objects: admin,
		write:   apply(route(onEdge, byPath+", {name: any, matches: [{path: {type: RegularExpression, value: '/adm.*'}}]}")),
	},
	"mesh-consumer-route": warned{
		objects: inMesh,
		write:   apply(object("HTTPRoute", "namespace: INFRA-sec, name: consumer", "{parentRefs: ["+onMesh+"], rules: ["+adminRule+"]}")),
	},
	"route-of-neighbor": warned{
		objects: guarded,
		write:   apply(neighborRoute),
	},
}

// splitRoute moves a rule to a new route with the same policy, in two writes.
func splitRoute(t *testing.T, g testNamespaces) {
	succeed(t, g.apply(labelledRoute))
	g.awaitDenial(t, dropTier)
	steps := []command{
		apply(otherRoute("toystore-admin, labels: {tier: public}", "", adminRule)),
		apply(otherRoute("toystore, labels: {tier: public}", "", toysRule)),
	}
	for _, w := range steps {
		got := g.runAs(unprivileged, w)
		succeed(t, got)
		assert.NotContains(t, got.Stderr, "would no longer")
	}
}
