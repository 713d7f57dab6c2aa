//go:build e2e

package e2e

import "strings"

// apiVersions are those of the kinds of the manifests.
var apiVersions = map[string]string{
	"Namespace": "v1", "Service": "v1",
	"AuthPolicy": "kuadrant.io/v1", "RateLimitPolicy": "kuadrant.io/v1",
	"ReferenceGrant": "gateway.networking.k8s.io/v1beta1",
	"PolicyProfile":  "overrule.dev/v1alpha1",
}

// object returns a manifest; metadata and spec are YAML in flow style.
func object(kind, metadata, spec string) string {
	version, known := apiVersions[kind]
	switch {
	case known:
	case strings.HasSuffix(kind, "Route") || strings.HasPrefix(kind, "Gateway") || kind == "ListenerSet":
		version = "gateway.networking.k8s.io/v1"
	default:
		version = "policies.example.com/v1"
	}
	return "\n---\napiVersion: " + version + "\nkind: " + kind + "\nmetadata: {" + metadata + "}\nspec: " + spec + "\n"
}

// The usual objects: gateway edge has the override, gateway inner has none.
var (
	namespaces      = object("Namespace", "name: INFRA", "{}") + object("Namespace", "name: APP", "{}")
	baseObjects     = namespaces + gateway("edge", onHTTP) + gateway("inner", onHTTP) + route(onEdge, byPath) + gatewayOverride
	gatewayOverride = auth("INFRA", "gw-auth", gatewayRef("edge"), "overrides: {strategy: merge, rules: {authentication: {sso: {issuer: ours}}}}")
)

const (
	onHTTP  = "{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}"
	onPlain = "{name: plain, protocol: HTTP, port: 8080, allowedRoutes: {namespaces: {from: All}}}"

	onEdge  = "{namespace: INFRA, name: edge}"
	onInner = "{namespace: INFRA, name: inner}"

	byPath = "{name: toys, matches: [{path: {type: PathPrefix, value: /toys}}]}, {name: admin, matches: [{path: {type: PathPrefix, value: /admin}}]}"
)

func gateway(name string, listeners ...string) string {
	return object("Gateway", "namespace: INFRA, name: "+name, "{gatewayClassName: bypass, listeners: ["+strings.Join(listeners, ", ")+"]}")
}

// route returns the route toystore with these parents and rules.
func route(parents, rules string) string {
	return object("HTTPRoute", "namespace: APP, name: toystore", "{parentRefs: ["+parents+"], rules: ["+rules+"]}")
}

func auth(namespace, name, target, content string) string {
	return object("AuthPolicy", "namespace: "+namespace+", name: "+name, "{targetRef: {"+target+"}, "+content+"}")
}

// gatewayRef and routeRef return target references; more fields may be appended.
func gatewayRef(name string) string {
	return "group: gateway.networking.k8s.io, kind: Gateway, name: " + name
}

func routeRef(name string) string {
	return "group: gateway.networking.k8s.io, kind: HTTPRoute, name: " + name
}
