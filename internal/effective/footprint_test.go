package effective_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// overlapWorld has two gateways of one class; route a on the first, with
// Service s behind it, and route b on both.
func overlapWorld(t *testing.T) *snapshot.View {
	t.Helper()
	return world(t, docs(
		worlds.ClassProfileDoc("inherited", "Granted", "targets: {fields: [targetRefs], namespaces: referenceGrant}\nattachment: {annotation: example.com/by}"),
		worlds.ProfileDoc("Far", "blocks: {defaults: [defaults], overrides: [overrides]}\nlevels: [Mesh, GatewayClass, GatewayNamespace, Gateway, RouteNamespace, Route, Rule, Backend]"),
		"kind: GatewayClass\nmetadata: {name: class}", "kind: Namespace\nmetadata: {name: app}",
		gatewayDoc("one", "class", "http"), gatewayDoc("two", "class", "http"),
		worlds.SetDoc("app", "set", "one", "more"),
		routeDoc("a", "[{backendRefs: [{name: s, port: 80}]}]", "one"), routeDoc("b", "[{}]", "one", "two"),
		worlds.RouteTo("HTTPRoute", "shop", "c", "[{backendRefs: [{name: s, namespace: app, port: 80}]}]", worlds.ToSet("app", "set")),
		worlds.ServiceDoc("app", "s", 80),
	))
}

func on(name, kind, target string) string {
	return policyDoc(kind, "app", name, "targetRefs: [{group: gateway.networking.k8s.io, "+target+"}]\na: 1")
}

func onRouteA(rules string) string {
	return policyDoc("Paint", "app", "a", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: a}]\n"+rules)
}

func TestFootprintOverlaps(t *testing.T) {
	onOne, onTwo := on("p", "Paint", "kind: Gateway, namespace: infra, name: one"), on("q", "Paint", "kind: Gateway, namespace: infra, name: two")
	onA, onB := on("a", "Paint", "kind: HTTPRoute, name: a"), on("b", "Paint", "kind: HTTPRoute, name: b")
	onService := policyDoc("Far", "app", "s", "targetRefs: [{group: '', kind: Service, name: s}]\na: 1")
	onSet := on("set", "Far", "kind: ListenerSet, name: set")
	onNamespace := policyDoc("Far", "app", "n", "targetRefs: [{group: '', kind: Namespace, name: app}]\na: 1")
	toPolicies := worlds.GrantDoc("app", "g", "{group: example.com, kind: Granted, namespace: zoo}", "{group: gateway.networking.k8s.io, kind: HTTPRoute}")
	selecting := on("x", "Far", "kind: HTTPRoute, selector: {matchLabels: {team: red}}")
	for name, c := range map[string]struct {
		one, other string
		want       bool
	}{
		"policies of one route":                                             {onA, on("a2", "Far", "kind: HTTPRoute, name: a"), true},
		"policies of two routes of one gateway":                             {onA, onB, false},
		"a gateway's policy and that of a route on it":                      {onOne, onA, true},
		"a gateway's policy and that of a route on another":                 {onTwo, onA, false},
		"policies of two gateways that share a route":                       {onOne, onTwo, false},
		"edits of two gateways that share a route":                          {gatewayDoc("one", "class", "alt"), gatewayDoc("two", "class", "alt"), true},
		"edits of two gateways that share none":                             {gatewayDoc("three", "class", "alt"), gatewayDoc("two", "class", "alt"), false},
		"an override on a route, and a route that may give it requests":     {onRouteA("overrides: {a: 1}"), routeDoc("z", "[{}]", "one"), true},
		"an override on a namespace, and such a route":                      {policyDoc("Far", "app", "n", "targetRefs: [{group: '', kind: Namespace, name: app}]\noverrides: {a: 1}"), worlds.RouteTo("HTTPRoute", "zoo", "z", "[{}]", worlds.ToGateway("one")), true},
		"a route's policy without overrides, and such a route":              {onRouteA("a: 1"), routeDoc("z", "[{}]", "one"), false},
		"a route that moves to a gateway, and that gateway's policy":        {routeDoc("a", "[{}]", "two"), onTwo, true},
		"a route that is detached from a gateway, and its policy":           {routeDoc("a", "[{}]", "two"), onOne, true},
		"a route that is new, and its policy that came first":               {on("z", "Paint", "kind: HTTPRoute, name: z"), routeDoc("z", "[{}]", "one"), true},
		"a gateway that is new, and a route that waits for it":              {gatewayDoc("three", "class", "http"), routeDoc("z", "[{}]", "three"), true},
		"a class's policy and a route below it":                             {on("k", "Far", "kind: GatewayClass, name: class"), onA, true},
		"a class's policy and a gateway that is new":                        {on("k", "Far", "kind: GatewayClass, name: class"), gatewayDoc("three", "class", "http"), true},
		"a class's policy and a gateway of another":                         {on("k", "Far", "kind: GatewayClass, name: other"), gatewayDoc("one", "class", "http"), false},
		"a Service's policy and that of the gateway above":                  {onService, onOne, true},
		"a Service's policy and that of a gateway that does not lead to it": {onService, onTwo, false},
		"a Service's policy and a route that is new and leads to it":        {onService, routeDoc("z", "[{backendRefs: [{name: s, port: 80}]}]", "two"), true},
		"a listener set's policy and that of its gateway":                   {onSet, onOne, true},
		"a listener set's policy and that of a route on it":                 {onSet, policyDoc("Far", "shop", "c", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: c}]\na: 1"), true},
		"a listener set's policy and that of a route on its gateway":        {onSet, onA, false},
		"a namespace's policy and that of a gateway with routes from it":    {onNamespace, onTwo, true},
		"a namespace's labels and a policy of a route in it":                {"kind: Namespace\nmetadata: {name: app, labels: {a: b}}", onA, true},
		"a namespace's labels and a gateway that nothing of it is on":       {"kind: Namespace\nmetadata: {name: zoo, labels: {a: b}}", onOne, false},
		"a selector and a route that is new":                                {selecting, routeDoc("z", "[{}]", "one"), true},
		"a selector and a route of another namespace":                       {selecting, worlds.RouteTo("HTTPRoute", "zoo", "z", "[{}]"), false},
		"a ReferenceGrant and a route that needs it":                        {worlds.GrantDoc("app", "g", "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}", "{group: '', kind: Service}"), worlds.RouteTo("HTTPRoute", "shop", "z", "[{backendRefs: [{name: s, namespace: app, port: 80}]}]"), true},
		"a ReferenceGrant and a policy above the route that it lets on":     {worlds.GrantDoc("app", "g", "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}", "{group: '', kind: Service}"), onOne, true},
		"a ReferenceGrant and a route that needs none":                      {worlds.GrantDoc("app", "g", "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}", "{group: '', kind: Service}"), onB, false},
		"two ReferenceGrants of different namespaces":                       {worlds.GrantDoc("zoo", "g", "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}", "{group: '', kind: Service}"), worlds.GrantDoc("bar", "g", "", ""), false},
		"a ReferenceGrant and a policy that needs it":                       {toPolicies, policyDoc("Granted", "zoo", "z", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: app, name: z}]\na: 1"), true},
		"a ReferenceGrant and a policy that selects where it needs one":     {toPolicies, policyDoc("Granted", "zoo", "z", "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, selector: {matchLabels: {a: b}}, namespaces: {from: All}}]\na: 1"), true},
		"a ReferenceGrant and a route whose annotation needs it": {
			worlds.GrantDoc("zoo", "g", "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: app}", "{group: example.com, kind: Granted}"),
			strings.Replace(routeDoc("z", "[{}]", "one"), "name: z", "name: z, annotations: {example.com/by: 'zoo:p'}", 1), true,
		},
		"the whole mesh and any route": {policyDoc("Far", "app", "m", "targetRefs: [{group: '', kind: Mesh, name: mesh}]\na: 1"), onB, true},
	} {
		t.Run(name, func(t *testing.T) {
			v := overlapWorld(t)
			footprint := func(doc string, more ...string) *effective.Footprint {
				o := read(t, v, doc)
				objects := []snapshot.Object{o}
				if was := v.Get(o.Ref()); was != nil {
					objects = append(objects, was)
				}
				after := v.With(snapshot.Put(o))
				for _, doc := range more {
					after = after.With(snapshot.Put(read(t, v, doc)))
				}
				return effective.FootprintOf(objects, v, after)
			}
			assert.Equal(t, c.want, worlds.Overlap(footprint(c.one), footprint(c.other, c.one)))
			assert.Equal(t, c.want, worlds.Overlap(footprint(c.other), footprint(c.one, c.other)), "the other way round")
		})
	}
}

