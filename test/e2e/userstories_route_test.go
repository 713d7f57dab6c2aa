//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/test/env"
)

// developer returns a user who may read and write the AuthPolicies of the
// application's namespace, and read nothing in the gateway's.
func developer(t *testing.T, g testNamespaces) *env.User {
	t.Helper()
	name := "dev-" + g.app
	u := g.c.MustAddUser(t, name, nil)
	succeed(t, g.apply(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: APP, name: developer}
rules: [{apiGroups: [kuadrant.io], resources: [authpolicies], verbs: [get, list, create, update, patch, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: APP, name: developer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: developer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]
`, name)))
	soon(t, func() bool { return u.Kubectl("get", "-n", g.app, "authpolicies").Code == 0 }, "the developer has no rights")
	assert.NotZero(t, u.Kubectl("get", "-n", g.infra, "authpolicies").Code, "the developer may see the gateway's policies")
	return u
}

// As an Application Developer, I want to set a policy for my application, that
// fully replaces any default policy at the level of the Gateway, without having
// to know about the existence of the default policy (example A1).
func (c *cluster) routeReplacePolicy(t *testing.T) {
	g := c.prepare(t, "rr")
	replaced.gatewayFirst(t, g, developer(t, g))
	replaced.routeFirst(t, g)
}

// As an Application Developer, I want to expand a default set of policy rules
// set for my application at the level of the gateway, without having to refer
// to those existing rules by name (example B1).
func (c *cluster) routeAddPolicyRule(t *testing.T) {
	g := c.prepare(t, "ra")
	merged.gatewayFirst(t, g, developer(t, g))
	merged.routeFirst(t, g)
}

// As an Application Developer, I want to deactivate an individual default rule
// set for my application at the level of the gateway (examples F1 and F2).
func (c *cluster) routeDisablePolicyRule(t *testing.T) {
	g := c.prepare(t, "rd")
	dev := developer(t, g)
	for _, e := range []example{
		{
			gateway: `defaults: {strategy: merge, rules: {authentication: {a: G}}}`,
			route:   `rules: {authentication: {b: R}}, unset: [rules.authentication.a]`,
			want:    map[string]string{"rules.authentication.b": `"R" from route`},

			gatewayWarning: "rules.authentication.a has no effect",
		},
		{ // the list may have the RFC's name, and name only the rule
			gateway: `defaults: {strategy: merge, rules: {authentication: {a: G}}}`,
			route:   `rules: {authentication: {b: R}}, remove: [a]`,
			want:    map[string]string{"rules.authentication.b": `"R" from route`},

			gatewayWarning: "rules.authentication.a has no effect",
		},
		{ // F2: an override cannot be unset
			gateway: `overrides: {strategy: merge, rules: {authentication: {a: G}}}`,
			route:   `rules: {authentication: {b: R}}, unset: [rules.authentication.a]`,
			want:    map[string]string{"rules.authentication.a": `"G" from gateway`, "rules.authentication.b": `"R" from route`},
			refused: "UnsetOverride",
		},
	} {
		e.gatewayFirst(t, g, dev)
		e.routeFirst(t, g)
	}
}
