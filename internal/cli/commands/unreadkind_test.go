package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
)

// unreadKind has a route on a gateway of Envoy Gateway, whose policies are read there,
// and on one of NGINX, where they are not.
const unreadKind = `
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: eg}, spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: nginx}, spec: {controllerName: gateway.nginx.org/nginx-gateway-controller}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: new, namespace: edge}, spec: {gatewayClassName: eg, listeners: [&web {name: web, port: 80, protocol: HTTP}]}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: old, namespace: edge}, spec: {gatewayClassName: nginx, listeners: [{name: web, port: 80, protocol: HTTP}]}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: site, namespace: edge}, spec: {parentRefs: [{name: new}, {name: old}]}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: legacy, namespace: edge}, spec: {parentRefs: [{name: old}]}}
---
{apiVersion: gateway.envoyproxy.io/v1alpha1, kind: SecurityPolicy, metadata: {name: login, namespace: edge}, spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: site}], basicAuth: {users: {name: users}}}}
---
{apiVersion: gateway.envoyproxy.io/v1alpha1, kind: SecurityPolicy, metadata: {name: lost, namespace: edge}, spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: legacy}], basicAuth: {users: {name: users}}}}
`

// A path whose gateway does not read the kind is shown, and says so; it is none of those
// that the policy's state is about.
func TestKindThatAGatewayDoesNotRead(t *testing.T) {
	file := write(t, "objects.yaml", unreadKind)
	const reason = "policies of kind SecurityPolicy are not read on Gateway edge/old: its GatewayClass nginx has controller gateway.nginx.org/nginx-gateway-controller"

	for _, args := range [][]string{nil, {"--all-paths", "--kind", "SecurityPolicy"}} {
		got := run(t, "", append([]string{"effective", "-o", "json", "-f", file}, args...)...)
		require.Equal(t, exitOK, got.code, got.stderr)
		assert.Empty(t, got.stderr)
		requireSchema(t, api.KindEffectivePolicyList, got)
		notRead := make(map[string]string)
		for _, item := range decode[api.EffectivePolicyList](t, got.stdout).Items {
			route := item.Path[1].Name + " " + item.Path[3].Name
			assert.NotContains(t, notRead, route, "each path once")
			notRead[route] = item.NotRead
			assert.Equal(t, item.NotRead != "", len(item.Rules) == 0)
		}
		assert.Equal(t, map[string]string{"new site": "", "old site": reason, "old legacy": reason}, notRead)
	}

	got := run(t, "", "outcome", "-o", "json", "-f", file)
	requireSchema(t, api.KindOutcomeList, got)
	outcomes := decode[api.OutcomeList](t, got.stdout).Items
	require.Len(t, outcomes, 2)
	assert.Equal(t, api.Enforced, outcomes[0].State)
	assert.Equal(t, api.PathCounts{Total: 1, Enforced: 1, NotRead: 1}, outcomes[0].Paths)
	assert.Equal(t, reason, outcomes[0].Message)
	assert.Equal(t, api.NoPath, outcomes[1].State)
	assert.Equal(t, api.PathCounts{NotRead: 1}, outcomes[1].Paths)
	assert.Equal(t, reason, outcomes[1].Message)

	for _, format := range []string{"table", "tree"} {
		assert.Contains(t, run(t, "", "effective", "-o", format, "-f", file, "-n", "edge", "securitypolicy/lost").stdout, "none: not read here", format)
		assert.Contains(t, run(t, "", "explain", "-o", format, "-f", file, "-n", "edge", "httproute/legacy").stdout, "note: "+reason, format)
	}
}

// A class that does not exist, or whose controller is not known, counts for every kind;
// the output says so once, and only if that decides something.
func TestControllerThatIsNotKnown(t *testing.T) {
	for name, c := range map[string]struct{ old, replacement, want string }{
		"a controller": {"gateway.nginx.org/nginx-gateway-controller", "example.com/own", "warning: GatewayClass nginx: controller example.com/own is not known, so policies of all kinds count on its gateways\n"},
		"a class":      {"gatewayClassName: nginx", "gatewayClassName: none", "warning: GatewayClass none: it was not found, so policies of all kinds count on its gateways\n"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(unreadKind, c.old, c.replacement, 1)
			file := write(t, "objects.yaml", text)
			for _, args := range [][]string{{"effective"}, {"outcome"}, {"explain", "httproute/legacy", "-n", "edge"}} {
				got := run(t, "", append(args, "-f", file)...)
				assert.Equal(t, c.want, got.stderr, args)
				assert.NotContains(t, got.stdout, "not read", args)
			}
			assert.Equal(t, c.want, run(t, "", "check", "-f", file, "--against", file).stderr)
			withoutPolicies, _, _ := strings.Cut(text, "---\n{apiVersion: gateway.envoyproxy.io")
			assert.NotContains(t, run(t, "", "effective", "-f", write(t, "objects.yaml", withoutPolicies)).stderr, "GatewayClass")
		})
	}
}
