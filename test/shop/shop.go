// Package shop has the manifests of a toy store behind a gateway, for tests with
// a real API server. In sets their namespaces.
package shop

import "strings"

// Manifests, joined by "---". INFRA and APP stand for the namespaces of the
// gateway and of the application.
const (
	// Namespaces are the two namespaces.
	Namespaces = `
apiVersion: v1
kind: Namespace
metadata: {name: INFRA}
---
apiVersion: v1
kind: Namespace
metadata: {name: APP}
`
	// Gateway is the gateway edge with its class, for routes of all namespaces.
	Gateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: shop}
spec: {controllerName: example.com/gateways}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: INFRA, name: edge}
spec:
  gatewayClassName: shop
  listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]
`
	// Route is the route toystore with two rules.
	Route = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: APP, name: toystore}
spec:
  parentRefs: [{namespace: INFRA, name: edge}]
  rules:
  - {name: toys, matches: [{path: {type: PathPrefix, value: /toys}}]}
  - {name: admin, matches: [{path: {type: PathPrefix, value: /admin}}]}
`
	// GatewayAuth overrides a rule of all routes of the gateway.
	GatewayAuth = `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: INFRA, name: gw-auth}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  overrides: {strategy: merge, rules: {authentication: {sso: {issuer: ours}}}}
`
	// GatewayLimits limits the gateway's routes to 50.
	GatewayLimits = `
apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: {namespace: INFRA, name: gw-limits}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  overrides:
    strategy: merge
    when: spec.limits.login.rates.exists(r, r.limit > 50)
    limits: {login: {rates: [{limit: 50, window: 10s}]}}
`
	// RouteLimits is a limit of LIMIT on the route; NAME is the rest of its
	// metadata.
	RouteLimits = `
apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: {namespace: APP, NAME}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}
  limits: {login: {rates: [{limit: LIMIT, window: 10s}]}}
`
)

// In replaces INFRA and APP in a manifest, and more placeholders: pairs of a
// placeholder and its value.
func In(infra, app, manifest string, more ...string) string {
	return strings.NewReplacer(append([]string{"INFRA", infra, "APP", app}, more...)...).Replace(manifest)
}
