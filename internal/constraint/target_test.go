package constraint_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

const sound = "validations: [{expression: 'true'}]\ntargets: "

func TestConstraintTargets(t *testing.T) {
	toBackend, toSet, mesh, meshPort := gatewayPath(), bySet(), inMesh(0), inMesh(80)
	atGateway := gateway.Path{Gateway: toBackend.Gateway, Rule: -1}
	virtual := gateway.Path{Virtual: &api.Ref{Group: "example.com", Kind: "Thing", Namespace: "app", Name: "t"}, Rule: -1}
	paths := map[string]*gateway.Path{
		"gateway": &atGateway, "backend": &toBackend, "set": &toSet, "mesh": &mesh, "port": &meshPort, "virtual": &virtual,
	}
	cases := map[string]struct {
		targets string
		want    []string
	}{
		"without targets every path":            {"[]", []string{"gateway", "backend", "set", "mesh", "port", "virtual"}},
		"a class":                               {"[{kind: GatewayClass, name: istio}]", []string{"gateway", "backend", "set"}},
		"another class":                         {"[{kind: GatewayClass, name: nginx}]", nil},
		"classes by label":                      {"[{kind: GatewayClass, selector: {matchLabels: {tier: edge}}}]", []string{"gateway", "backend", "set"}},
		"classes by another label":              {"[{kind: GatewayClass, selector: {matchLabels: {tier: core}}}]", nil},
		"a gateway":                             {"[{kind: Gateway, namespace: infra, name: edge}]", []string{"gateway", "backend", "set"}},
		"a gateway in any namespace":            {"[{kind: Gateway, name: edge}]", []string{"gateway", "backend", "set"}},
		"a gateway of another namespace":        {"[{kind: Gateway, namespace: app, name: edge}]", nil},
		"all gateways":                          {"[{kind: Gateway}]", []string{"gateway", "backend", "set"}},
		"gateways by label":                     {"[{kind: Gateway, selector: {matchLabels: {public: 'yes'}}}]", []string{"gateway", "backend", "set"}},
		"gateways by another label":             {"[{kind: Gateway, selector: {matchLabels: {public: 'no'}}}]", nil},
		"a listener of the gateway's own":       {"[{kind: Gateway, name: edge, sectionName: http}]", []string{"backend"}},
		"a listener of the set's is not its":    {"[{kind: Gateway, name: edge, sectionName: tls}]", nil},
		"a listener set":                        {"[{kind: ListenerSet, namespace: sets, name: s}]", []string{"set"}},
		"listener sets by label":                {"[{kind: ListenerSet, selector: {matchLabels: {own: 'yes'}}}]", []string{"set"}},
		"its listener":                          {"[{kind: ListenerSet, name: s, sectionName: tls}]", []string{"set"}},
		"a listener that it lacks":              {"[{kind: ListenerSet, name: s, sectionName: http}]", nil},
		"a route":                               {"[{kind: HTTPRoute, namespace: app, name: r}]", []string{"backend", "set", "mesh", "port"}},
		"a route of another kind":               {"[{kind: GRPCRoute, namespace: app, name: r}]", nil},
		"routes by label":                       {"[{kind: HTTPRoute, selector: {matchLabels: {team: a}}}]", []string{"backend", "set", "mesh", "port"}},
		"an unnamed rule":                       {"[{kind: HTTPRoute, name: r, sectionName: rule-1}]", []string{"backend", "set"}},
		"a named rule":                          {"[{kind: HTTPRoute, name: r, sectionName: named}]", []string{"mesh", "port"}},
		"a named rule by its place is none":     {"[{kind: HTTPRoute, name: r, sectionName: rule-2}]", nil},
		"a Service, as backend and as parent":   {"[{kind: Service, namespace: app, name: cart}]", []string{"backend", "mesh", "port"}},
		"Services by label":                     {"[{kind: Service, selector: {matchLabels: {stage: live}}}]", []string{"backend", "mesh", "port"}},
		"Services by another label":             {"[{kind: Service, selector: {matchLabels: {stage: test}}}]", nil},
		"a port by number":                      {"[{kind: Service, name: cart, sectionName: '80'}]", []string{"backend", "mesh", "port"}},
		"a port by name":                        {"[{kind: Service, name: cart, sectionName: http}]", []string{"backend", "mesh", "port"}},
		"another port: those of all go through": {"[{kind: Service, name: cart, sectionName: '81'}]", []string{"mesh"}},
		"a port that no one has":                {"[{kind: Service, name: cart, sectionName: admin}]", []string{"mesh"}},
		"another kind of backend":               {"[{group: example.com, kind: Bucket, name: b}]", []string{"mesh", "port"}},
		"a target that exists nowhere":          {"[{group: example.com, kind: Thing, name: t}]", []string{"virtual"}},
		"a namespace, of any object on it":      {"[{kind: Namespace, name: infra}]", []string{"gateway", "backend", "set"}},
		"the namespace of a listener set":       {"[{kind: Namespace, name: sets}]", []string{"set"}},
		"the namespace of a backend":            {"[{kind: Namespace, name: store}]", []string{"mesh", "port"}},
		"namespaces by label":                   {"[{kind: Namespace, selector: {matchLabels: {team: a}}}]", []string{"backend", "set", "mesh", "port", "virtual"}},
		"all namespaces":                        {"[{kind: Namespace}]", []string{"gateway", "backend", "set", "mesh", "port", "virtual"}},
		"one of several":                        {"[{kind: GRPCRoute}, {kind: ListenerSet}]", []string{"set"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			constraint := valid(t, sound+c.targets)
			var got []string
			for name, p := range paths {
				if isOn(constraint, p) {
					got = append(got, name)
				}
			}
			assert.ElementsMatch(t, c.want, got)
		})
	}
}

func TestPolicyConstraintWithoutTargets(t *testing.T) {
	toBackend := gatewayPath()
	elsewhere := gatewayPath()
	r := gateway.Route{Kind: "HTTPRoute", Namespace: "shop", Name: "r", Labels: toBackend.Route.Labels, Rules: toBackend.Route.Rules}
	elsewhere.Route = &r
	cases := map[string]struct {
		targets         string
		here, byBackend bool
	}{
		"without targets any path through an object of it": {"[]", true, true},
		"a route of its own":                   {"[{kind: HTTPRoute, name: r}]", true, false},
		"routes of its own by label":           {"[{kind: HTTPRoute, selector: {matchLabels: {team: a}}}]", true, false},
		"a gateway of its own":                 {"[{kind: Gateway, name: edge}]", false, false},
		"its Namespace":                        {"[{kind: Namespace}]", true, true},
		"its Namespace by a label that it has": {"[{kind: Namespace, selector: {matchLabels: {team: a}}}]", true, true},
		"its Namespace by one that it has not": {"[{kind: Namespace, selector: {matchLabels: {team: b}}}]", false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			constraint := inApp(t, sound+c.targets)
			require.NoError(t, constraint.Invalid)
			assert.Equal(t, c.here, isOn(constraint, &toBackend))
			assert.Equal(t, c.byBackend, isOn(constraint, &elsewhere), "by way of a backend alone")
		})
	}
	assert.False(t, isOn(inApp(t, sound+"[]"), &gateway.Path{Gateway: toBackend.Gateway, Rule: -1}), "a gateway of another namespace")
}
