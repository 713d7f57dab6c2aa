package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/test/tables"
)

// namesBase has a Gateway, a route with two named rules and a policy with one rule.
const namesBase = `
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: infra}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: eg}, spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge}
spec:
  gatewayClassName: eg
  listeners:
    - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
    - {name: https, port: 443, protocol: HTTPS, allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: cart}
spec: {parentRefs: [{namespace: infra, name: edge}], rules: [{name: items}, {name: checkout, matches: [{path: {value: /checkout}}]}]}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {namespace: shop, name: login}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: cart}], cors: {allowOrigins: ["*"]}}
`

// A name that does not exist comes with the one that was probably meant, or with the namespace
// that has it, in every command; without either, nothing is guessed.
func TestNearestNames(t *testing.T) {
	base := write(t, "base.yaml", namesBase)
	for command, c := range tables.Read[map[string]struct {
		Code int
		Want string // the whole line, or its beginning if it ends with …
	}](t, "testdata/tables/nearest-names.yaml") {
		t.Run(command, func(t *testing.T) {
			got := run(t, "", append(strings.Fields(command), "-f", base)...)
			assert.Equal(t, c.Code, got.code)
			lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
			if begin, ok := strings.CutSuffix(c.Want, "…"); ok {
				assert.True(t, strings.HasPrefix(lines[0], begin), lines[0])
			} else {
				assert.Equal(t, c.Want, lines[0])
			}
		})
	}
}

func TestHierarchyKindNames(t *testing.T) {
	everyKind := "---\n{apiVersion: v1, kind: Namespace, metadata: {name: x}}\n---\n{apiVersion: v1, kind: Service, metadata: {name: x}}\n"
	for kind := range strings.FieldsSeq("GatewayClass Gateway ListenerSet ReferenceGrant GRPCRoute TLSRoute TCPRoute UDPRoute") {
		everyKind += "---\n{apiVersion: gateway.networking.k8s.io/v1, kind: " + kind + ", metadata: {name: x}}\n"
	}
	for _, words := range []string{
		"ns", "namespace", "namespaces", "Namespace", "svc", "service", "services", "gc", "gatewayclass", "gatewayclasses",
		"gtw", "gw", "gateways", "lset", "listenerset", "listenersets.gateway.networking.k8s.io", "refgrant", "referencegrant", "referencegrants",
		"grpcroute", "tlsroute", "TLSRoutes", "tcproutes", "udproute", "UDPRoute.gateway.networking.k8s.io",
	} {
		for _, command := range []string{"effective", "explain"} {
			got := run(t, everyKind, command, "-f", "-", words+"/x")
			assert.Equal(t, exitOK, got.code, "%s: %s", words, got.stderr)
		}
		got := run(t, everyKind, "effective", "-f", "-", words+"/y")
		assert.Equal(t, exitNegative, got.code, words)
		assert.Contains(t, got.stderr, "y not found", words)
	}
}
