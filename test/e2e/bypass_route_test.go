//go:build e2e

package e2e

import "strings"

// onSection returns an override on a section of a gateway or route.
func onSection(target, section string) string {
	namespace := "INFRA"
	if target == routeRef("toystore") {
		namespace = "APP"
	}
	return auth(namespace, "gw-auth", target+", sectionName: "+section, overrides)
}

var (
	// admin has the override on one rule of the route.
	admin = namespaces + gateway("edge", onHTTP) + route(onEdge, byPath) + onSection(routeRef("toystore"), "admin")
	// second has it on the second of two unnamed rules.
	second = namespaces + gateway("edge", onHTTP) + route(onEdge, unnamed) + onSection(routeRef("toystore"), "rule-2")
	// listened has it on one of two listeners.
	listened = twoListeners + onSection(gatewayRef("edge"), "http")
	// listenedTo has the route on that listener alone.
	listenedTo = namespaces + gateway("edge", onHTTP, onPlain) + route("{namespace: INFRA, name: edge, sectionName: http}", byPath) +
		onSection(gatewayRef("edge"), "http")
	// sold has an override on the port of a Service that is a backend.
	sold = namespaces + store("http") + gateway("edge", onHTTP) + route(onEdge, sells) + primerPolicy("APP", "targetRef: {group: '', kind: Service, name: store, sectionName: http}")
	// kiosk is another Service.
	kiosk = object("Service", "namespace: APP, name: kiosk", "{ports: [{name: http, port: 80}]}")
	// meshed has an override on a Service that is the route's parent, beside
	// another parent Service.
	meshed = namespaces + store("http") + kiosk +
		route("{group: '', kind: Service, name: store}", byPath) + onStore
	// onStore is the override on the whole Service.
	onStore = primerPolicy("APP", "targetRef: {group: '', kind: Service, name: store}")
)

const (
	unnamed = "{matches: [{path: {type: PathPrefix, value: /toys}}]}, {matches: [{path: {type: PathPrefix, value: /admin}}]}"
	onEntry = "{group: networking.istio.io, kind: ServiceEntry, name: out}"
	store80 = "{name: store, port: 80}"
	kiosk80 = "{name: kiosk, port: 80}"
	sells   = "{name: sell, backendRefs: [{name: store, port: 80}]}"
)

func store(port string) string {
	return object("Service", "namespace: APP, name: store", "{ports: [{name: "+port+", port: 80}]}")
}

// selling returns a route to backends; the Service store has the override.
func selling(backends string) string {
	return namespaces + store("http") + kiosk + gateway("edge", onHTTP) + route(onEdge, "{name: sell, backendRefs: ["+backends+"]}") + onStore
}

// toStore and toKiosk return rules of a route for these paths.
func toStore(paths ...string) string {
	return "{name: sell, " + matching(paths) + ", backendRefs: [" + store80 + "]}"
}
func toKiosk(paths ...string) string {
	return "{name: show, " + matching(paths) + ", backendRefs: [" + kiosk80 + "]}"
}

func matching(paths []string) string {
	matches := make([]string, len(paths))
	for i, p := range paths {
		matches[i] = "{path: {type: PathPrefix, value: " + p + "}}"
	}
	return "matches: [" + strings.Join(matches, ", ") + "]"
}

