//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/server"
)

// As a Platform Engineer, I want all interested parties to be aware of
// applications that lack a particular policy protection. The RFC leaves it to
// observation: the CLI and a metric report paths without a policy of a kind.
func (c *cluster) requirements(t *testing.T, s *server.Server) {
	g := c.prepare(t, "rq")
	assert.Equal(t, []string{"toys", "admin"}, g.rulesWithoutPolicy(t))
	succeed(t, g.apply(strings.Replace(routeAuth, "name: toystore}", "name: toystore, sectionName: toys}", 1)))
	assert.Equal(t, []string{"admin"}, g.rulesWithoutPolicy(t))

	// Both are read until they agree: what earlier tests left behind may still be
	// disappearing.
	soon(t, func() bool {
		var everywhere api.EffectivePolicyList
		overrule(t, c.User, &everywhere, "effective", "-A", "--kind", "AuthPolicy", "--without")
		return unprotectedPaths(t, s) == len(everywhere.Items)
	}, "the metric and the CLI differ")

	succeed(t, g.apply(gatewayAuth))
	assert.Empty(t, g.rulesWithoutPolicy(t), "the gateway's policy is effective on all of its routes")
}

// rulesWithoutPolicy returns the rules of the route that have no AuthPolicy, as
// the CLI reports them.
func (g testNamespaces) rulesWithoutPolicy(t *testing.T) []string {
	t.Helper()
	var list api.EffectivePolicyList
	overrule(t, g.c.User, &list, "effective", "-n", g.app, "httproute/toystore", "--kind", "AuthPolicy", "--without")
	var rules []string
	for _, item := range list.Items {
		assert.Empty(t, item.Rules)
		rules = append(rules, item.Path[len(item.Path)-1].Section)
	}
	return rules
}

// unprotectedPaths returns the number of paths without an AuthPolicy, as the
// server counts it. The server reuses a count for half a minute.
func unprotectedPaths(t *testing.T, s *server.Server) int {
	t.Helper()
	return int(metric(t, s, "overrule_paths", `policy_kind="AuthPolicy.kuadrant.io"`, `state="none"`))
}
