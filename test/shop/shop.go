// Package shop is a toy store behind a gateway, in manifests: what tests on a real
// API server write. In has its namespaces named.
package shop

import "strings"

// Manifests, with INFRA and APP for the namespaces of the gateway and of the
// application. They are joined by "---".
const (
	// Namespaces are the two.
	Namespaces = `
apiVersion: v1
kind: Namespace
metadata: {name: INFRA}
---
apiVersion: v1
kind: Namespace
metadata: {name: APP}
`
	// Gateway is one called edge, with its class, for routes of all namespaces.
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
	// Route is the store: two rules on the gateway.
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
	// GatewayAuth sets a rule for all routes of the gateway.
	GatewayAuth = `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: INFRA, name: gw-auth}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  overrides: {strategy: merge, rules: {authentication: {sso: {issuer: ours}}}}
`
	// GatewayLimits hold those of the gateway's routes to 50.
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
	// RouteLimits is a limit of LIMIT on the route; NAME is what names it.
	RouteLimits = `
apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: {namespace: APP, NAME}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}
  limits: {login: {rates: [{limit: LIMIT, window: 10s}]}}
`
)

// In puts namespaces into a manifest, and more: pairs of a word and what stands for
// it.
func In(infra, app, manifest string, more ...string) string {
	return strings.NewReplacer(append([]string{"INFRA", infra, "APP", app}, more...)...).Replace(manifest)
}
