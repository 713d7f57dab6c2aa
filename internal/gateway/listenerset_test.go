package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/labels"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/test/tables"
)

// admitting is a gateway infra/edge with an own listener http on port 80, and
// allowedListeners in YAML.
func admitting(t testing.TB, allowed string) *gateway.Gateway {
	return readGateway(t, "metadata: {namespace: infra, name: edge}\nspec:\n  gatewayClassName: istio\n  allowedListeners: "+allowed+
		"\n  listeners: [{name: http, port: 80, protocol: HTTP, "+allowAll+"}]\n")
}

// adding is a ListenerSet with listeners http and alt for infra/edge.
func adding(t testing.TB, namespace, name string) *gateway.ListenerSet {
	return listenerSet(t, "metadata: {namespace: "+namespace+", name: "+name+"}\nspec:\n  parentRef: {namespace: infra, name: edge}\n"+
		"  listeners:\n  - {name: http, port: 90, protocol: HTTP, "+allowAll+"}\n  - {name: alt, port: 91, protocol: HTTP, "+allowAll+"}\n")
}

const anySet = "{namespaces: {from: All}}"

// SEMANTICS section 7: a ListenerSet has an effect only if its gateway allows it.
func TestAllowedListeners(t *testing.T) {
	tests := tables.Read[map[string]struct {
		Allowed, Namespace string
		Labels             labels.Set
		Want               bool
	}](t, "testdata/tables/allowed-listeners.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, s := admitting(t, test.Allowed), adding(t, test.Namespace, "more")
			if !test.Want {
				assert.Empty(t, gateway.SetListeners(g, s, test.Labels))
				return
			}
			assert.Equal(t, []gateway.ListenerMatch{
				{Gateway: g, Set: s, Listener: &s.Listeners[0]}, {Gateway: g, Set: s, Listener: &s.Listeners[1]},
			}, gateway.SetListeners(g, s, test.Labels))
		})
	}
}

func TestListenerSetParent(t *testing.T) {
	tests := tables.Read[map[string]struct {
		Namespace, Parent string
		Want              bool
	}](t, "testdata/tables/listener-set-parent.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := listenerSet(t, "metadata: {namespace: "+test.Namespace+", name: more}\nspec: {parentRef: "+test.Parent+", listeners: [{name: l, port: 80, protocol: HTTP}]}")
			assert.Equal(t, test.Want, len(gateway.SetListeners(admitting(t, anySet), s, nil)) == 1)
		})
	}
}

// SEMANTICS section 7: a parentRef to the Gateway never reaches the listeners
// of its ListenerSets.
func TestParentRefsOfListenerSets(t *testing.T) {
	g := admitting(t, anySet)
	one, two := adding(t, "team", "one"), adding(t, "team", "two")
	listeners := append(gateway.OwnListeners(g), gateway.SetListeners(g, one, nil)...)
	listeners = append(listeners, gateway.SetListeners(g, two, nil)...)
	tests := tables.Read[map[string]struct {
		Refs string
		Want []int
	}](t, "testdata/tables/parent-refs-of-listener-sets.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.Want, attached(listeners, routing(t, "app", "{parentRefs: "+test.Refs+"}"), nil))
		})
	}
}

// Same in a set's allowedRoutes is the set's own namespace.
func TestListenerSetAllowedRoutes(t *testing.T) {
	g := admitting(t, anySet)
	tests := tables.Read[map[string]struct {
		Allowed, Namespace string
		Labels             labels.Set
		Want               bool
	}](t, "testdata/tables/listener-set-allowed-routes.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := listenerSet(t, "metadata: {namespace: team, name: more}\nspec: {parentRef: {namespace: infra, name: edge}, listeners: [{name: l, port: 80, protocol: HTTP"+test.Allowed+"}]}")
			r := routing(t, test.Namespace, "{parentRefs: [{kind: ListenerSet, namespace: team, name: more}], hostnames: [a.example.com]}")
			assert.Equal(t, test.Want, attached(gateway.SetListeners(g, s, nil), r, test.Labels) != nil)
		})
	}
}

func TestListenerSetsFromFilesAreDefaulted(t *testing.T) {
	stored := listenerSet(t, "metadata: {namespace: default, name: s}\nspec: {parentRef: {group: gateway.networking.k8s.io, kind: Gateway, namespace: default, name: g}, listeners: [{name: l, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Same}}}]}")
	assert.Equal(t, stored, listenerSet(t, "metadata: {name: s}\nspec: {parentRef: {name: g}, listeners: [{name: l, port: 80, protocol: HTTP}]}"))
}