// routeRows are writes of routes, and of the Services that are their backends or
// parents.
var routeRows = map[string]row{
	"route-moved": bypass{
		objects: baseObjects, code: "OverrideEvaded",
		write:    apply(route(onInner, byPath)),
		contains: []string{"2 paths", "rules.authentication.sso of AuthPolicy route-moved-infra/gw-auth"},
	},
	"route-moved-by-older-version": bypass{
		objects: baseObjects, code: "OverrideEvaded",
		write: patch("APP", "httproutes.v1beta1.gateway.networking.k8s.io/toystore", `{"spec":{"parentRefs":[{"namespace":"INFRA","name":"inner"}]}}`),
	},
	"route-parent-dropped": bypass{
		objects: namespaces + gateway("edge", onHTTP) + gateway("inner", onHTTP) + route(onEdge+", "+onInner, byPath) + gatewayOverride, code: "OverrideEvaded",
		write: apply(route(onInner, byPath)),
	},
	"route-to-unread-parent": bypass{
		objects: baseObjects, code: "OverrideEvaded",
		write:    apply(route(onEntry, byPath)),
		contains: []string{"policies through ServiceEntry route-to-unread-parent-app/out of networking.istio.io are not evaluated"},
	},
	"route-to-namesake-of-a-gateway": bypass{
		objects: baseObjects, code: "OverrideEvaded",
		write: apply(route("{group: example.com, kind: Gateway, namespace: INFRA, name: inner}", byPath)),
	},
	"route-unread-parent-left": bypass{
		objects: namespaces + gateway("edge", onHTTP) + route(onEdge+", "+onEntry, byPath) + gatewayOverride, code: "OverrideEvaded",
		write: edit("APP", "httproute/toystore", `[{"op":"remove","path":"/spec/parentRefs/0"}]`),
	},
	"route-to-service-parent": bypass{
		objects: baseObjects + store("http"), code: "OverrideEvaded",
		write: apply(route("{group: '', kind: Service, name: store}", byPath)),
	},
	"route-section": bypass{
		objects: listenedTo, code: "OverrideEvaded",
		write: edit("APP", "httproute/toystore", `[{"op":"replace","path":"/spec/parentRefs/0/sectionName","value":"plain"}]`),
	},
	"route-port": bypass{
		objects: namespaces + gateway("edge", onHTTP, onPlain) + route("{namespace: INFRA, name: edge, port: 80}", byPath) + onSection(gatewayRef("edge"), "http"),
		code:    "OverrideEvaded",
		write:   edit("APP", "httproute/toystore", `[{"op":"replace","path":"/spec/parentRefs/0/port","value":8080}]`),
	},
	"route-label": bypass{
		objects: painted + paintPolicyIn("APP", "gw-paint", "targetSelectors: [{group: gateway.networking.k8s.io, kind: HTTPRoute, matchLabels: {tier: public}}]"),
		code:    "OverrideEvaded",
		write:   kubectl("-n", "APP", "label", "httproute/toystore", "tier-"),
	},
	"route-label-and-hostname": bypass{
		objects: painted + paintPolicyIn("APP", "gw-paint", "targetSelectors: [{group: gateway.networking.k8s.io, kind: HTTPRoute, matchLabels: {tier: public}}]"),
		code:    "OverrideEvaded",
		write:   patch("APP", "httproute/toystore", `{"metadata":{"labels":{"tier":null}},"spec":{"hostnames":["other.example.com"]}}`),
	},
	"route-annotation": bypass{
		objects: painted + object("Paint", "namespace: INFRA, name: gw-paint", "{targetRef: {"+gatewayRef("edge")+"}, colors: {wall: red}}"),
		code:    "OverrideEvaded",
		write:   kubectl("-n", "APP", "annotate", "httproute/toystore", "policies.example.com/inherit-"),
	},
	"rule-renamed": bypass{
		objects: admin, code: "OverrideEvaded",
		write: edit("APP", "httproute/toystore", `[{"op":"replace","path":"/spec/rules/1/name","value":"manage"}]`),
	},
	"rules-swapped": bypass{
		objects: admin, code: "OverrideEvaded",
		write: edit("APP", "httproute/toystore", `[{"op":"replace","path":"/spec/rules/0/name","value":"admin"},{"op":"replace","path":"/spec/rules/1/name","value":"toys"}]`),
	},
	"rule-matches-moved": bypass{
		objects: admin, code: "OverrideEvaded",
		write: apply(route(onEdge, "{name: toys, matches: [{path: {type: PathPrefix, value: /toys}}]}, {name: admin, matches: [{path: {type: PathPrefix, value: /nothing}}]}, "+
			"{name: manage, matches: [{path: {type: PathPrefix, value: /admin}}]}")),
	},
	"rule-match-given-away": bypass{
		objects: namespaces + gateway("edge", onHTTP) + route(onEdge, "{name: toys, matches: [{path: {type: PathPrefix, value: /toys}}]}, "+
			"{name: admin, matches: [{path: {type: PathPrefix, value: /admin}}, {path: {type: PathPrefix, value: /root}}]}") + onSection(routeRef("toystore"), "admin"),
		code: "OverrideEvaded",
		write: apply(route(onEdge, "{name: toys, matches: [{path: {type: PathPrefix, value: /toys}}, {path: {type: PathPrefix, value: /root}}]}, "+
			"{name: admin, matches: [{path: {type: PathPrefix, value: /admin}}]}")),
	},
	"rule-shifted": bypass{
		objects: second, code: "OverrideEvaded",
		write: apply(route(onEdge, "{matches: [{path: {type: PathPrefix, value: /new}}]}, "+unnamed)),
	},
	"rules-reordered": bypass{
		objects: second, code: "OverrideEvaded",
		write: apply(route(onEdge, "{matches: [{path: {type: PathPrefix, value: /admin}}]}, {matches: [{path: {type: PathPrefix, value: /toys}}]}")),
	},
	"rule-merged": bypass{
		objects: admin, code: "OverrideEvaded",
		write: apply(route(onEdge, "{name: toys, matches: [{path: {type: PathPrefix, value: /toys}}, {path: {type: PathPrefix, value: /admin}}]}")),
	},
	"rule-named": bypass{
		objects: second, code: "OverrideEvaded",
		write: edit("APP", "httproute/toystore", `[{"op":"add","path":"/spec/rules/1/name","value":"admin"}]`),
	},
	"limit-left": bypass{
		objects: conditional, code: "OverrideEvaded",
		write:    apply(route(onInner, byPath)),
		contains: []string{"2 paths", "limits.login of RateLimitPolicy limit-left-infra/gw-limits"},
	},
	"service-port": bypass{
		objects: sold, code: "OverrideEvaded",
		write: edit("APP", "service/store", `[{"op":"replace","path":"/spec/ports/0/name","value":"web"}]`),
	},
	"service-port-in-a-large-review": bypass{
		objects: sold, code: "OverrideEvaded",
		write: kubectl("-n", "APP", "patch", "service/store", "--type=merge", "-p",
			`{"metadata":{"ownerReferences":`+largeOwners+`},"spec":{"ports":[{"name":"web","port":80,"protocol":"TCP","targetPort":80}]}}`),
	},
	"service-label-by-status": bypass{
		objects: namespaces + object("Service", "namespace: APP, name: store, labels: {tier: shop}", "{ports: [{name: http, port: 80}]}") +
			gateway("edge", onHTTP) + route(onEdge, sells) + primerPolicy("APP", "targetSelectors: [{group: '', kind: Service, matchLabels: {tier: shop}}]"),
		code:  "OverrideEvaded",
		write: kubectl("-n", "APP", "patch", "service/store", "--subresource=status", "--type=merge", "-p", `{"metadata":{"labels":{"tier":null}}}`),
	},
	"service-owner-by-status": bypass{
		objects: sold, code: "OverrideEvaded",
		write: kubectl("-n", "APP", "patch", "service/store", "--subresource=status", "--type=merge", "-p", ownedByMissingObject),
	},
	"service-deleted": bypass{
		objects: sold, code: "OverrideEvaded",
		write: remove("APP", "service/store"),
	},
	"route-backend": bypass{
		objects: sold + kiosk, code: "OverrideEvaded",
		write:    apply(route(onEdge, "{name: sell, backendRefs: ["+kiosk80+"]}")),
		contains: []string{"HTTPRoute route-backend-app/toystore", "Service route-backend-app/kiosk#80"},
	},
	"route-backend-dropped": bypass{
		objects: selling(store80 + ", " + kiosk80), code: "OverrideEvaded",
		write: apply(route(onEdge, "{name: sell, backendRefs: ["+kiosk80+"]}")),
	},
	"route-backend-weight": bypass{
		objects: selling("{name: store, port: 80, weight: 1}, {name: kiosk, port: 80, weight: 0}"), code: "OverrideEvaded",
		write: edit("APP", "httproute/toystore", `[{"op":"replace","path":"/spec/rules/0/backendRefs/0/weight","value":0},{"op":"replace","path":"/spec/rules/0/backendRefs/1/weight","value":1}]`),
	},
	"rule-match-to-other-backend": bypass{
		objects: namespaces + store("http") + kiosk + gateway("edge", onHTTP) + route(onEdge, toStore("/toys", "/root")+", "+toKiosk("/admin")) + onStore, code: "OverrideEvaded",
		write: apply(route(onEdge, toStore("/toys")+", "+toKiosk("/admin", "/root"))),
	},
	"service-parent": bypass{
		objects: meshed, code: "OverrideEvaded",
		write: apply(route("{group: '', kind: Service, name: kiosk}", byPath)),
	},
}

// onHost returns a listener for a hostname.
func onHost(name, host string) string {
	return "{name: " + name + ", protocol: HTTP, port: 80, hostname: " + host + ", allowedRoutes: {namespaces: {from: All}}}"
}
