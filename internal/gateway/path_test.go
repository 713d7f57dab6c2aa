package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// Every shape of a path: its elements in the JSON output, and its ID.
func TestPaths(t *testing.T) {
	g := listening(t, "{name: http, port: 80, protocol: HTTP}", "{name: alt, port: 81, protocol: HTTP}")
	set := listenerSet(t, "metadata: {namespace: team, name: more}\nspec: {parentRef: {namespace: infra, name: edge}, listeners: [{name: http, port: 90, protocol: HTTP}]}")
	s := service(t, "metadata: {namespace: shop, name: cart}\nspec: {ports: [{port: 80}]}")
	r := ruled(t, "[{name: x}, {}]")
	backend := &gateway.Backend{Object: s.Ref(), Port: 8080}
	bucket := &gateway.Backend{Object: api.Ref{Group: "example.com", Kind: "Bucket", Namespace: "app", Name: "b"}}
	virtual := &api.Ref{Group: "example.com", Kind: "Database", Namespace: "app", Name: "db"}

	class := api.PathElement{Kind: "GatewayClass", Name: "istio"}
	edge := api.PathElement{Kind: "Gateway", Namespace: "infra", Name: "edge"}
	alt := api.PathElement{Kind: "Listener", Namespace: "infra", Name: "edge", Section: "alt"}
	cart := api.PathElement{Kind: "Service", Namespace: "shop", Name: "cart"}
	route := api.PathElement{Kind: "HTTPRoute", Namespace: "app", Name: "r"}
	first, second := 0, 1
	x := api.PathElement{Kind: "HTTPRouteRule", Namespace: "app", Name: "r", Section: "x", Index: &first}
	rule2 := api.PathElement{Kind: "HTTPRouteRule", Namespace: "app", Name: "r", Section: "rule-2", Index: &second}
	onEdge := gateway.ID{GatewayNamespace: "infra", Gateway: "edge"}

	tests := map[string]struct {
		path gateway.Path
		want []api.PathElement
		id   func(*gateway.ID)
	}{
		"a gateway alone": {
			gateway.Path{Gateway: g, Rule: -1},
			[]api.PathElement{class, edge},
			func(id *gateway.ID) { *id = onEdge; id.Rule = -1 },
		},
		"a gateway with its namespace as a level": {
			gateway.Path{Gateway: g, Rule: -1, GatewayNamespace: true, RouteNamespace: true, ServiceNamespace: true},
			[]api.PathElement{class, {Kind: "Namespace", Name: "infra"}, edge},
			func(id *gateway.ID) { *id = onEdge; id.Rule = -1 },
		},
		"a listener": {
			gateway.Path{Gateway: g, Listener: &g.Listeners[1], Rule: -1},
			[]api.PathElement{class, edge, alt},
			func(id *gateway.ID) { *id = onEdge; id.Listener, id.Rule = "alt", -1 },
		},
		"a listener of a set has the set's name": {
			gateway.Path{Gateway: g, Set: set, Listener: &set.Listeners[0], Rule: -1},
			[]api.PathElement{
				class, edge, {Kind: "ListenerSet", Namespace: "team", Name: "more"},
				{Kind: "Listener", Namespace: "team", Name: "more", Section: "http"},
			},
			func(id *gateway.ID) {
				*id = onEdge
				id.SetKind, id.SetNamespace, id.Set, id.Listener, id.Rule = "ListenerSet", "team", "more", "http", -1
			},
		},
		"a route": {
			gateway.Path{Gateway: g, Listener: &g.Listeners[1], Route: r, Rule: -1},
			[]api.PathElement{class, edge, alt, route},
			func(id *gateway.ID) {
				*id = onEdge
				id.Listener, id.RouteKind, id.RouteNamespace, id.Route, id.Rule = "alt", "HTTPRoute", "app", "r", -1
			},
		},
		"a rule with a name": {
			gateway.Path{Gateway: g, Listener: &g.Listeners[1], Route: r, Rule: 0},
			[]api.PathElement{class, edge, alt, route, x},
			func(id *gateway.ID) {
				*id = onEdge
				id.Listener, id.RouteKind, id.RouteNamespace, id.Route, id.Rule = "alt", "HTTPRoute", "app", "r", 0
			},
		},
		"a rule without one, namespaces as levels": {
			gateway.Path{Gateway: g, Listener: &g.Listeners[1], Route: r, Rule: 1, GatewayNamespace: true, RouteNamespace: true},
			[]api.PathElement{class, {Kind: "Namespace", Name: "infra"}, edge, alt, {Kind: "Namespace", Name: "app"}, route, rule2},
			func(id *gateway.ID) {
				*id = onEdge
				id.Listener, id.RouteKind, id.RouteNamespace, id.Route, id.Rule = "alt", "HTTPRoute", "app", "r", 1
			},
		},
		"a member of a rule's list": {
			gateway.Path{Gateway: g, Listener: &g.Listeners[1], Route: r, Rule: 1, Member: "filters[1]"},
			[]api.PathElement{class, edge, alt, route, {
				Kind: "HTTPRouteRule", Namespace: "app", Name: "r", Section: "rule-2", Index: &second, Member: "filters[1]",
			}},
			func(id *gateway.ID) {
				*id = onEdge
				id.Listener, id.RouteKind, id.RouteNamespace, id.Route, id.Rule, id.Member = "alt", "HTTPRoute", "app", "r", 1, "filters[1]"
			},
		},
		"a backend and its port": {
			gateway.Path{Gateway: g, Listener: &g.Listeners[1], Route: r, Rule: 0, Backend: backend},
			[]api.PathElement{class, edge, alt, route, x, {Kind: "Service", Namespace: "shop", Name: "cart", Section: "8080"}},
			func(id *gateway.ID) {
				*id = onEdge
				id.Listener, id.RouteKind, id.RouteNamespace, id.Route, id.Backend = "alt", "HTTPRoute", "app", "r", *backend
			},
		},
		"a backend of another kind": {
			gateway.Path{Gateway: g, Listener: &g.Listeners[1], Route: r, Rule: 0, Backend: bucket},
			[]api.PathElement{class, edge, alt, route, x, {Kind: "Bucket", Namespace: "app", Name: "b"}},
			func(id *gateway.ID) {
				*id = onEdge
				id.Listener, id.RouteKind, id.RouteNamespace, id.Route, id.Backend = "alt", "HTTPRoute", "app", "r", *bucket
			},
		},
		"a mesh's service alone": {
			gateway.Path{Service: s, Rule: -1},
			[]api.PathElement{cart},
			func(id *gateway.ID) { id.ServiceNamespace, id.Service, id.Rule = "shop", "cart", -1 },
		},
		"a mesh's producer route, namespaces as levels": {
			gateway.Path{Service: s, Route: r, Rule: 0, ServiceNamespace: true, RouteNamespace: true},
			[]api.PathElement{{Kind: "Namespace", Name: "shop"}, cart, {Kind: "Namespace", Name: "app"}, route, x},
			func(id *gateway.ID) {
				id.ServiceNamespace, id.Service, id.RouteKind, id.RouteNamespace, id.Route = "shop", "cart", "HTTPRoute", "app", "r"
			},
		},
		"a consumer route of a mesh with a port": {
			gateway.Path{Service: s, Port: 80, Client: "app", Route: r, Rule: 0},
			[]api.PathElement{{Kind: "Service", Namespace: "shop", Name: "cart", Section: "80", Client: "app"}, route, x},
			func(id *gateway.ID) {
				id.ServiceNamespace, id.Service, id.Port, id.Client = "shop", "cart", 80, "app"
				id.RouteKind, id.RouteNamespace, id.Route = "HTTPRoute", "app", "r"
			},
		},
		"a target that exists nowhere": {
			gateway.Path{Virtual: virtual, Rule: -1},
			[]api.PathElement{{Kind: "Database", Namespace: "app", Name: "db"}},
			func(id *gateway.ID) { id.Virtual, id.Rule = *virtual, -1 },
		},
	}
	seen := make(map[gateway.ID][]string)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, test.path.Elements())
			var id gateway.ID
			test.id(&id)
			assert.Equal(t, id, test.path.ID())
		})
		seen[test.path.ID()] = append(seen[test.path.ID()], name)
	}
	for _, names := range seen {
		if len(names) > 1 {
			assert.ElementsMatch(t, []string{"a gateway alone", "a gateway with its namespace as a level"}, names, "levels are the kind's, not the path's")
		}
	}
}

