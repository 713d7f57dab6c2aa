package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/labels"

	"overrule.dev/overrule/internal/gateway"
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
	red := labels.Set{"team": "red"}
	tests := map[string]struct {
		allowed, namespace string
		labels             labels.Set
		want               bool
	}{
		"by default none":                          {"null", "team", red, false},
		"by default none, not even its own":        {"null", "infra", red, false},
		"an empty one is none":                     {"{}", "infra", red, false},
		"namespaces without from is none":          {"{namespaces: {}}", "infra", red, false},
		"None":                                     {"{namespaces: {from: None}}", "infra", red, false},
		"Same and the gateway's namespace":         {"{namespaces: {from: Same}}", "infra", red, true},
		"Same and another":                         {"{namespaces: {from: Same}}", "team", red, false},
		"All":                                      {anySet, "team", nil, true},
		"a selector on labels that fit":            {"{namespaces: {from: Selector, selector: {matchLabels: {team: red}}}}", "team", red, true},
		"a selector on labels that do not":         {"{namespaces: {from: Selector, selector: {matchLabels: {team: blue}}}}", "team", red, false},
		"a selector does not let its own in":       {"{namespaces: {from: Selector, selector: {matchLabels: {team: blue}}}}", "infra", red, false},
		"an absent selector selects nothing":       {"{namespaces: {from: Selector}}", "team", red, false},
		"a selector is ignored with Same":          {"{namespaces: {from: Same, selector: {matchLabels: {team: red}}}}", "team", red, false},
		"a selector that cannot be read: nothing":  {"{namespaces: {from: Selector, selector: {matchExpressions: [{key: team, operator: Is}]}}}", "team", red, false},
		"an empty selector allows every namespace": {"{namespaces: {from: Selector, selector: {}}}", "team", nil, true},
		"a word that is none of those lets no one": {"{namespaces: {from: Some}}", "infra", red, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, s := admitting(t, test.allowed), adding(t, test.namespace, "more")
			if !test.want {
				assert.Empty(t, gateway.SetListeners(g, s, test.labels))
				return
			}
			assert.Equal(t, []gateway.ListenerMatch{
				{Gateway: g, Set: s, Listener: &s.Listeners[0]}, {Gateway: g, Set: s, Listener: &s.Listeners[1]},
			}, gateway.SetListeners(g, s, test.labels))
		})
	}
}

func TestListenerSetParent(t *testing.T) {
	tests := map[string]struct {
		namespace, parent string
		want              bool
	}{
		"the gateway":                          {"team", "{namespace: infra, name: edge}", true},
		"group and kind written out":           {"team", "{group: gateway.networking.k8s.io, kind: Gateway, namespace: infra, name: edge}", true},
		"in its own namespace it needs none":   {"infra", "{name: edge}", true},
		"without a namespace it means its own": {"team", "{name: edge}", false},
		"another name":                         {"team", "{namespace: infra, name: other}", false},
		"another namespace":                    {"team", "{namespace: prod, name: edge}", false},
		"another kind":                         {"team", "{kind: ListenerSet, namespace: infra, name: edge}", false},
		"a Gateway of another group":           {"team", "{group: example.com, namespace: infra, name: edge}", false},
		"a Service, which is no gateway":       {"team", "{group: '', kind: Service, namespace: infra, name: edge}", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := listenerSet(t, "metadata: {namespace: "+test.namespace+", name: more}\nspec: {parentRef: "+test.parent+", listeners: [{name: l, port: 80, protocol: HTTP}]}")
			assert.Equal(t, test.want, len(gateway.SetListeners(admitting(t, anySet), s, nil)) == 1)
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
	const gateway, setOne = "namespace: infra, name: edge", "kind: ListenerSet, namespace: team, name: one"
	tests := map[string]struct {
		refs string
		want []int
	}{
		"the gateway is its own listeners alone":            {"[{" + gateway + "}]", []int{0}},
		"the gateway never has a set's section":             {"[{" + gateway + ", sectionName: alt}]", nil},
		"nor a set's port":                                  {"[{" + gateway + ", port: 90}]", nil},
		"a set is its listeners alone":                      {"[{" + setOne + "}]", []int{1, 2}},
		"a section of one name in two sets and the gateway": {"[{" + setOne + ", sectionName: http}]", []int{1}},
		"the same section of the other set":                 {"[{kind: ListenerSet, namespace: team, name: two, sectionName: http}]", []int{3}},
		"a set's port":                                      {"[{" + setOne + ", port: 91}]", []int{2}},
		"a set never has the gateway's port":                {"[{" + setOne + ", port: 80}]", nil},
		"the gateway and a set":                             {"[{" + gateway + "}, {" + setOne + ", sectionName: alt}]", []int{0, 2}},
		"a set of another namespace":                        {"[{kind: ListenerSet, name: one}]", nil},
		"a ListenerSet of another group":                    {"[{group: example.com, " + setOne + "}]", nil},
		"a Gateway of the set's name":                       {"[{namespace: team, name: one}]", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, attached(listeners, routing(t, "app", "{parentRefs: "+test.refs+"}"), nil))
		})
	}
}

// Same in a set's allowedRoutes is the set's own namespace.
func TestListenerSetAllowedRoutes(t *testing.T) {
	g := admitting(t, anySet)
	tests := map[string]struct {
		allowed, namespace string
		labels             labels.Set
		want               bool
	}{
		"by default the set's namespace":        {"", "team", nil, true},
		"by default not the gateway's":          {"", "infra", nil, false},
		"Same is the set's namespace":           {", allowedRoutes: {namespaces: {from: Same}}", "team", nil, true},
		"Same is not the gateway's":             {", allowedRoutes: {namespaces: {from: Same}}", "infra", nil, false},
		"All":                                   {", " + allowAll, "app", nil, true},
		"a selector on the route's namespace":   {", allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {a: b}}}}", "app", labels.Set{"a": "b"}, true},
		"kinds narrow":                          {", allowedRoutes: {namespaces: {from: All}, kinds: [{kind: GRPCRoute}]}", "app", nil, false},
		"a hostname that does not intersect":    {", hostname: x.org, " + allowAll, "app", nil, false},
		"a hostname that does, in any spelling": {", hostname: '*.Example.com', " + allowAll, "app", nil, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := listenerSet(t, "metadata: {namespace: team, name: more}\nspec: {parentRef: {namespace: infra, name: edge}, listeners: [{name: l, port: 80, protocol: HTTP"+test.allowed+"}]}")
			r := routing(t, test.namespace, "{parentRefs: [{kind: ListenerSet, namespace: team, name: more}], hostnames: [a.example.com]}")
			assert.Equal(t, test.want, attached(gateway.SetListeners(g, s, nil), r, test.labels) != nil)
		})
	}
}

func TestListenerSetsFromFilesAreDefaulted(t *testing.T) {
	stored := listenerSet(t, "metadata: {namespace: default, name: s}\nspec: {parentRef: {group: gateway.networking.k8s.io, kind: Gateway, namespace: default, name: g}, listeners: [{name: l, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Same}}}]}")
	assert.Equal(t, stored, listenerSet(t, "metadata: {name: s}\nspec: {parentRef: {name: g}, listeners: [{name: l, port: 80, protocol: HTTP}]}"))
}
