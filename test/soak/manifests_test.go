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

// tenant is a gateway with its policies and a route, in two namespaces of its
// own. Each writer has one to itself, and its gateway's policies were there long
// before the stream begins: whatever a replica has not seen of the last seconds
// changes no verdict in it, so each verdict is known beforehand.
type tenant struct{ infra, app string }

// Manifests, with INFRA and APP for a world's namespaces.
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
	// platform is what the routes of a world are held to: rules on the gateway
	// edge, and that nobody is without authentication on the gateway public.
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

// limits are those of the route, so many.
func (w tenant) limits(most string) string {
	return w.expand(shop.RouteLimits, "NAME", "name: limits", "LIMIT", most)
}

// createTenants makes so many worlds.
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

// developer may write everything that is judged, and override nothing.
func developer(t *testing.T, plane *env.Env) *env.User {
	t.Helper()
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	return plane.MustAddUser(t, "developer", nil, rbacv1.PolicyRule{
		APIGroups: []string{"kuadrant.io", "gateway.networking.k8s.io"}, Resources: []string{"*"}, Verbs: verbs,
	})
}