// The element of a policy at a level.
func TestElement(t *testing.T) {
	g := listening(t, "{name: http, port: 80, protocol: HTTP}")
	set := listenerSet(t, "metadata: {namespace: team, name: more}\nspec: {parentRef: {namespace: infra, name: edge}, listeners: [{name: http, port: 90, protocol: HTTP}]}")
	s := service(t, "metadata: {namespace: shop, name: cart}")
	r := ruled(t, "[{name: x}]")
	full := gateway.Path{
		Gateway: g, Set: set, Listener: &set.Listeners[0], Route: r, Rule: 0,
		Backend: &gateway.Backend{Object: s.Ref(), Port: 80}, GatewayNamespace: true, RouteNamespace: true,
	}
	mesh := gateway.Path{Service: s, Port: 80, Client: "app", Route: r, Rule: 0, ServiceNamespace: true}
	short := gateway.Path{Gateway: g, Listener: &g.Listeners[0], Rule: -1}
	virtual := gateway.Path{Virtual: &api.Ref{Kind: "Database", Namespace: "app", Name: "db"}, Rule: -1}
	tests := map[string]struct {
		path  gateway.Path
		level gateway.Level
		want  string
	}{
		"the mesh":                               {full, gateway.LevelMesh, "Mesh"},
		"the class":                              {full, gateway.LevelGatewayClass, "GatewayClass istio"},
		"the gateway's namespace":                {full, gateway.LevelGatewayNamespace, "Namespace infra"},
		"the gateway":                            {full, gateway.LevelGateway, "Gateway infra/edge"},
		"the listener set":                       {full, gateway.LevelListenerSet, "ListenerSet team/more"},
		"the set's listener":                     {full, gateway.LevelListener, "Listener team/more#http"},
		"the route's namespace":                  {full, gateway.LevelRouteNamespace, "Namespace app"},
		"the route":                              {full, gateway.LevelRoute, "HTTPRoute app/r"},
		"the rule":                               {full, gateway.LevelRule, "HTTPRouteRule app/r#x"},
		"the backend":                            {full, gateway.LevelBackend, "Service shop/cart#80"},
		"a backend's port is the backend":        {full, gateway.LevelBackendPort, "Service shop/cart#80"},
		"the route's own fields are the rule's":  {full, gateway.LevelObject, "HTTPRouteRule app/r#x"},
		"a mesh's root":                          {mesh, gateway.LevelMesh, "Mesh"},
		"the service's namespace":                {mesh, gateway.LevelServiceNamespace, "Namespace shop"},
		"the service":                            {mesh, gateway.LevelService, "Service shop/cart#80 (clients in app)"},
		"a service's port is the service":        {mesh, gateway.LevelServicePort, "Service shop/cart#80 (clients in app)"},
		"a missing level: the one above":         {short, gateway.LevelRule, "Listener infra/edge#http"},
		"a missing set: the gateway":             {short, gateway.LevelListenerSet, "Gateway infra/edge"},
		"a namespace that is no level: above it": {short, gateway.LevelGatewayNamespace, "GatewayClass istio"},
		"nothing above: the mesh":                {mesh, gateway.LevelGateway, "Mesh"},
		"a virtual target":                       {virtual, gateway.LevelBackend, "Database app/db"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, test.path.Element(test.level).String())
		})
	}
}

