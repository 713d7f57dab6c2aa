package gateway_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/labels"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/test/tables"
)

// listening is a gateway infra/edge with the given listeners; each is a flow
// map of YAML.
func listening(t testing.TB, listeners ...string) *gateway.Gateway {
	text := "metadata: {namespace: infra, name: edge}\nspec:\n  gatewayClassName: istio\n  listeners:\n"
	for _, l := range listeners {
		text += "  - " + l + "\n"
	}
	return readGateway(t, text)
}

// routing is a route app/r with a spec in YAML.
func routing(t testing.TB, namespace, spec string) *gateway.Route {
	return httpRoute(t, fmt.Sprintf("metadata: {namespace: %s, name: r}\nspec: %s\n", namespace, spec))
}

const allowAll = "allowedRoutes: {namespaces: {from: All}}"

// SEMANTICS section 7: what a parentRef selects.
func TestParentRefs(t *testing.T) {
	g := listening(t,
		"{name: http, port: 80, protocol: HTTP, "+allowAll+"}",
		"{name: alt, port: 8080, protocol: HTTP, "+allowAll+"}",
		"{name: https, port: 443, protocol: HTTPS, "+allowAll+"}",
	)
	tests := tables.Read[map[string]struct {
		Namespace, Refs string
		Want            []int
	}](t, "testdata/tables/parent-refs.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := routing(t, test.Namespace, "{parentRefs: "+test.Refs+"}")
			assert.Equal(t, test.Want, attached(gateway.OwnListeners(g), r, nil))
		})
	}
}

// SEMANTICS section 7: which routes a listener allows.
func TestAllowedRoutes(t *testing.T) {
	tests := tables.Read[map[string]struct {
		Listener  string // after name and port
		Kind      string
		Namespace string
		Labels    labels.Set
		Want      bool
	}](t, "testdata/tables/allowed-routes.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := listening(t, "{name: l, port: 80, "+test.Listener+"}")
			text := "metadata: {namespace: " + test.Namespace + ", name: r}\nspec: {parentRefs: [{namespace: infra, name: edge}]}\n"
			r := route(t, test.Kind, text)
			assert.Equal(t, test.Want, len(attached(gateway.OwnListeners(g), r, test.Labels)) == 1)
		})
	}
}

// A route attaches to those listeners that allow it by all conditions together.
func TestListenersAreIndependent(t *testing.T) {
	g := listening(t,
		"{name: a, port: 80, protocol: HTTP, hostname: a.example.com, "+allowAll+"}",
		"{name: any, port: 80, protocol: HTTP, hostname: '*.example.com', "+allowAll+"}",
		"{name: same, port: 80, protocol: HTTP, hostname: '*.example.com'}",
		"{name: tcp, port: 81, protocol: TCP, "+allowAll+"}",
		"{name: other, port: 82, protocol: HTTP, "+allowAll+"}",
	)
	r := routing(t, "app", "{parentRefs: [{namespace: infra, name: edge, port: 80}], hostnames: [a.example.com]}")
	assert.Equal(t, []int{0, 1}, attached(gateway.OwnListeners(g), r, nil))
}
