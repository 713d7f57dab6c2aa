//go:build e2e

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// As a Platform Engineer, I want to set a default policy for all routes linked
// to my Gateway, that can be fully replaced with more specific ones (example A1).
func (c *cluster) gatewayDefaultPolicy(t *testing.T) {
	g := c.prepare(t, "gd")
	e := replaced
	succeed(t, g.apply(e.policy("gateway")))
	alone := map[string]string{"rules.authentication.a": `"G" from gateway`, "rules.authorization.b": `"G" from gateway`}
	assert.Equal(t, map[string]map[string]string{"toys": alone, "admin": alone}, g.effectiveRules(t, c.User, "AuthPolicy"), "a route without a policy has the default")
	e.run(t, g)
}

// replaced is example A1: an atomic default that is replaced completely.
var replaced = example{
	gateway: `defaults: {strategy: atomic, rules: {authentication: {a: G}, authorization: {b: G}}}`,
	route:   `rules: {authentication: {c: R}}`,
	want:    map[string]string{"rules.authentication.c": `"R" from route`},
	// A default that no path takes has no effect, and a route's policy that replaces it is told what is lost.
	gatewayWarning: "all 2 rules have no effect",
	routeWarning:   "/toystore loses rules.authentication.a and authorization of AuthPolicy ",
}

// As a Platform Engineer, I want to set default policy rules for all routes
// linked to my Gateway, that can be individually replaced and/or expanded
// (examples B1 and B2).
func (c *cluster) gatewayDefaultPolicyRule(t *testing.T) {
	g := c.prepare(t, "gdr")
	for _, e := range []example{merged, {
		gateway: merged.gateway,
		route:   `rules: {authentication: {a: R}}`,
		want:    map[string]string{"rules.authentication.a": `"R" from route`, "rules.authorization.b": `"G" from gateway`},

		gatewayWarning: "rules.authentication.a has no effect",
	}} {
		e.run(t, g)
	}
}

// merged is example B1: merged defaults without a conflict.
var merged = example{
	gateway: `defaults: {strategy: merge, rules: {authentication: {a: G}, authorization: {b: G}}}`,
	route:   `rules: {authentication: {c: R}}`,
	want: map[string]string{
		"rules.authentication.a": `"G" from gateway`, "rules.authentication.c": `"R" from route`, "rules.authorization.b": `"G" from gateway`,
	},
}

// As a Platform Engineer, I want to set constraints for more specific policy
// rules (examples E1 to E3).
func (c *cluster) policyConstraints(t *testing.T) {
	g := c.prepare(t, "pc")
	constraint := `overrides: {strategy: merge, when: "spec.rules.authentication.a > 50", rules: {authentication: {a: 50}}}`
	for _, e := range []example{
		{ // E1: it satisfies the constraint
			gateway: constraint,
			route:   `rules: {authentication: {a: 30, b: 120}}`,
			want:    map[string]string{"rules.authentication.a": "30 from route", "rules.authentication.b": "120 from route"},
		},
		{ // E2: it does not; a later policy is denied, an earlier one is limited
			gateway:        constraint,
			route:          `rules: {authentication: {a: 100, b: 120}}`,
			want:           map[string]string{"rules.authentication.a": "50 from gateway", "rules.authentication.b": "120 from route"},
			gatewayWarning: "rules.authentication.a of AuthPolicy pc-app/route loses its effect",
			refused:        "ConstraintViolated",
		},
		{ // E3: one of two rates violates the constraint, and both are replaced
			kind:    "RateLimitPolicy",
			gateway: `overrides: {strategy: merge, when: "spec.limits.a.rates.exists(r, r.limit > 50)", limits: {a: {rates: [{limit: 50, window: 10s}]}}}`,
			route:   `limits: {a: {rates: [{limit: 100, window: 1m}, {limit: 10000, window: 24h}]}, b: {rates: [{limit: 1000, window: 1s}]}}`,
			want: map[string]string{
				"limits.a": `{"rates":[{"limit":50,"window":"10s"}]} from gateway`,
				"limits.b": `{"rates":[{"limit":1000,"window":"1s"}]} from route`,
			},
			gatewayWarning: "limits.a of RateLimitPolicy pc-app/route loses its effect",
			refused:        "ConstraintViolated",
		},
	} {
		e.run(t, g)
	}
}

// As a Platform Engineer, I want to set a policy for all routes linked to my
// Gateway, that cannot be replaced nor expanded (example C1).
func (c *cluster) gatewayOverridePolicy(t *testing.T) {
	e := example{
		gateway:        `overrides: {strategy: atomic, rules: {authentication: {a: G}, authorization: {b: G}}}`,
		route:          `rules: {authentication: {c: R}}`,
		want:           map[string]string{"rules.authentication.a": `"G" from gateway`, "rules.authorization.b": `"G" from gateway`},
		gatewayWarning: "rules.authentication.c of AuthPolicy go-app/route loses its effect",
		routeWarning:   "rules.authentication.c has no effect on HTTPRoute go-app/toystore: AuthPolicy go-infra/gateway overrides it on Gateway go-infra/edge",
	}
	e.run(t, c.prepare(t, "go"))
}

// As a Platform Engineer, I want to set policy rules for all routes linked to my
// Gateway, that cannot be individually replaced, but only expanded (examples D1
// and D2).
func (c *cluster) gatewayOverridePolicyRule(t *testing.T) {
	g := c.prepare(t, "or")
	dev := developer(t, g)
	for _, e := range []example{
		{ // D1: an alternative way to authenticate weakens the override; denied later, a warning before
			gateway: `overrides: {strategy: merge, rules: {authentication: {a: G}, authorization: {b: G}}}`,
			route:   `rules: {authentication: {c: R}}`,
			want:    merged.want,
			refused: "OverrideWeakened",
		},
		{
			gateway: `overrides: {strategy: merge, rules: {authentication: {a: G}, authorization: {b: G}}}`,
			route:   `rules: {authentication: {a: R}, authorization: {d: R}}`,
			want: map[string]string{
				"rules.authentication.a": `"G" from gateway`, "rules.authorization.b": `"G" from gateway`, "rules.authorization.d": `"R" from route`,
			},
			gatewayWarning: "rules.authentication.a of AuthPolicy or-app/route loses its effect",
			routeWarning:   "rules.authentication.a has no effect",
		},
	} {
		e.gatewayFirst(t, g, dev) // with the right to override it is a warning
		e.routeFirst(t, g)
	}
}
