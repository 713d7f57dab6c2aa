package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// "Ways of targeting objects" of the current text, with its own YAML, in which
// the group has a version.
func TestWaysOfTargetingObjects(t *testing.T) {
	const policy = `apiVersion: policies.controller.io/v1
kind: ColorPolicy
metadata:
  name: my-color-policy
spec:
  rules:
    color: blue
  targetRefs:
  - group: gateway.networking.k8s.io/v1
    kind: Gateway
`
	const grant = `---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: grant, namespace: infra}
spec:
  from: [{group: policies.controller.io, kind: ColorPolicy, namespace: default}]
  to: [{group: gateway.networking.k8s.io, kind: Gateway}]
`
	tests := map[string]struct {
		ref      string
		affected []string
		state    api.State
	}{
		"reference by name": {"    name: my-gateway\n", []string{"my-gateway"}, api.Enforced},
		"label selectors":   {"    selector:\n      matchLabels:\n        env: production\n", []string{"one", "two"}, api.Enforced},
		"label selectors that match nothing": {
			"    selector:\n      matchLabels:\n        env: staging\n", nil, api.TargetNotFound,
		},
		"cross namespace references without a ReferenceGrant": {"    name: far\n    namespace: infra\n", nil, api.TargetNotFound},
		"cross namespace references with a ReferenceGrant":    {"    name: far\n    namespace: infra\n" + grant, []string{"far"}, api.Enforced},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := read(t, policy+test.ref, "targets")
			assert.Equal(t, test.state, w.outcomes["my-color-policy"].State)
			var got []string
			for _, item := range w.items {
				if len(item.Rules) > 0 {
					assert.Equal(t, obj{"color": "blue"}, item.Spec)
					got = append(got, short(item.Path))
				}
			}
			assert.ElementsMatch(t, test.affected, got)
		})
	}
}

// "Apply Policies to Sections of a Resource" of 2023: a listener, a rule, a
// port.
func TestSections(t *testing.T) {
	const policy = `apiVersion: networking.acme.io/v1alpha2
kind: RetryPolicy
metadata: {name: foo}
spec:
  maxRetries: 5
  targetRef: `
	one, two := "one bar 8080", "one rule-2 9090"
	three, four := "two bar 8080", "two rule-2 9090"
	tests := map[string]struct {
		target string
		want   []string
	}{
		"Gateway.Listeners.Name": {"{group: gateway.networking.k8s.io, kind: Gateway, name: gateway, sectionName: two}", []string{three, four}},
		"xRoute.Rules.Name":      {"{group: gateway.networking.k8s.io, kind: HTTPRoute, name: http-app-1, sectionName: bar}", []string{one, three}},
		"Service.Ports.Name":     {`{group: "", kind: Service, name: my-service1, sectionName: admin}`, []string{two, four}},
		"when unspecified, this targets the entire resource": {
			"{group: gateway.networking.k8s.io, kind: HTTPRoute, name: http-app-1}", []string{one, two, three, four},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := read(t, policy+test.target, "sections")
			assert.Len(t, w.items, 4)
			var got []string
			for _, item := range w.items {
				if len(item.Rules) > 0 {
					got = append(got, sections(item.Path))
				}
			}
			assert.ElementsMatch(t, test.want, got)
			hasState("foo", api.Enforced)(t, w)
		})
	}
}

// sections returns the sections of a path's elements.
func sections(path []api.PathElement) string {
	out := ""
	for _, e := range path {
		if e.Section != "" {
			out += " " + e.Section
		}
	}
	return out[1:]
}

// "Policy Attachment for Mesh" of both older texts: "Policy can be applied to
// any resource in any namespace but it can only apply to requests from the same
// namespace if the target is in a different namespace."
func TestPolicyAttachmentForMesh(t *testing.T) {
	w := read(t, "", "mesh")
	by := make(map[string][]string) // the client's namespace to the policies on its requests
	for _, item := range w.items {
		last := item.Path[len(item.Path)-1]
		assert.Equal(t, gateway.KindService, last.Kind)
		by[last.Client] = on(item)
	}
	assert.ElementsMatch(t, []string{"producer"}, by[""])
	assert.ElementsMatch(t, []string{"consumer", "producer"}, by["client"])
	assert.Len(t, by, 2)
}
