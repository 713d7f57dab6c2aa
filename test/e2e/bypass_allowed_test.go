//go:build e2e

package e2e

var deleteHeld = remove("APP", "authpolicy/gw-auth")

// aroundFree are writes next to an override that take none out of force.
var aroundFree = map[string]row{
	"rule-inserted": free{
		world: admin, held: &deleteHeld,
		write: apply(route(onEdge, "{matches: [{path: {type: PathPrefix, value: /new}}]}, "+byPath)),
	},
	"rule-edited": free{
		world: admin, held: &deleteHeld,
		write: edit("APP", "httproute/toystore", `[{"op":"add","path":"/spec/rules/1/backendRefs","value":[{"name":"admin","port":80}]}]`),
	},
	"route-deleted": free{world: world, write: remove("APP", "httproute/toystore")},
	"route-detached": free{
		world: world,
		write: patch("APP", "httproute/toystore", `{"spec":{"parentRefs":null}}`),
	},
	"route-parent-added": free{world: world, write: apply(route(onEdge+", "+onInner, byPath))},
	"route-moved-alike": free{
		world: namespaces + gateway("edge", onHTTP) + gateway("inner", onHTTP) + route(onEdge, byPath) + colors, held: &dropColors,
		write: apply(route(onInner, byPath)),
	},
	"route-to-section": free{
		world: twoListeners + held,
		write: apply(route("{namespace: INFRA, name: edge, sectionName: plain}", byPath)),
	},
	"route-hostname-dropped": free{
		world: namespaces + gateway("edge", onHTTP) + held +
			object("HTTPRoute", "namespace: APP, name: toystore", "{parentRefs: ["+onEdge+"], hostnames: [a.example.com, b.example.com], rules: ["+byPath+"]}"),
		write: patch("APP", "httproute/toystore", `{"spec":{"hostnames":["b.example.com"]}}`),
	},
	"grant-widened": free{
		world: granted, held: &deleteGrant,
		write: apply(grant("INFRA-sec", "Paint", "Gateway", "")),
	},
	"gateway-deleted-whole": free{
		world: world, write: remove("INFRA", "gateway/edge"),
	},
	"listener-added":        free{world: world, write: apply(gateway("edge", onHTTP, onPlain))},
	"listener-port":         free{world: world, write: apply(gateway("edge", onPlain))},
	"policy-labelled":       free{world: world, write: kubectl("-n", "INFRA", "label", "authpolicy/gw-auth", "team=sso")},
	"policy-rule-added":     free{world: world, write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"overrides":{"rules":{"authorization":{"opa":{}}}}}}`)},
	"policy-merge-to-whole": free{world: world, write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"overrides":{"strategy":"atomic"}}}`)},
	"policy-when-dropped": free{
		world: conditional, held: &deleteLimits,
		write: patch("INFRA", "ratelimitpolicy/gw-limits", `{"spec":{"overrides":{"when":null}}}`),
	},
	"policy-doubled": free{
		world: world + auth("INFRA", "gw-auth-too", gatewayRef("edge"), overrides), held: &moveAway,
		write: remove("INFRA", "authpolicy/gw-auth"),
	},
	"higher-override": free{
		world: onRoute, held: &deleteHeld,
		write: apply(auth("INFRA", "higher", gatewayRef("edge"), "overrides: {strategy: merge, rules: {authentication: {sso: {issuer: higher}}}}")),
	},
	"limit-complied": free{
		world: namespaces + gateway("edge", onHTTP) + gateway("inner", onHTTP) + route(onEdge, byPath) + routeLimit("100") + limited, held: &deleteLimits,
		write: apply(routeLimit("20")),
	},
	"namespace-deleted": free{
		world: onRoute, held: &deleteHeld,
		write: kubectl("delete", "namespace/APP", "--timeout=2m"),
	},
	"service-port-added": free{
		world: sold, held: &deletePrimer,
		write: edit("APP", "service/store", `[{"op":"add","path":"/spec/ports/1","value":{"name":"metrics","port":9090}}]`),
	},
}

var (
	deleteGrant  = remove("INFRA", "referencegrant/leave")
	dropColors   = edit("INFRA", "colorpolicy/gw-colors", `[{"op":"remove","path":"/spec/targetRefs/0"}]`)
	deleteLimits = remove("INFRA", "ratelimitpolicy/gw-limits")
	deletePrimer = remove("APP", "primer/primer")
	moveAway     = apply(route(onInner, byPath))
)
