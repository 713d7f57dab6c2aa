package commands

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Net changes are from before the first write to after the last one, whatever paths the
// writes move to others in between.
func TestNetChanges(t *testing.T) {
	route := func(name, gateway string, rules ...string) string {
		for i, r := range rules {
			rules[i] = "{name: x" + r + ", matches: [{path: {type: PathPrefix, value: /" + r + "}}]}"
		}
		return "---\n{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: app, name: " + name +
			"}, spec: {parentRefs: [{namespace: infra, name: " + gateway + "}], rules: [" + strings.Join(rules, ", ") + "]}}\n"
	}
	policy := func(name, target, rules string) string {
		return "---\n" + authOn("HTTPRoute", "app", name, target, "rules: {"+rules+"}")
	}
	const authentication, authorization = "authentication: {a: {value: 1}}", "authorization: {b: {value: 2}}"
	sections := policy("of-a", "shop, sectionName: xa", authentication) + policy("of-b", "shop, sectionName: xb", authorization)
	all := route("all", "a", "")
	own := policy("own", "shop", authentication)
	override := "---\n" + overrideOn("a", "sso")
	onB := strings.Replace(override, "name: a}", "name: b}", 1)
	twoListeners := strings.Replace(twoGateways, "listeners: [{name: http, protocol: HTTP, port: 80,", "listeners: [{name: http, protocol: HTTP, port: 82, allowedRoutes: {namespaces: {from: All}}}, {name: web, protocol: HTTP, port: 80,", 1)
	for name, c := range map[string]struct {
		from, to string
		want     []string
	}{
		"two rules whose requests another rule takes over": {
			sections + all + route("shop", "a", "a", "b", "c"), all + route("shop", "a", "c"), []string{
				"AuthPolicy on Gateway infra/a#http > HTTPRoute app/all#x: loses authentication",
				"AuthPolicy on Gateway infra/a#http > HTTPRoute app/all#x: loses authorization",
			},
		},
		"a rule that moves to another route, whose policies do not apply": {
			own + route("shop", "a", "a", "b"), own + route("admin", "a", "b") + route("shop", "a", "a"), []string{
				"AuthPolicy on Gateway infra/a#http > HTTPRoute app/admin#xb: loses authentication",
			},
		},
		"a rule that moves to another route, whatever its name": {
			own + route("shop", "a", "a", "b"), own + route("staff", "a", "b") + route("shop", "a", "a"), []string{
				"AuthPolicy on Gateway infra/a#http > HTTPRoute app/staff#xb: loses authentication",
			},
		},
		"a listener that is renamed, beside a new one of its name": {
			twoGateways + own + route("shop", "a", "a"), twoListeners + own + route("shop", "a", "a"), []string{
				"AuthPolicy on Gateway infra/a#http > HTTPRoute app/shop#xa: new, gets authentication of AuthPolicy app/own",
			},
		},
		"an override in place of another one": {
			override + route("shop", "a", "a"), strings.Replace(override, "name: sso}", "name: other}", 1) + route("shop", "a", "a"), []string{
				"AuthPolicy on Gateway infra/a#http > HTTPRoute app/shop#xa",
			},
		},
		"a route that leaves the gateway, and an override that follows": {
			override + route("shop", "a", "a"), onB + route("shop", "b", "a"), []string{
				"AuthPolicy on Gateway infra/a#http > HTTPRoute app/shop#xa: removed", "AuthPolicy on Gateway infra/b#http > HTTPRoute app/shop#xa: new, gets authentication of AuthPolicy infra/sso",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			gateways := func(manifests string) string {
				if strings.HasPrefix(manifests, "---") {
					return twoGateways + manifests
				}
				return manifests
			}
			got := run(t, "", "diff", "--from", revision(t, "all.yaml", gateways(c.from)), "--to", revision(t, "all.yaml", gateways(c.to)), "-o", "markdown")
			require.Equal(t, exitOK, got.code, got.stderr)
			var summaries []string
			for _, found := range regexp.MustCompile("<summary>(AuthPolicy .*)</summary>").FindAllStringSubmatch(got.stdout, -1) {
				summaries = append(summaries, regexp.MustCompile("<[^>]*>").ReplaceAllString(html.UnescapeString(found[1]), ""))
			}
			assert.Equal(t, c.want, summaries)
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

	got = run(t, own("2"), "check", "-f", "-", "--against", from, "--verbose", "-o", "markdown")
	require.Equal(t, exitNegative, got.code, got.stderr)
	assert.Equal(t, 1, strings.Count(got.stderr, "read 1 objects"), "the second evaluation prints nothing: %s", got.stderr)
}
