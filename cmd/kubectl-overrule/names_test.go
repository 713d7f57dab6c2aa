package main

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

func TestEveryKindOfTheHierarchyCanBeNamed(t *testing.T) {
	for _, words := range []string{
		"ns", "namespace", "namespaces", "Namespace", "svc", "service", "services", "gc", "gatewayclass", "gatewayclasses",
		"gtw", "gw", "gateways", "lset", "listenerset", "listenersets.gateway.networking.k8s.io", "refgrant", "referencegrant", "referencegrants",
		"grpcroute", "tlsroute", "TLSRoutes", "tcproutes", "udproute", "UDPRoute.gateway.networking.k8s.io",
	} {
		for _, command := range []string{"effective", "explain"} {
			got := run(t, everyKind, command, "-f", "-", words+"/x")
			assert.Equal(t, exitFound, got.code, "%s: %s", words, got.stderr)
		}
		got := run(t, everyKind, "effective", "-f", "-", words+"/y")
		assert.Equal(t, exitNotFound, got.code, words)
		assert.Contains(t, got.stderr, "y not found", words)
	}
}
