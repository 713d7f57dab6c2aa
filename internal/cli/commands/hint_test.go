package commands

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Most kinds of policies act above the backends: who asks about a Service is
// sent to what sends it traffic.
func TestABackendThatNoPolicyReachesLeadsToItsRoutes(t *testing.T) {
	file := write(t, "app.yaml", `
kind: HTTPRoute
apiVersion: gateway.networking.k8s.io/v1
metadata: {namespace: app, name: shop}
spec: {parentRefs: [{name: edge, namespace: infra}], rules: [{backendRefs: [{name: cart, port: 80}]}]}
`)
	got := run(t, "", "reach", "--affecting", "service/cart", "-n", "app", "-f", file)
	assert.Equal(t, "no policy affects Service app/cart: no path with a policy goes through it; "+
		"for kinds whose paths end above it, ask for what sends it traffic: HTTPRoute app/shop\n", got.stderr)
	got = run(t, "", "reach", "--affecting", "httproute/shop", "-n", "app", "-f", file)
	assert.Equal(t, "no policy affects HTTPRoute app/shop: no path with a policy goes through it\n", got.stderr)
}

// Offline, the definition of a kind is where its profile's addresses are looked
// for, as on a cluster.
func TestAProfileIsHeldToTheDefinitionOfItsKind(t *testing.T) {
	definition := write(t, "crd.yaml", `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ownpolicies.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: OwnPolicy, plural: ownpolicies, singular: ownpolicy}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {targetRef: {type: object}, override: {type: object}}}
`)
	all := check(t, ownProfile("own", "none"), "--against", definition)
	require.Len(t, all, 1)
	assert.Equal(t, []string{"CREATE PolicyProfile own (NotRead)"}, verdicts(all))
	assert.Contains(t, all[0].Warnings[0].Message, "blocks.overrides[0]: spec.overrides is not in the schema of OwnPolicy.example.com")
}