func TestProfileFootprintOverlapsEverything(t *testing.T) {
	v := overlapWorld(t)
	none := effective.FootprintOf(nil, v)
	assert.False(t, worlds.Overlap(none, none))
	assert.True(t, worlds.Overlap(effective.Everywhere(), none))
	for _, o := range []snapshot.Object{&policykind.Profile{}, &policykind.Definition{}, constraint.FromClusterPolicyConstraint(&api.ClusterPolicyConstraint{})} {
		f := effective.FootprintOf([]snapshot.Object{o, nil}, v)
		assert.True(t, worlds.Overlap(f, none), "%T", o)
		assert.True(t, worlds.Overlap(none, f), "%T", o)
		assert.True(t, f.Through()(nil), "%T", o)
	}
}

func TestFootprintThrough(t *testing.T) {
	v := overlapWorld(t)
	path := gateway.Path{
		Gateway: v.Gateway("infra", "one"), Listener: &v.Gateway("infra", "one").Listeners[0],
		Route: v.Get(routeRef("a")).(*gateway.Route),
	}
	path.Backend = &path.Route.Rules[0].Backends[0]
	for name, c := range map[string]struct {
		change string
		want   bool
	}{
		"its gateway":                       {gatewayDoc("one", "class", "other"), true},
		"another gateway":                   {gatewayDoc("two", "class", "other"), false},
		"its class":                         {"kind: GatewayClass\nmetadata: {name: class}", true},
		"its route's policy":                {on("p", "Paint", "kind: HTTPRoute, name: a"), true},
		"another route's policy":            {on("p", "Paint", "kind: HTTPRoute, name: b"), false},
		"a policy that selects its route":   {on("p", "Paint", "kind: HTTPRoute, selector: {}"), true},
		"a policy that selects nothing":     {on("p", "Paint", "kind: HTTPRoute, selector: {matchLabels: {a: b}}"), false},
		"its backend":                       {worlds.ServiceDoc("app", "s", 81), true},
		"the namespace of its route":        {"kind: Namespace\nmetadata: {name: app}", true},
		"the namespace of its gateway":      {"kind: Namespace\nmetadata: {name: infra}", true},
		"another namespace":                 {"kind: Namespace\nmetadata: {name: shop}", false},
		"a ReferenceGrant it does not need": {worlds.GrantDoc("app", "g", "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}", "{group: '', kind: Service}"), false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, effective.FootprintOf([]snapshot.Object{read(t, v, c.change)}, v).Through()(path.Elements()))
		})
	}
}
