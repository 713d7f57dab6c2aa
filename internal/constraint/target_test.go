package constraint_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/test/tables"
)

const sound = "validations: [{expression: 'true'}]\ntargets: "

func TestConstraintTargets(t *testing.T) {
	toBackend, toSet, mesh, meshPort := gatewayPath(), bySet(), inMesh(0), inMesh(80)
	atGateway := gateway.Path{Gateway: toBackend.Gateway, Rule: -1}
	virtual := gateway.Path{Virtual: &api.Ref{Group: "example.com", Kind: "Thing", Namespace: "app", Name: "t"}, Rule: -1}
	paths := map[string]*gateway.Path{
		"gateway": &atGateway, "backend": &toBackend, "set": &toSet, "mesh": &mesh, "port": &meshPort, "virtual": &virtual,
	}
	cases := tables.Read[map[string]struct {
		Targets string
		Want    []string
	}](t, "testdata/tables/constraint-targets.yaml")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			constraint := valid(t, sound+c.Targets)
			var got []string
			for name, p := range paths {
				if isOn(constraint, p) {
					got = append(got, name)
				}
			}
			assert.ElementsMatch(t, c.Want, got)
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
