package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
)

// The warnings of how far a change of revisions reaches are about its end, and name the
// path that loses rules, not the object that was written.
func TestNetImpact(t *testing.T) {
	route := func(name string, rules ...string) string {
		for i, r := range rules {
			rules[i] = "{name: " + r + ", matches: [{path: {type: PathPrefix, value: /" + r + "}}]}"
		}
		return "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: app, name: " + name +
			"}, spec: {parentRefs: [{namespace: infra, name: a}], rules: [" + strings.Join(rules, ", ") + "]}}"
	}
	own := authOn("HTTPRoute", "app", "own", "shop", "rules: {authentication: {a: {value: 1}}, authorization: {b: {value: 2}}}")
	another := strings.ReplaceAll(strings.Replace(own, "name: own}", "name: other}", 1), "name: shop}", "name: admin}")
	gatewayPolicy := authOn("Gateway", "infra", "sso", "a", "overrides: {strategy: merge, rules: {metadata: {x: {value: 1}}}}")
	with := func(files ...string) []string {
		return append([]string{"gateways.yaml", twoGateways, "own.yaml", own}, files...)
	}
	from, sso := with("shop.yaml", route("shop", "toys", "admin")), with("shop.yaml", route("shop", "toys", "admin"), "sso.yaml", gatewayPolicy)
	moved := with("shop.yaml", route("shop", "toys"), "admin.yaml", route("admin", "admin"))
	for name, c := range map[string]struct {
		from, to []string
		want     []string // messages of BlastRadius, by object
	}{
		"a rule that moves to another route loses the policies of the first": {from, moved, []string{
			"HTTPRoute app/shop: effective policy of AuthPolicy changes on Gateway infra/a#http > HTTPRoute app/admin#admin, which loses authentication, authorization",
		}},
		"it loses nothing if the other route has an equal policy": {from, append(moved, "other.yaml", another), []string{
			"HTTPRoute app/shop: effective policy of AuthPolicy changes on Gateway infra/a#http > HTTPRoute app/admin#admin",
		}},
		"several paths are counted": {sso, with("shop.yaml", route("shop", "toys", "admin")), []string{
			"AuthPolicy infra/sso: effective policy of AuthPolicy changes on 2 paths in 1 namespace (2 lose metadata)",
		}},
		"a policy with equal rules in place of another is no loss": {sso, with("shop.yaml", route("shop", "toys", "admin"), "sso.yaml", strings.Replace(gatewayPolicy, "name: sso}", "name: sso-2}", 1)), []string{
			"AuthPolicy infra/sso: effective policy of AuthPolicy changes on 2 paths in 1 namespace",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, v := range printed[api.VerdictList](t, nil, "check", "--may-override", "--from", revision(t, c.from...), "--to", revision(t, c.to...)).Items {
				for _, message := range messagesOf(api.ReasonBlastRadius, v.Warnings) {
					got = append(got, v.Object.String()+": "+message)
				}
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// A report shows the effective policies as if every object of the change were allowed,
// also on paths that depend on one that is denied.
func TestReportsShowDeniedChanges(t *testing.T) {
	own := func(value string) string {
		return authOn("HTTPRoute", "app", "own", "shop", "rules: {authentication: {a: {value: "+value+"}}}")
	}
	constraint := `{apiVersion: overrule.dev/v1alpha1, kind: ClusterPolicyConstraint, metadata: {name: one}, spec: {policyKind: {group: kuadrant.io, kind: AuthPolicy}, rules: [{path: rules.authentication.a.value, enum: [1]}]}}`
	onBoth := strings.Replace(routeOn("a"), "name: a}", "name: a}, {namespace: infra, name: b}", 1)
	from := revision(t, "gateways.yaml", twoGateways, "constraint.yaml", constraint, "route.yaml", routeOn("a"), "own.yaml", own("1"))
	to := revision(t, "gateways.yaml", twoGateways, "constraint.yaml", constraint, "route.yaml", onBoth, "own.yaml", own("2"))
	got := run(t, "", "check", "--from", from, "--to", to, "-o", "markdown")
	require.Equal(t, exitNegative, got.code, got.stderr)
	_, onB, found := strings.Cut(got.stdout, "<summary>AuthPolicy on <code>Gateway infra/b")
	require.True(t, found, got.stdout)
	assert.Contains(t, onB, "+ rules.authentication.a = {\"value\":2}")
	assert.Equal(t, 1, strings.Count(got.stderr, "are not validated"), "nothing is printed twice: %s", got.stderr)
}
