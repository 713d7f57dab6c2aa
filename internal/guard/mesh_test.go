package guard_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/worlds"
)

// A policy for ports or clients of a Service changes the paths
// that it is on, and no others.
func TestMeshPaths(t *testing.T) {
	probe := func(namespace, name, target string) string {
		return policyDoc("Probe", namespace, name, "targetRefs: [{kind: Service, name: s, namespace: app"+target+"}]\na: "+name)
	}
	base := docs(worlds.ClassProfileDoc("inherited", "Probe", "targets: {fields: [targetRefs], namespaces: consumer}\n"+
		"strategy: {allowed: [merge]}\nblocks: {overrides: [overrides]}\nlevels: [ServiceNamespace, Service]"),
		worlds.ServiceDoc("app", "s", 80, 81),
		policyDoc("Probe", "app", "own", "targetRefs: [{kind: Namespace, name: app}]\noverrides: {b: 1}"))
	one := api.Changes{Paths: 1, Namespaces: 1}
	assert.Equal(t, one, evaluate(t, world(t, base), probe("app", "port", ", port: 81")).Changes)
	assert.Equal(t, one, evaluate(t, world(t, base), probe("shop", "mine", "")).Changes)

	v := world(t, docs(base, probe("app", "port", ", port: 81")))
	ref := api.Ref{Group: worlds.Group, Kind: "Probe", Namespace: "app", Name: "port"}
	assert.Equal(t, one, deleted(t, v, ref).Changes)
	assert.Equal(t, []string{"Warn RulesLost a Probe app/port: Service app/s#81, 1 path"}, findings(t, deleted(t, v, ref)))

	v = world(t, docs(base, probe("app", "low", ""), policyDoc("Probe", "app", "top", "targetRefs: [{kind: Service, name: s, port: 81}]\nc: 1")))
	assert.Equal(t, one, evaluate(t, v, policyDoc("Probe", "app", "top", "targetRefs: [{kind: Namespace, name: app}]\noverrides: {a: 2}")).Changes, "two that become one are one")
}
