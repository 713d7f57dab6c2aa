//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/test/env"
)

// glaze is a kind that only a PolicyProfile makes a policy kind.
const glaze = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: glazes.policies.example.com}
spec:
  group: policies.example.com
  scope: Namespaced
  names: {kind: Glaze, plural: glazes, singular: glaze}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {targetRef: {type: object, x-kubernetes-preserve-unknown-fields: true}, gloss: {type: string}}}
`

const glazeProfile = `
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: NAME}
spec: {group: policies.example.com, kind: Glaze, class: direct, targets: {fields: [FIELD]}}
`

func profileOf(name, field string) string {
	return strings.NewReplacer("NAME", name, "FIELD", field).Replace(glazeProfile)
}

// TestProfileLifecycle creates, changes and deletes a profile while the server
// runs.
func TestProfileLifecycle(t *testing.T) {
	c := shared(t)
	g := c.prepare(t, "profile")
	succeed(t, c.Apply(glaze))
	t.Cleanup(func() { c.Kubectl("delete", "--ignore-not-found", "crd/glazes.policies.example.com") })
	c.start(t)
	accepted := func(name string) string {
		return c.Kubectl("get", "policyprofile", name, "-o", `jsonpath={.status.conditions[?(@.type=="Accepted")].reason}`).Stdout
	}
	c.awaitCalled(t)

	denied(t, c.Apply(profileOf("glaze", "..odd..")), "Invalid: ", `spec.targets.fields[0]: Invalid value: "..odd.."`)
	got := c.Apply(profileOf("glaze", "targetRfe"))
	succeed(t, got)
	assert.Contains(t, got.Stderr, "spec.targetRfe is not in the schema of Glaze.policies.example.com")
	succeed(t, c.Apply(profileOf("glaze", "targetRef")))
	soon(t, func() bool { return accepted("glaze") == "Accepted" }, "its status does not report that it is accepted")
	soon(t, func() bool { return strings.Contains(c.rules(t), "glazes") }, "the rules do not name the kind")

	one := func(name string) env.Result {
		return g.apply(strings.ReplaceAll(`
apiVersion: policies.example.com/v1
kind: Glaze
metadata: {namespace: APP, name: NAME}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}, gloss: high}
`, "NAME", name))
	}
	soon(t, func() bool { return one("first").Code == 0 }, "the kind cannot be written")
	denied(t, one("second"), "Conflicted: ")

	succeed(t, c.Apply(profileOf("late", "targetRef")))
	soon(t, func() bool { return accepted("late") == "Conflicted" }, "the younger one has no condition Conflicted")
	succeed(t, c.Kubectl("delete", "policyprofile", "glaze", "late"))
	soon(t, func() bool { return !strings.Contains(c.rules(t), "glazes") }, "the rules still name the kind")
	soon(t, func() bool { return one("second").Code == 0 }, "it is still evaluated")
}