func TestPathNamespace(t *testing.T) {
	g := listening(t, "{name: http, port: 80, protocol: HTTP}")
	set := listenerSet(t, "metadata: {namespace: team, name: more}")
	s := service(t, "metadata: {namespace: shop, name: cart}")
	r := ruled(t, "[{}]")
	assert.Equal(t, "app", gateway.Path{Gateway: g, Set: set, Route: r}.Namespace())
	assert.Equal(t, "app", gateway.Path{Service: s, Route: r}.Namespace())
	assert.Equal(t, "shop", gateway.Path{Service: s}.Namespace())
	assert.Equal(t, "team", gateway.Path{Gateway: g, Set: set}.Namespace())
	assert.Equal(t, "infra", gateway.Path{Gateway: g}.Namespace())
	assert.Equal(t, "lab", gateway.Path{Virtual: &api.Ref{Kind: "Database", Namespace: "lab"}}.Namespace())
	assert.Empty(t, gateway.Path{}.Namespace())
}

// SameButRule agrees with the comparison of IDs without the rule.
func TestSameButRule(t *testing.T) {
	listener := func(name string) *gateway.Listener { return &gateway.Listener{Name: name} }
	all := []gateway.Path{
		{},
		{Gateway: &gateway.Gateway{Namespace: "a", Name: "g"}},
		{Gateway: &gateway.Gateway{Namespace: "b", Name: "g"}},
		{Gateway: &gateway.Gateway{Namespace: "a", Name: "g"}, Listener: listener("x")},
		{Gateway: &gateway.Gateway{Namespace: "a", Name: "g", Class: "other"}, Listener: listener("x")},
		{Gateway: &gateway.Gateway{Namespace: "a", Name: "g"}, Listener: listener("y")},
		{Set: &gateway.ListenerSet{Namespace: "a", Name: "s"}, Listener: listener("x")},
		{Set: &gateway.ListenerSet{Namespace: "b", Name: "s"}, Listener: listener("x")},
		{Service: &gateway.Service{Namespace: "a", Name: "s"}},
		{Service: &gateway.Service{Namespace: "a", Name: "s"}, Port: 80},
		{Service: &gateway.Service{Namespace: "a", Name: "s"}, Client: "c"},
		{Route: &gateway.Route{Kind: "HTTPRoute", Namespace: "a", Name: "r"}},
		{Route: &gateway.Route{Kind: "HTTPRoute", Namespace: "a", Name: "r"}, Rule: 1},
		{Route: &gateway.Route{Kind: "GRPCRoute", Namespace: "a", Name: "r"}},
		{Route: &gateway.Route{Kind: "HTTPRoute", Namespace: "a", Name: "r"}, Backend: &gateway.Backend{Port: 1}},
		{Route: &gateway.Route{Kind: "HTTPRoute", Namespace: "a", Name: "r"}, Backend: &gateway.Backend{Port: 2}},
		{Route: &gateway.Route{Kind: "HTTPRoute", Namespace: "a", Name: "r"}, Member: "filters[1]"},
		{Virtual: &api.Ref{Kind: "Bucket", Namespace: "a", Name: "b"}},
		{Virtual: &api.Ref{Kind: "Bucket", Namespace: "a", Name: "c"}},
	}
	for i := range all {
		for j := range all {
			x, y := all[i].ID(), all[j].ID()
			x.Rule, y.Rule = 0, 0
			assert.Equal(t, x == y, all[i].SameButRule(&all[j]), "%d and %d", i, j)
		}
	}
}
