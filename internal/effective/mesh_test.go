package effective_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/test/worlds"
)

// meshed returns a profile of a kind with consumer policies.
func meshed(levels string) string {
	return worlds.ClassProfileDoc("inherited", "Probe",
		"targets: {fields: [targetRefs], namespaces: consumer, implicit: {meshNamespace: infra}}\nstrategy: {allowed: [merge]}\nlevels: "+levels)
}

// from returns a policy in a namespace, with a rule of its own.
func from(namespace, name, target string) string {
	return policyDoc("Probe", namespace, name, target+"\n'"+name+"': 1")
}

const toService = "targetRefs: [{kind: Service, name: s, namespace: app}]"

// The namespace of a consumer path is that of the route.
func TestMeshPathElements(t *testing.T) {
	v := world(t, docs(meshed("[Service]"), worlds.ServiceDoc("app", "s", 80), from("shop", "mine", toService)))
	all := walked(t, v, effective.Scope{All: true})
	assert.Len(t, all, 1)
	assert.Equal(t, []api.PathElement{{Kind: "Service", Namespace: "app", Name: "s", Client: "shop"}}, explain.Item(all[0]).Path)
	assert.Equal(t, "app", all[0].Path.Namespace())
}

// In a mesh, a route often sends traffic to the Service that is its parent: policies on
// the Service are then above the route alone.
func TestServiceAsParentAndBackend(t *testing.T) {
	v := world(t, docs(worlds.ClassProfileDoc("inherited", "Probe", "targets: {fields: [targetRefs]}\nstrategy: {allowed: [merge]}\nlevels: [Service, Route, Backend]"),
		worlds.ServiceDoc("app", "s", 80), worlds.ServiceDoc("app", "t", 80),
		"kind: HTTPRoute\nmetadata: {namespace: app, name: r}\nspec: {parentRefs: [{group: '', kind: Service, name: s}], rules: [{backendRefs: [{name: s, port: 80}, {name: t, port: 80}]}]}",
		policyDoc("Probe", "app", "service", "targetRefs: [{kind: Service, name: s}]\na: service"),
		policyDoc("Probe", "app", "other", "targetRefs: [{kind: Service, name: t}]\na: other"),
		policyDoc("Probe", "app", "route", "targetRefs: [{kind: HTTPRoute, name: r}]\na: route")))
	got := map[string]any{}
	for _, e := range walked(t, v, effective.Scope{All: true}) {
		spec, _ := e.Spec().(map[string]any)
		got[e.Path.Backend.Object.Name] = spec["a"]
	}
	assert.Equal(t, map[string]any{"s": "route", "t": "other"}, got)
}

// A consumer policy without an existing target does not split paths.
func TestConsumerWithoutTargetHasNoPath(t *testing.T) {
	v := world(t, docs(worlds.ClassProfileDoc("inherited", "Probe", "targets: {fields: [targetRefs], namespaces: consumer}\nlevels: [Service, Route]"),
		worlds.ServiceDoc("app", "s", 80),
		"kind: HTTPRoute\nmetadata: {namespace: app, name: r}\nspec: {parentRefs: [{group: '', kind: Service, name: s}], rules: [{}]}",
		policyDoc("Probe", "app", "p", "targetRefs: [{kind: Service, name: s}]\na: 1"),
		policyDoc("Probe", "shop", "q", "targetRefs: [{kind: Service, namespace: app, name: s, sectionName: none}]\na: 2")))
	assert.Equal(t, 1, outcomeOf(t, v, probeRef("app", "p")).Paths.Total)
}
