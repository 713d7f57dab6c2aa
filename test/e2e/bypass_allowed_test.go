//go:build e2e

package e2e

var deleteHeld = remove("APP", "authpolicy/gw-auth")

// allowedRows are writes close to an override that leave every override
// effective.
var allowedRows = map[string]row{
	"rule-inserted": permitted{
		objects: admin, probe: &deleteHeld,
		write: apply(route(onEdge, "{matches: [{path: {type: PathPrefix, value: /new}}]}, "+byPath)),
	},
	"rule-edited": permitted{
		objects: admin, probe: &deleteHeld,
		write: edit("APP", "httproute/toystore", `[{"op":"add","path":"/spec/rules/1/backendRefs","value":[{"name":"admin","port":80}]}]`),
	},
	"route-deleted": permitted{objects: baseObjects, write: remove("APP", "httproute/toystore")},
	"route-detached": permitted{
		objects: baseObjects,
		write:   patch("APP", "httproute/toystore", `{"spec":{"parentRefs":null}}`),
	},
	"route-parent-added": permitted{objects: baseObjects, write: apply(route(onEdge+", "+onInner, byPath))},
	"route-moved-alike": permitted{
		objects: namespaces + gateway("edge", onHTTP) + gateway("inner", onHTTP) + route(onEdge, byPath) + colors, probe: &dropColors,
		write: apply(route(onInner, byPath)),
	},
	"route-to-section": permitted{
		objects: twoListeners + gatewayOverride,
		write:   apply(route("{namespace: INFRA, name: edge, sectionName: plain}", byPath)),
	},
	"route-hostname-dropped": permitted{
		objects: namespaces + gateway("edge", onHTTP) + gatewayOverride +
			object("HTTPRoute", "namespace: APP, name: toystore", "{parentRefs: ["+onEdge+"], hostnames: [a.example.com, b.example.com], rules: ["+byPath+"]}"),
		write: patch("APP", "httproute/toystore", `{"spec":{"hostnames":["b.example.com"]}}`),
	},
	"grant-widened": permitted{
		objects: granted, probe: &deleteGrant,
		write: apply(grant("INFRA-sec", "Paint", "Gateway", "")),
	},
	"gateway-deleted-whole": permitted{
		objects: baseObjects, write: remove("INFRA", "gateway/edge"),
	},
	"listener-added":        permitted{objects: baseObjects, write: apply(gateway("edge", onHTTP, onPlain))},
	"listener-port":         permitted{objects: baseObjects, write: apply(gateway("edge", onPlain))},
	"policy-labelled":       permitted{objects: baseObjects, write: kubectl("-n", "INFRA", "label", "authpolicy/gw-auth", "team=sso")},
	"policy-rule-added":     permitted{objects: baseObjects, write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"overrides":{"rules":{"authorization":{"opa":{}}}}}}`)},
	"policy-merge-to-whole": permitted{objects: baseObjects, write: patch("INFRA", "authpolicy/gw-auth", `{"spec":{"overrides":{"strategy":"atomic"}}}`)},
	"policy-when-dropped": permitted{
		objects: conditional, probe: &deleteLimits,
		write: patch("INFRA", "ratelimitpolicy/gw-limits", `{"spec":{"overrides":{"when":null}}}`),
	},
	"policy-doubled": permitted{
		objects: baseObjects + auth("INFRA", "gw-auth-too", gatewayRef("edge"), overrides), probe: &moveAway,
		write: remove("INFRA", "authpolicy/gw-auth"),
	},
	"higher-override": permitted{
		objects: onRoute, probe: &deleteHeld,
		write: apply(auth("INFRA", "higher", gatewayRef("edge"), "overrides: {strategy: merge, rules: {authentication: {sso: {issuer: higher}}}}")),
	},
	"limit-complied": permitted{
		objects: namespaces + gateway("edge", onHTTP) + gateway("inner", onHTTP) + route(onEdge, byPath) + routeLimit("100") + limited, probe: &deleteLimits,
		write: apply(routeLimit("20")),
	},
	"namespace-deleted": permitted{
		objects: onRoute, probe: &deleteHeld,
		write: kubectl("delete", "namespace/APP", "--timeout=2m"),
	},
	"service-port-added": permitted{
		objects: sold, probe: &deletePrimer,
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
