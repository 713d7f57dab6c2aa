package effective_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/test/worlds"
)

// Who asks why a timeout is 5s wants to see the 9s of the route, too.
func TestTheRoutesOwnValueIsExplained(t *testing.T) {
	v := world(t, docs(freeProbe(controlling+"fields: [{rule: b, route: 'spec.rules[*].timeouts.request'}]"),
		gatewayDoc("g", "c", "http"), routeDoc("r", "[{timeouts: {request: 9s}}]", "g"), probeDoc("p", 1, onGateway+"overrides: {b: 5s}")))
	all := walked(t, v, effective.Scope{All: true})
	require.Len(t, all, 1)
	x, ok := all[0].Explain(nil)
	require.True(t, ok)
	require.Len(t, x.Rules, 1)
	assert.Equal(t, "5s", x.Rules[0].Value)
	assert.Equal(t, []api.LostFrom{{
		Policy: api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "app", Name: "r"}, Block: "object", Value: "9s",
		To: probeRef("app", "p"), ToBlock: "overrides",
	}}, x.Rules[0].Lost)
	require.Len(t, x.Policies, 1, "the route is no policy")
}

// A list where the address of a field has none does not take the policies off
// the path.
func TestAFieldThatIsNotWhereTheProfileSays(t *testing.T) {
	v := world(t, docs(freeProbe(controlling+"fields: [{rule: b, route: 'spec.rules[*].filters.timeout'}]"),
		gatewayDoc("g", "c", "http"), routeDoc("r", "[{filters: [{timeout: 9s}]}]", "g"), probeDoc("p", 1, onGateway+"b: 5s")))
	assert.Equal(t, []string{"r#rule-1: b=5s p/bare"}, fielded(t, v))
}

// In a mesh a route often sends traffic to the very Service that is its parent:
// what targets the Service stands above the route, not below it, too.
func TestAServiceThatIsItsRoutesParentAndBackend(t *testing.T) {
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

// Clients are told apart by policies that hold, not by ones that have no
// target.
func TestAConsumerWithoutATargetMakesNoPath(t *testing.T) {
	v := world(t, docs(worlds.ClassProfileDoc("inherited", "Probe", "targets: {fields: [targetRefs], namespaces: consumer}\nlevels: [Service, Route]"),
		worlds.ServiceDoc("app", "s", 80),
		"kind: HTTPRoute\nmetadata: {namespace: app, name: r}\nspec: {parentRefs: [{group: '', kind: Service, name: s}], rules: [{}]}",
		policyDoc("Probe", "app", "p", "targetRefs: [{kind: Service, name: s}]\na: 1"),
		policyDoc("Probe", "shop", "q", "targetRefs: [{kind: Service, namespace: app, name: s, sectionName: none}]\na: 2")))
	assert.Equal(t, 1, outcomeOf(t, v, probeRef("app", "p")).Paths.Total)
}

func TestAPolicyWhereItsKindHasNoLevel(t *testing.T) {
	v := world(t, docs(worlds.ClassProfileDoc("inherited", "Probe", "targets: {fields: [targetRefs]}\nlevels: [Gateway, Route]"),
		gatewayDoc("g", "c", "http"), routeDoc("r", "[{}]", "g"),
		policyDoc("Probe", "infra", "p", "targetRefs: [{kind: Gateway, name: g, sectionName: http}]\na: 1"),
		policyDoc("Probe", "infra", "q", "targetRefs: [{kind: Gateway, name: g}]\na: 1")))
	out := outcomeOf(t, v, probeRef("infra", "p"))
	assert.Equal(t, api.NoPath, out.State)
	assert.Equal(t, "policies of kind Probe may not stand at Gateway infra/g section http: their levels are Gateway, Route", out.Message)
	assert.Equal(t, api.Enforced, outcomeOf(t, v, probeRef("infra", "q")).State)
}
