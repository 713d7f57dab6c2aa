package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

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
