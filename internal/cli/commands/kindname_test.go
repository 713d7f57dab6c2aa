package commands

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

const everyKind = `
apiVersion: v1
kind: Namespace
metadata: {name: x}
---
apiVersion: v1
kind: Service
metadata: {name: x}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: x}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: x}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: x}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: x}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: x}
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: x}
---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: x}
---
apiVersion: gateway.networking.k8s.io/v1
kind: UDPRoute
metadata: {name: x}
`

func TestHierarchyKindNames(t *testing.T) {
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

// A ListenerSet and an XListenerSet have one short name, and may have one name.
func TestListenerSetNames(t *testing.T) {
	const set, x = `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: x}
`, `
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XListenerSet
metadata: {name: x}
`
	const either = `ListenerSet.gateway.networking.k8s.io, XListenerSet.gateway.networking.x-k8s.io`
	for name, c := range map[string]struct {
		objects, word string
		code          int
		says          string
	}{
		"an XListenerSet alone":              {x, "xlistenerset", exitOK, ""},
		"its plural":                         {x, "xlistenersets", exitOK, ""},
		"its short name":                     {x, "lset", exitOK, ""},
		"no ListenerSet":                     {x, "listenerset", exitNegative, "ListenerSet default/x not found"},
		"a ListenerSet alone":                {set, "lset", exitOK, ""},
		"no XListenerSet":                    {set, "xlistenerset", exitNegative, "XListenerSet default/x not found"},
		"both":                               {set + "---" + x, "lset", exitError, either},
		"both, with the group":               {set + "---" + x, "lset.gateway.networking.x-k8s.io", exitOK, ""},
		"both, by their own names":           {set + "---" + x, "listenerset", exitOK, ""},
		"neither":                            {"apiVersion: v1\nkind: Namespace\nmetadata: {name: x}", "lset", exitNegative, "ListenerSet default/x not found"},
		"neither, by the name of the second": {"apiVersion: v1\nkind: Namespace\nmetadata: {name: x}", "xlistenersets", exitNegative, "XListenerSet default/x not found"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, c.objects, "effective", "-f", "-", c.word+"/x")
			assert.Equal(t, c.code, got.code, got.stderr)
			assert.Contains(t, got.stderr, c.says)
		})
	}
}
