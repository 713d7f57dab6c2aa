//go:build soak

package soak

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/shop"
)

// tenant is a gateway with its policies and a route, in two namespaces. Each
// writer has its own tenant, and the gateway's policies are older than the
// stream: a replica with a cache that is some seconds old gives the same
// verdicts, so each verdict is known in advance.
type tenant struct{ infra, app string }

// Manifests. INFRA and APP stand for the namespaces of the tenant.
const (
	baseManifests = shop.Namespaces + "---" + shop.Gateway + "---" + shop.Route + `
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: INFRA, name: public}
spec:
  gatewayClassName: shop
  listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]
`
	// platform has the constraints: rules on the gateway edge, and required
	// authentication on the gateway public.
	platform = shop.GatewayLimits + "---" + shop.GatewayAuth + `---
apiVersion: overrule.dev/v1alpha1
kind: PolicyConstraint
metadata: {namespace: INFRA, name: authentication}
spec:
  policyKind: {group: kuadrant.io, kind: AuthPolicy}
  targets: [{kind: Gateway, name: public}]
  rules: [{path: rules.authentication.*, required: true}]
`
	routeAuth = `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: APP, name: auth}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}
  rules: {authorization: {key: {}}}
`
	unsettingAuth = routeAuth + `
  unset: [rules.authentication]
`
	cart = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: APP, name: cart}
spec:
  parentRefs: [{namespace: INFRA, name: GATEWAY}]
  rules: [{matches: [{path: {type: PathPrefix, value: /cart}}]}]
`
)

func (w tenant) expand(manifest string, more ...string) string {
	return shop.In(w.infra, w.app, manifest, more...)
}

// limits returns the limits of the route.
func (w tenant) limits(most string) string {
	return w.expand(shop.RouteLimits, "NAME", "name: limits", "LIMIT", most)
}

// createTenants creates n tenants.
func createTenants(t *testing.T, plane *env.Env, name string, n int, manifest string) []tenant {
	t.Helper()
	out := make([]tenant, n)
	for i := range out {
		out[i] = tenant{fmt.Sprintf("%s-%d-infra", name, i), fmt.Sprintf("%s-%d-app", name, i)}
		got := plane.Apply(out[i].expand(manifest))
		require.Zero(t, got.Code, got.Stderr)
	}
	return out
}

// developer may write every object that is evaluated, and may not override.
func developer(t *testing.T, plane *env.Env) *env.User {
	t.Helper()
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	return plane.MustAddUser(t, "developer", nil, rbacv1.PolicyRule{
		APIGroups: []string{"kuadrant.io", "gateway.networking.k8s.io"}, Resources: []string{"*"}, Verbs: verbs,
	})
}
