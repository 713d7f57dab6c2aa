//go:build e2e

package e2e

var (
	// classes has two GatewayClasses, the first of which has a policy.
	classes = object("GatewayClass", "name: INFRA-strict", "{controllerName: example.com/gateways}") +
		object("GatewayClass", "name: INFRA-loose", "{controllerName: example.com/gateways}") +
		namespaces + object("Gateway", "namespace: INFRA, name: edge", "{gatewayClassName: INFRA-strict, listeners: ["+onHTTP+"]}") + route(onEdge, byPath) +
		paintPolicy("gw-paint", "targetRef: {group: gateway.networking.k8s.io, kind: GatewayClass, name: INFRA-strict}")
	// painted has labels that policies select by, and an annotation that turns
	// plain rules into overrides.
	painted = namespaces +
		object("Gateway", "namespace: INFRA, name: edge, labels: {tier: public}", "{gatewayClassName: bypass, listeners: ["+onHTTP+"]}") +
		object("HTTPRoute", "namespace: APP, name: toystore, labels: {tier: public}, annotations: {policies.example.com/inherit: all}",
			"{parentRefs: ["+onEdge+"], rules: ["+byPath+"]}")
	// extended has a route on a gateway and on a listener set of that gateway,
	// which has the override.
	extended = namespaces +
		object("Gateway", "namespace: INFRA, name: edge", "{gatewayClassName: bypass, listeners: ["+onHTTP+"], allowedListeners: {namespaces: {from: All}}}") +
		object("Gateway", "namespace: INFRA, name: inner", "{gatewayClassName: bypass, listeners: ["+onHTTP+"], allowedListeners: {namespaces: {from: All}}}") +
		listenerSet
	listenerSet = object("ListenerSet", "namespace: APP, name: extra", "{parentRef: "+onEdge+", listeners: [{name: more, protocol: HTTP, port: 8081, allowedRoutes: {namespaces: {from: All}}}]}")
	onSet       = paintPolicyIn("APP", "gw-paint", "targetRef: {group: gateway.networking.k8s.io, kind: ListenerSet, name: extra}")
)

const extra = "{group: gateway.networking.k8s.io, kind: ListenerSet, name: extra}"

// gatewayRows are writes of GatewayClasses, Gateways and ListenerSets.
var gatewayRows = map[string]row{
	"listener-renamed": bypass{
		objects: namespaces + gateway("edge", onHTTP) + route(onEdge, byPath) + onSection(gatewayRef("edge"), "http"), code: "OverrideEvaded",
		write: edit("INFRA", "gateway/edge", `[{"op":"replace","path":"/spec/listeners/0/name","value":"web"}]`),
	},
	"listener-removed": bypass{
		objects: listened, code: "OverrideEvaded",
		write: apply(gateway("edge", onPlain)),
	},
	"listener-allowed-routes": bypass{
		objects: listened, code: "OverrideEvaded",
		write: edit("INFRA", "gateway/edge", `[{"op":"replace","path":"/spec/listeners/0/allowedRoutes/namespaces/from","value":"Same"}]`),
	},
	"listener-kinds": bypass{
		objects: listened, code: "OverrideEvaded",
		write: edit("INFRA", "gateway/edge", `[{"op":"add","path":"/spec/listeners/0/allowedRoutes/kinds","value":[{"kind":"GRPCRoute"}]}]`),
	},
	"listener-protocol": bypass{
		objects: listened, code: "OverrideEvaded",
		write: edit("INFRA", "gateway/edge", `[{"op":"replace","path":"/spec/listeners/0/protocol","value":"TCP"}]`),
	},
	"listener-hostname": bypass{
		objects: namespaces + gateway("edge", onHTTP, onPlain) +
			object("HTTPRoute", "namespace: APP, name: toystore", "{parentRefs: ["+onEdge+"], hostnames: [shop.example.com], rules: ["+byPath+"]}") +
			onSection(gatewayRef("edge"), "http"),
		code:  "OverrideEvaded",
		write: edit("INFRA", "gateway/edge", `[{"op":"add","path":"/spec/listeners/0/hostname","value":"elsewhere.example.com"}]`),
	},
	"gateway-deleted": bypass{
		objects: namespaces + gateway("edge", onHTTP) + gateway("inner", onHTTP) + route(onEdge+", "+onInner, byPath) + gatewayOverride, code: "OverrideEvaded",
		write: remove("INFRA", "gateway/edge"),
	},
	"gateway-class": bypass{
		objects: classes, code: "OverrideEvaded",
		write: patch("INFRA", "gateway/edge", `{"spec":{"gatewayClassName":"INFRA-loose"}}`),
	},
	"gateway-class-deleted": bypass{
		objects: classes, code: "OverrideEvaded",
		write: kubectl("delete", "gatewayclass/INFRA-strict"),
	},
	"gateway-class-owner": bypass{
		objects: classes, code: "OverrideEvaded",
		write: kubectl("patch", "gatewayclass/INFRA-strict", "--type=merge", "-p",
			`{"metadata":{"ownerReferences":[{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","name":"missing","uid":"5f0d4b1e-0000-4000-8000-000000000002"}]}}`),
	},
	"gateway-label": bypass{
		objects: painted + paintPolicy("gw-paint", "targetSelectors: [{group: gateway.networking.k8s.io, kind: Gateway, matchLabels: {tier: public}}]"), code: "OverrideEvaded",
		write: kubectl("-n", "INFRA", "label", "--overwrite", "gateway/edge", "tier=private"),
	},
	"listeners-narrowed": bypass{
		objects: extended + route(onEdge+", "+extra, byPath) + onSet, code: "OverrideEvaded",
		write: patch("INFRA", "gateway/edge", `{"spec":{"allowedListeners":{"namespaces":{"from":"None"}}}}`),
	},
	"listener-set-deleted": bypass{
		objects: extended + route(onEdge+", "+extra, byPath) + onSet, code: "OverrideEvaded",
		write: remove("APP", "listenerset/extra"),
	},
	"listener-set-moved": bypass{
		objects: extended + route(extra, byPath) + gatewayOverride, code: "OverrideEvaded",
		write: patch("APP", "listenerset/extra", `{"spec":{"parentRef":{"name":"inner"}}}`),
	},
	"route-from-set-to-gateway": bypass{
		objects: extended + route(extra, byPath) + onSet, code: "OverrideEvaded",
		write: apply(route(onEdge, byPath)),
	},
}
