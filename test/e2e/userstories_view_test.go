//go:build e2e

package e2e

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/env"
)

// reader returns a user who may read policies, routes and gateways, and write
// nothing.
func (c *cluster) reader(t *testing.T, name string) *env.User {
	t.Helper()
	read := []string{"get", "list"}
	return c.MustAddUser(t, name, nil,
		rbacv1.PolicyRule{APIGroups: []string{"kuadrant.io", api.GatewayGroup}, Resources: []string{"*"}, Verbs: read},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces", "services"}, Verbs: read},
		rbacv1.PolicyRule{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: read},
		rbacv1.PolicyRule{APIGroups: []string{"overrule.dev"}, Resources: []string{"policyprofiles"}, Verbs: read},
	)
}

// viewExample is the example of the three stories: a default and an override of
// the gateway, the first of which the toystore's policy replaces in part.
var viewExample = example{
	Gateway: `defaults: {strategy: merge, rules: {authentication: {a: G, b: G}}}, overrides: {strategy: merge, rules: {authorization: {o: G}}}`,
	Route:   `rules: {authentication: {a: R}, authorization: {r: R}}`,
	Want: map[string]string{
		"rules.authentication.a": `"R" from route`, "rules.authentication.b": `"G" from gateway`,
		"rules.authorization.o": `"G" from gateway`, "rules.authorization.r": `"R" from route`,
	},
}

// inBothOrders runs a check with the policies created in either order.
func (e *example) inBothOrders(t *testing.T, g testNamespaces, look func(*testing.T)) {
	t.Helper()
	for _, order := range [][]string{{"gateway", "route"}, {"route", "gateway"}} {
		for _, name := range order {
			succeed(t, g.apply(e.policy(name)))
		}
		look(t)
		e.deletePolicies(t, g)
	}
}

// As one who has read access to policies, I want to view the effective policy
// enforced at the traffic routed to an application, considering all active
// defaults and overrides at different policies.
func (c *cluster) viewEffectivePolicy(t *testing.T) {
	g := c.prepare(t, "ve")
	who := c.reader(t, "reader-of-effective")
	assert.NotZero(t, who.Apply(g.expand(viewExample.policy("route"))).Code, "the reader may write")
	viewExample.inBothOrders(t, g, func(t *testing.T) {
		assert.Equal(t, onBothPaths(viewExample.Want), g.effectiveRules(t, who, "AuthPolicy"))
	})
}

// As a Platform Engineer, I want to view all default policy rules that may have
// been replaced by more specific ones.
func (c *cluster) viewPolicyRuleStatus(t *testing.T) {
	g := c.prepare(t, "vs")
	who := c.reader(t, "reader-of-status")
	route := api.Ref{Group: "kuadrant.io", Kind: "AuthPolicy", Namespace: g.app, Name: "route"}
	viewExample.inBothOrders(t, g, func(t *testing.T) {
		var outcomes api.OutcomeList
		overrule(t, who, &outcomes, "outcome", "-n", g.infra, "authpolicy/gateway")
		require.Len(t, outcomes.Items, 1)
		assert.Equal(t, api.PartiallyEnforced, outcomes.Items[0].State)
		assert.Equal(t, []api.LostCount{{Rule: "rules.authentication.a", To: route, Paths: 2}}, outcomes.Items[0].Lost)

		var why api.ExplanationList
		overrule(t, who, &why, "explain", "-n", g.infra, "authpolicy/gateway", "rules.authentication.a")
		require.Len(t, why.Items, 2, "a path for each rule of the route")
		for _, item := range why.Items {
			require.Len(t, item.Rules, 1)
			rule := item.Rules[0]
			assert.Equal(t, "R", rule.Value)
			assert.Equal(t, route, *rule.From)
			require.Len(t, rule.Lost, 1)
			assert.Equal(t, "G", rule.Lost[0].Value)
			assert.Equal(t, "defaults", rule.Lost[0].Block)
		}
	})
}

// As a Policy Manager, I want to view all gateways and/or routes whose traffic
// is subject to enforcement of a particular policy rule referred by name.
func (c *cluster) viewPolicyRuleReach(t *testing.T) {
	g := c.prepare(t, "vr")
	succeed(t, g.apply(books))
	who := c.reader(t, "reader-of-reach")
	edge := []api.Ref{{Group: api.GatewayGroup, Kind: "Gateway", Namespace: g.infra, Name: "edge"}}
	route := func(name string) api.Ref {
		return api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: g.app, Name: name}
	}
	viewExample.inBothOrders(t, g, func(t *testing.T) {
		for rule, routes := range map[string][]api.Ref{
			"rules.authentication.a": {route("books")}, // the toystore has its own
			"rules.authentication.b": {route("books"), route("toystore")},
			"rules.authorization.o":  {route("books"), route("toystore")},
		} {
			var list api.ReachList
			overrule(t, who, &list, "reach", "-n", g.infra, "authpolicy/gateway", rule)
			require.Len(t, list.Items, 1)
			assert.Equal(t, edge, list.Items[0].Gateways, rule)
			assert.Equal(t, routes, list.Items[0].Routes, rule)
		}
		assert.Equal(t, []string{"gateway", "route"}, affecting(t, who, g, "httproute/toystore"))
		assert.Equal(t, []string{"gateway"}, affecting(t, who, g, "httproute/books"))
	})
}

// books is a second route, without its own policy.
const books = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: APP, name: books}
spec: {parentRefs: [{namespace: INFRA, name: edge}], rules: [{name: books}]}
`

// affecting returns the names of the policies that affect an object.
func affecting(t *testing.T, who *env.User, g testNamespaces, object string) []string {
	t.Helper()
	var list api.ReachList
	overrule(t, who, &list, "reach", "-n", g.app, "--affecting", object)
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Policy.Name)
	}
	slices.Sort(names)
	return names
}
