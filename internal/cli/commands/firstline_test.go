package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
)

// lossBase has a gateway whose policy allows origins and requires tokens, a route of two rules on
// it, and a policy of the second rule that merges.
const lossBase = `
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: eg}, spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge}
spec: {gatewayClassName: eg, listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: cart}
spec: {parentRefs: [{namespace: infra, name: edge}], rules: [{name: items}, {name: pay, matches: [{path: {value: /pay}}]}]}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {namespace: infra, name: edge}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}], cors: {allowOrigins: [a]}, jwt: {providers: [{name: a}]}}
`

// The first line of check and diff, and the heading of reports, say what paths lose, what protects
// first, and what a new route gets.
func TestFirstLines(t *testing.T) {
	const (
		security = "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: SecurityPolicy\n"
		onRoute  = "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: cart}]"
		onGate   = "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]"
	)
	merging := "---\n" + security + "metadata: {namespace: shop, name: pay}\nspec: {mergeType: StrategicMerge, targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: cart, sectionName: pay}], jwt: {providers: [{name: b}]}}\n"
	for name, c := range map[string]struct{ base, change, check, diff string }{
		"a policy that replaces the gateway's": {
			lossBase, security + "metadata: {namespace: shop, name: own}\nspec: {" + onRoute + ", apiKeyAuth: {extractFrom: [{headers: [x]}]}}",
			"CREATE SecurityPolicy shop/own: allowed; 2 paths lose jwt, 2 paths lose cors", "2 effective policies change (2 lose jwt, 2 lose cors)",
		},
		"an edit of one's own policy, which some paths don't lose": {
			lossBase + merging, security + "metadata: {namespace: infra, name: edge}\nspec: {" + onGate + ", cors: {allowOrigins: [b]}}",
			"UPDATE SecurityPolicy infra/edge: allowed; 1 path loses jwt; the effective policy of 2 paths changes", "2 effective policies change (1 loses jwt)",
		},
		"a new route": {
			lossBase, "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {namespace: shop, name: new}\nspec: {parentRefs: [{namespace: infra, name: edge}], hostnames: [new.example.com]}",
			"CREATE HTTPRoute shop/new: allowed; changes the effective policy of 1 path in 1 namespace; gets cors and jwt of SecurityPolicy infra/edge",
			"1 effective policy changes; 1 new path gets cors and jwt of SecurityPolicy infra/edge",
		},
		"a new route that takes requests of one with a policy": {
			lossBase + "---\n" + security + "metadata: {namespace: shop, name: own}\nspec: {" + onRoute + ", mergeType: StrategicMerge, basicAuth: {users: {name: a}}}",
			"apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {namespace: shop, name: new}\nspec: {parentRefs: [{namespace: infra, name: edge}], rules: [{matches: [{path: {value: /new}}]}]}",
			"CREATE HTTPRoute shop/new: allowed; changes the effective policy of 1 path in 1 namespace; gets cors and jwt of SecurityPolicy infra/edge; requests that move to another route, rule or listener lose basicAuth",
			"1 effective policy changes; 1 new path gets cors and jwt of SecurityPolicy infra/edge; requests that move to another route, rule or listener lose basicAuth",
		},
		"a new route without policies that takes requests of one with a policy": {
			strings.Replace(lossBase, "name: edge}], cors", "name: none}], cors", 1) + "---\n" + security + "metadata: {namespace: shop, name: own}\nspec: {" + onRoute + ", jwt: {providers: [{name: a}]}}",
			"apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {namespace: shop, name: new}\nspec: {parentRefs: [{namespace: infra, name: edge}], rules: [{matches: [{path: {value: /new}}]}]}",
			"CREATE HTTPRoute shop/new: allowed; requests that move to another route, rule or listener lose jwt", "requests that move to another route, rule or listener lose jwt",
		},
		"an edit that loses nothing": {
			lossBase, security + "metadata: {namespace: infra, name: edge}\nspec: {" + onGate + ", cors: {allowOrigins: [b]}, jwt: {providers: [{name: a}]}}",
			"UPDATE SecurityPolicy infra/edge: allowed; changes the effective policy of 2 paths in 1 namespace", "2 effective policies change",
		},
		"a label": {
			lossBase, security + "metadata: {namespace: infra, name: edge, labels: {a: b}}\nspec: {" + onGate + ", cors: {allowOrigins: [a]}, jwt: {providers: [{name: a}]}}",
			"UPDATE SecurityPolicy infra/edge: allowed; changes no effective policy", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"-f", write(t, "change.yaml", c.change), "--against", write(t, "base.yaml", c.base)}
			first := func(command ...string) string {
				got := run(t, "", append(command, args...)...)
				line, _, _ := strings.Cut(got.stdout, "\n")
				return line
			}
			assert.Equal(t, c.check, first("check"))
			if c.diff == "" {
				return
			}
			assert.True(t, strings.HasSuffix(first("diff"), ": "+c.diff), first("diff"))
			heading := strings.NewReplacer(" change ", " change in 1 namespace ", " changes;", " changes in 1 namespace;").Replace(c.diff + " ")
			for _, command := range []string{"check", "diff"} {
				got := run(t, "", append([]string{command, "-o", "markdown"}, args...)...)
				assert.Contains(t, got.stdout, strings.TrimSpace(heading)+"**\n")
			}
		})
	}
}

// gained lists what the paths of a new route get, and nothing for other writes.
func TestGainedRules(t *testing.T) {
	route := func(name, spec string) string {
		return "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {namespace: shop, name: " + name + "}\nspec: {hostnames: [new.example.com], " + spec + "rules: [{}, {matches: [{path: {value: /x}}]}]}\n"
	}
	const onGateway = "parentRefs: [{namespace: infra, name: edge}], "
	edge := api.Ref{Group: "gateway.envoyproxy.io", Kind: "SecurityPolicy", Namespace: "infra", Name: "edge"}
	base := write(t, "base.yaml", lossBase+`---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: infra, name: two}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}, rules: {authentication: {a: {anonymous: {}}, b: {anonymous: {}}}}}
---
apiVersion: gateway.kgateway.dev/v1alpha1
kind: TrafficPolicy
metadata: {namespace: infra, name: none}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: other}], extAuth: {disable: {}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: other}
spec: {gatewayClassName: unknown, listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]}
`+route("stored", ""))
	auth := api.Ref{Group: "kuadrant.io", Kind: "AuthPolicy", Namespace: "infra", Name: "two"}
	got := check(t, route("new", onGateway), "--against", base)
	require.Len(t, got, 1)
	assert.Equal(t, []api.GainedRules{{Rules: "cors", Policy: edge, Paths: 2}, {Rules: "jwt", Policy: edge, Paths: 2}, {Rules: "authentication", Policy: auth, Paths: 2}}, got[0].Gained,
		"two of a group once")
	got = check(t, route("new", strings.Replace(onGateway, "edge", "other", 1)), "--against", base)
	require.Len(t, got, 1)
	assert.Empty(t, got[0].Gained, "a rule that disables others is none to get")
	got = check(t, route("stored", onGateway), "--against", base)
	require.Len(t, got, 1)
	assert.Empty(t, got[0].Gained, "the route exists")
}
