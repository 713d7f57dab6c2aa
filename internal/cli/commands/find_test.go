package commands

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
)

const virtual = `
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: clouds}
spec:
  group: example.com
  kind: CloudPolicy
  class: inherited
  levels: [GatewayNamespace, Gateway, Listener]
  targets:
    fields: [targetRef]
    kinds:
    - {group: "", kind: Namespace}
    - {group: gateway.networking.k8s.io, kind: GatewayClass}
    - {group: clouds.example.com, kind: Region, virtual: true}
---
apiVersion: example.com/v1
kind: CloudPolicy
metadata: {namespace: app, name: cloud}
spec: {targetRef: {group: clouds.example.com, kind: Region, name: north}, size: 1}
---
apiVersion: example.com/v1
kind: CloudPolicy
metadata: {namespace: infra, name: space}
spec: {targetRef: {group: "", kind: Namespace, name: infra}, size: 2}
`

// Virtual targets, and namespaces that are not in the manifests, can be named like
// any other object.
func TestFindReferencedObjects(t *testing.T) {
	world := []string{"-f", demo + "cluster.yaml", "-f", "-", "-n", "app"}
	got := run(t, virtual, append(world, "reach", "--affecting", "region/north", "-o", "json")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	items := decode[api.ReachList](t, got.stdout).Items
	require.Len(t, items, 1)
	assert.Equal(t, []api.Ref{{Group: "clouds.example.com", Kind: "Region", Namespace: "app", Name: "north"}}, items[0].Backends)
	got = run(t, virtual, append(world, "effective", "Region.clouds.example.com/north", "-o", "tree")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.Contains(t, got.stdout, "Region app/north\n└─ CloudPolicy\n   └─ size = 1  from app/cloud\n")
	got = run(t, virtual, append(world, "reach", "--affecting", "ns/infra", "-o", "json")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	items = decode[api.ReachList](t, got.stdout).Items
	require.Len(t, items, 1)
	assert.Equal(t, "space", items[0].Policy.Name)
	got = run(t, virtual, append(world, "effective", "region/south")...)
	assert.Equal(t, exitError, got.code)
	assert.Contains(t, got.stderr, `unknown kind "region"`)
}

// The paths of a ReferenceGrant are those of the policies that depend on it.
func TestPathsOfReferenceGrant(t *testing.T) {
	text := `
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: far}
spec:
  group: example.com
  kind: FarPolicy
  class: inherited
  targets: {fields: [targetRef], namespaces: referenceGrant}
---
apiVersion: example.com/v1
kind: FarPolicy
metadata: {namespace: away, name: far}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: app, name: toystore}, size: 1}
---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {namespace: app, name: grant}
spec:
  from: [{group: example.com, kind: FarPolicy, namespace: away}]
  to: [{group: gateway.networking.k8s.io, kind: HTTPRoute}]
`
	got := run(t, text, "effective", "-f", demo+"cluster.yaml", "-f", "-", "-n", "app", "referencegrant/grant", "--kind", "FarPolicy", "-o", "json")
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.Len(t, decode[api.EffectivePolicyList](t, got.stdout).Items, 2)
}
