//go:build e2e

package e2e

var (
	// classes are two, of which the first has a policy.
	classes = object("GatewayClass", "name: INFRA-strict", "{controllerName: example.com/gateways}") +
		object("GatewayClass", "name: INFRA-loose", "{controllerName: example.com/gateways}") +
		namespaces + object("Gateway", "namespace: INFRA, name: edge", "{gatewayClassName: INFRA-strict, listeners: ["+onHTTP+"]}") + route(onEdge, byPath) +
		paint("gw-paint", "targetRef: {group: gateway.networking.k8s.io, kind: GatewayClass, name: INFRA-strict}")
	// painted has labels that policies select by, and an annotation that makes
	// bare rules overrides.
	painted = namespaces +
		object("Gateway", "namespace: INFRA, name: edge, labels: {tier: public}", "{gatewayClassName: around, listeners: ["+onHTTP+"]}") +
		object("HTTPRoute", "namespace: APP, name: toystore, labels: {tier: public}, annotations: {policies.example.com/inherit: all}",
			"{parentRefs: ["+onEdge+"], rules: ["+byPath+"]}")
	// extended has a route on a gateway and on a listener set of it, which has the
	// override.
	extended = namespaces +
		object("Gateway", "namespace: INFRA, name: edge", "{gatewayClassName: around, listeners: ["+onHTTP+"], allowedListeners: {namespaces: {from: All}}}") +
		object("Gateway", "namespace: INFRA, name: inner", "{gatewayClassName: around, listeners: ["+onHTTP+"], allowedListeners: {namespaces: {from: All}}}") +
		listenerSet
	listenerSet = object("ListenerSet", "namespace: APP, name: extra", "{parentRef: "+onEdge+", listeners: [{name: more, protocol: HTTP, port: 8081, allowedRoutes: {namespaces: {from: All}}}]}")
	onSet       = paintIn("APP", "gw-paint", "targetRef: {group: gateway.networking.k8s.io, kind: ListenerSet, name: extra}")
)

const extra = "{group: gateway.networking.k8s.io, kind: ListenerSet, name: extra}"

// aroundGateways are writes of what is above the routes.
var aroundGateways = map[string]row{
	"listener-renamed": way{
		world: namespaces + gateway("edge", onHTTP) + route(onEdge, byPath) + onSection(gatewayRef("edge"), "http"), code: "OverrideEvaded",
		write: edit("INFRA", "gateway/edge", `[{"op":"replace","path":"/spec/listeners/0/name","value":"web"}]`),
	},
	"listener-removed": way{
		world: listened, code: "OverrideEvaded",
		write: apply(gateway("edge", onPlain)),
	},
	"listener-allowed-routes": way{
		world: listened, code: "OverrideEvaded",
		write: edit("INFRA", "gateway/edge", `[{"op":"replace","path":"/spec/listeners/0/allowedRoutes/namespaces/from","value":"Same"}]`),
	},
	"listener-kinds": way{
		world: listened, code: "OverrideEvaded",
		write: edit("INFRA", "gateway/edge", `[{"op":"add","path":"/spec/listeners/0/allowedRoutes/kinds","value":[{"kind":"GRPCRoute"}]}]`),
	},
	"listener-protocol": way{
		world: listened, code: "OverrideEvaded",
		write: edit("INFRA", "gateway/edge", `[{"op":"replace","path":"/spec/listeners/0/protocol","value":"TCP"}]`),
	},
	"listener-hostname": way{
		world: namespaces + gateway("edge", onHTTP, onPlain) +
			object("HTTPRoute", "namespace: APP, name: toystore", "{parentRefs: ["+onEdge+"], hostnames: [shop.example.com], rules: ["+byPath+"]}") +
			onSection(gatewayRef("edge"), "http"),
		code:  "OverrideEvaded",
		write: edit("INFRA", "gateway/edge", `[{"op":"add","path":"/spec/listeners/0/hostname","value":"elsewhere.example.com"}]`),
	},
	"gateway-deleted": way{
		world: namespaces + gateway("edge", onHTTP) + gateway("inner", onHTTP) + route(onEdge+", "+onInner, byPath) + held, code: "OverrideEvaded",
		write: remove("INFRA", "gateway/edge"),
	},
	"gateway-class": way{
		world: classes, code: "OverrideEvaded",
		write: patch("INFRA", "gateway/edge", `{"spec":{"gatewayClassName":"INFRA-loose"}}`),
	},
	"gateway-class-deleted": way{
		world: classes, code: "OverrideEvaded",
		write: kubectl("delete", "gatewayclass/INFRA-strict"),
	},
	"gateway-class-owner": way{
		world: classes, code: "OverrideEvaded",
		write: kubectl("patch", "gatewayclass/INFRA-strict", "--type=merge", "-p",
			`{"metadata":{"ownerReferences":[{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","name":"nobody","uid":"5f0d4b1e-0000-4000-8000-000000000002"}]}}`),
	},
	"gateway-label": way{
		world: painted + paint("gw-paint", "targetSelectors: [{group: gateway.networking.k8s.io, kind: Gateway, matchLabels: {tier: public}}]"), code: "OverrideEvaded",
		write: kubectl("-n", "INFRA", "label", "--overwrite", "gateway/edge", "tier=private"),
	},
	"listeners-narrowed": way{
		world: extended + route(onEdge+", "+extra, byPath) + onSet, code: "OverrideEvaded",
		write: patch("INFRA", "gateway/edge", `{"spec":{"allowedListeners":{"namespaces":{"from":"None"}}}}`),
	},
	"listener-set-deleted": way{
		world: extended + route(onEdge+", "+extra, byPath) + onSet, code: "OverrideEvaded",
		write: remove("APP", "listenerset/extra"),
	},
	"listener-set-moved": way{
		world: extended + route(extra, byPath) + held, code: "OverrideEvaded",
		write: patch("APP", "listenerset/extra", `{"spec":{"parentRef":{"name":"inner"}}}`),
	},
	"route-from-set-to-gateway": way{
		world: extended + route(extra, byPath) + onSet, code: "OverrideEvaded",
		write: apply(route(onEdge, byPath)),
	},
}
