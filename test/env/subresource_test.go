//go:build integration

package env_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
)

// scaled is a policy kind with a scale subresource on a field of its overrides.
const scaled = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: scaleds.policies.example.com}
spec:
  group: policies.example.com
  scope: Namespaced
  names: {kind: Scaled, plural: scaleds, singular: scaled}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    subresources: {status: {}, scale: {specReplicasPath: .spec.overrides.limit, statusReplicasPath: .status.limit}}
`

// TestWhatSubresourcesStore tests the assumption of webhook/entry.go: which parts
// of an object, besides its status, a write of a subresource stores.
func TestWhatSubresourcesStore(t *testing.T) {
	e := env.Start(t)
	succeeds := func(got env.Result) string {
		require.Zero(t, got.Code, got.Stderr)
		return got.Stdout
	}
	succeeds(e.Apply(scaled))
	succeeds(e.Kubectl("wait", "--for=condition=Established", "crd/scaleds.policies.example.com"))
	succeeds(e.Apply(`
{apiVersion: v1, kind: Namespace, metadata: {name: sub}}
---
{apiVersion: v1, kind: Service, metadata: {name: s, namespace: sub}, spec: {ports: [{port: 80}]}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: c}, spec: {controllerName: example.com/c}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: g, namespace: sub}, spec: {gatewayClassName: c, listeners: [{name: http, port: 80, protocol: HTTP}]}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r, namespace: sub}, spec: {parentRefs: [{name: g}]}}
---
{apiVersion: policies.example.com/v1, kind: Scaled, metadata: {name: p, namespace: sub}, spec: {overrides: {limit: 5}}}
---
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: p}
spec: {group: policies.example.com, kind: Scaled, class: direct, targets: {fields: [targetRef]}}
---
apiVersion: overrule.dev/v1alpha1
kind: ClusterPolicyConstraint
metadata: {name: p}
spec: {policyKind: {group: policies.example.com, kind: Scaled}, rules: [{path: a, required: true}]}
`))
	// Of an owner that does not exist, the garbage collector would delete the objects.
	uid := succeeds(e.Kubectl("get", "namespace/sub", "-o", "jsonpath={.metadata.uid}"))
	metadata := `{"metadata":{"labels":{"sub":"x"},"finalizers":["example.com/sub"],"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"sub","uid":"` + uid + `"}]},` +
		`"spec":{"overrides":{"limit":1},"class":"inherited"}}`
	get := func(object, path string) string {
		return succeeds(e.Kubectl("-n", "sub", "get", object, "-o", "jsonpath="+path))
	}
	const stored = `x ["example.com/sub"] sub`
	for object, want := range map[string]string{
		"service/s":                        stored,
		"namespace/sub":                    stored,
		"crd/scaleds.policies.example.com": stored,
		"gatewayclass/c":                   "  ",
		"gateway/g":                        "  ",
		"httproute/r":                      "  ",
		"scaleds.policies.example.com/p":   "  ",
		"policyprofile/p":                  "  ",
		"clusterpolicyconstraint/p":        "  ",
	} {
		t.Run(object, func(t *testing.T) {
			spec := get(object, "{.spec.overrides}{.spec.class}")
			succeeds(e.Kubectl("-n", "sub", "patch", object, "--subresource=status", "--type=merge", "-p", metadata))
			assert.Equal(t, want, get(object, "{.metadata.labels.sub} {.metadata.finalizers} {.metadata.ownerReferences[*].name}"))
			assert.Equal(t, spec, get(object, "{.spec.overrides}{.spec.class}"))
		})
	}
	t.Run("a scale writes a field of the spec", func(t *testing.T) {
		succeeds(e.Kubectl("-n", "sub", "scale", "scaleds.policies.example.com/p", "--replicas=1000"))
		assert.Equal(t, "1000", get("scaleds.policies.example.com/p", "{.spec.overrides.limit}"))
	})
	t.Run("the status of a CRD disables its kind", func(t *testing.T) {
		succeeds(e.Kubectl("patch", "crd/scaleds.policies.example.com", "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[]}}`))
		soon(t, func() bool {
			return e.Kubectl("-n", "sub", "get", "--raw", "/apis/policies.example.com/v1/namespaces/sub/scaleds/p").Code != 0
		}, "it is served")
	})
}
