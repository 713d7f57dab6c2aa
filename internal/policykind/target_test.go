package policykind_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/tables"
)

func ref(kind, namespace, name string) api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: kind, Namespace: namespace, Name: name}
}

func TestReadTargets(t *testing.T) {
	const group = "group: gateway.networking.k8s.io, "
	const elsewhere = "own namespace"
	tests := map[string]struct {
		spec string
		want []policykind.Target
	}{
		"targetRef": {
			"targetRef: {" + group + "kind: HTTPRoute, name: r}",
			[]policykind.Target{{Ref: ref("HTTPRoute", "app", "r")}},
		},
		"targetRefs, with a section": {
			"targetRefs: [{" + group + "kind: Gateway, name: g, sectionName: http}, {" + group + "kind: HTTPRoute, name: r}]",
			[]policykind.Target{{Ref: ref("Gateway", "app", "g"), Section: "http"}, {Ref: ref("HTTPRoute", "app", "r")}},
		},
		"its own namespace, written out": {
			"targetRef: {" + group + "kind: HTTPRoute, name: r, namespace: app}",
			[]policykind.Target{{Ref: ref("HTTPRoute", "app", "r")}},
		},
		"another namespace is refused": {
			"targetRef: {" + group + "kind: HTTPRoute, name: r, namespace: infra}",
			[]policykind.Target{{Ref: ref("HTTPRoute", "infra", "r"), Refused: elsewhere}},
		},
		"a GatewayClass is refused to a policy in a namespace": {
			"targetRef: {" + group + "kind: GatewayClass, name: istio}",
			[]policykind.Target{{Ref: ref("GatewayClass", "", "istio"), Refused: "GatewayClass"}},
		},
		"the same target twice is one": {
			"targetRefs: [{" + group + "kind: HTTPRoute, name: r}, {" + group + "kind: HTTPRoute, name: r, namespace: app}]",
			[]policykind.Target{{Ref: ref("HTTPRoute", "app", "r")}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := spec(t, compiled(t, nil), test.spec)
			require.NoError(t, p.Invalid)
			assertTargets(t, test.want, p.Targets)
		})
	}
	t.Run("a policy without a namespace may target a GatewayClass", func(t *testing.T) {
		p := compiled(t, nil).Read(object(t, "metadata: {name: p}\nspec: {targetRef: {"+group+"kind: GatewayClass, name: istio}}"), created)
		require.NoError(t, p.Invalid)
		assert.Equal(t, []policykind.Target{{Ref: ref("GatewayClass", "", "istio")}}, p.Targets)
	})
}

func TestReadInvalidTargets(t *testing.T) {
	tests := tables.Read[map[string]struct{ Spec, Want string }](t, "testdata/tables/read-invalid-targets.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := spec(t, builtin(t, "RateLimitPolicy"), test.Spec)
			assert.Equal(t, test.Want, strings.Join(messages.Fields(t, p.Invalid), "; "))
		})
	}
}

func TestTargetString(t *testing.T) {
	assert.Equal(t, "HTTPRoute app/r", policykind.Target{Ref: ref("HTTPRoute", "app", "r")}.String())
	assert.Equal(t, "Gateway app/g section http", policykind.Target{Ref: ref("Gateway", "app", "g"), Section: "http"}.String())
}
