package snapshot_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

var (
	gatewayKind = api.PolicyKind{Group: api.GatewayGroup, Kind: "Gateway"}
	routeKind   = api.PolicyKind{Group: api.GatewayGroup, Kind: "HTTPRoute"}
	paintKind   = api.PolicyKind{Group: "example.com", Kind: "Paint"}
)

// paint returns a policy kind.
func paint(t testing.TB, name string) *policykind.Kind {
	t.Helper()
	k, err := policykind.Compile(api.PolicyProfileSpec{
		Group: "example.com", Kind: name, Class: api.Inherited,
		Targets: api.ProfileTargets{Fields: []string{"targetRefs"}},
	}, policykind.Builtin)
	require.NoError(t, err)
	return k
}

// decode decodes an object of a kind that is not a policy.
func decode(t testing.TB, kind api.PolicyKind, text string) snapshot.Object {
	t.Helper()
	return decodeAs(t, kind, nil, text)
}

func decodeAs(t testing.TB, ref api.PolicyKind, kind *policykind.Kind, text string) snapshot.Object {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err, text)
	o, err := snapshot.Decode(ref, kind, data, 1000)
	require.NoError(t, err)
	return o
}

func newGateway(t testing.TB, name, class string) *gateway.Gateway {
	t.Helper()
	return decode(t, gatewayKind, fmt.Sprintf(
		"metadata: {namespace: infra, name: %s}\nspec: {gatewayClassName: %s, listeners: [{name: http, port: 80, protocol: HTTP}]}", name, class,
	)).(*gateway.Gateway)
}

// route is a route in namespace app on gateways in namespace infra.
func route(t testing.TB, name string, gateways ...string) *gateway.Route {
	t.Helper()
	text := "metadata: {namespace: app, name: " + name + "}\nspec: {parentRefs: ["
	for _, g := range gateways {
		text += "{namespace: infra, name: " + g + "}, "
	}
	return decode(t, routeKind, text+"]}").(*gateway.Route)
}

// policy is a policy in namespace app on routes in the same namespace.
func policy(t testing.TB, k *policykind.Kind, name string, routes ...string) *policykind.Policy {
	t.Helper()
	text := "metadata: {namespace: app, name: " + name + "}\nspec: {a: 1, targetRefs: ["
	for _, r := range routes {
		text += "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: " + r + "}, "
	}
	return decodeAs(t, k.Ref(), k, text+"]}").(*policykind.Policy)
}

func puts(objects ...snapshot.Object) []snapshot.Change {
	var out []snapshot.Change
	for _, o := range objects {
		out = append(out, snapshot.Put(o))
	}
	return out
}

// names returns the names of objects in their order.
func names[T snapshot.Object](seq func(func(T) bool)) []string {
	var out []string
	for o := range seq {
		out = append(out, o.Ref().String())
	}
	return out
}

// on returns the policies of a kind on an object in their order.
func on(v *snapshot.View, object api.Ref, kind api.PolicyKind) []string {
	var out []string
	for p := range v.On(object) {
		if p.Kind.Ref() == kind {
			out = append(out, p.Ref().String())
		}
	}
	return out
}

func gatewayRef(name string) api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: "Gateway", Namespace: "infra", Name: name}
}
