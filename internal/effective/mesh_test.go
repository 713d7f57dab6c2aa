package effective_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// meshed returns a profile of a kind with consumer policies.
func meshed(levels string) string {
	return worlds.ClassProfileDoc("inherited", "Probe",
		"targets: {fields: [targetRefs], namespaces: consumer, implicit: {meshNamespace: infra}}\nstrategy: {allowed: [merge]}\nlevels: "+levels)
}

// from returns a policy in a namespace, with a rule of its own.
func from(namespace, name, target string) string {
	return policyDoc("Probe", namespace, name, target+"\n'"+name+"': 1")
}

const toService = "targetRefs: [{kind: Service, name: s, namespace: app}]"

// SEMANTICS sections 1, 5 and 7: Services as parents, and the clients that are
// affected.
func TestMesh(t *testing.T) {
	service := worlds.ServiceDoc("app", "s", 80, 81)
	producer := worlds.RouteTo("HTTPRoute", "app", "p", "[{backendRefs: [{name: b, port: 80}]}]", worlds.ToService("app", "s"))
	consumer := worlds.RouteTo("HTTPRoute", "shop", "c", "[{}]", worlds.ToService("app", "s"))
	tests := map[string]struct {
		levels  string
		objects []string
		want    []string
	}{
		"a kind that ends at the Service": {
			"[ServiceNamespace, Service]", []string{service, from("app", "own", toService), from("app", "ns", "")},
			[]string{"Namespace app > Service app/s | ns own"},
		},
		"routes make no difference to it": {
			"[Service]", []string{service, producer, consumer, from("app", "own", toService)},
			[]string{"Service app/s | own"},
		},
		"the whole mesh, from its root namespace": {
			"[Mesh, ServiceNamespace, Service]", []string{service, worlds.ServiceDoc("zoo", "z", 80), from("infra", "root", ""), from("app", "ns", ""), from("app", "own", toService)},
			[]string{"Namespace app > Service app/s | root ns own", "Namespace zoo > Service zoo/z | root"},
		},
		"a namespace that is a gateway's, too": {
			"[Mesh, GatewayNamespace, Gateway, ServiceNamespace, Service]",
			[]string{worlds.ServiceDoc("infra", "s", 80), gatewayDoc("g", "c", "http"), "kind: Probe\nmetadata: {name: cluster}\nspec: {x: 1}", from("infra", "ns", "targetRefs: [{kind: Namespace, name: infra}]")},
			[]string{"GatewayClass c > Namespace infra > Gateway infra/g | cluster ns", "Namespace infra > Service infra/s | cluster ns"},
		},
		"producers and consumers": {
			"[Service, Route, Rule]", []string{service, producer, consumer, from("app", "own", toService), from("shop", "c", "targetRefs: [{kind: HTTPRoute, name: c}]")},
			[]string{
				"Service app/s > HTTPRoute app/p > HTTPRouteRule app/p#rule-1 | own",
				"Service app/s (clients in shop) > HTTPRoute shop/c > HTTPRouteRule shop/c#rule-1 | own c",
			},
		},
		"a consumer's policy on a producer's path touches its own clients alone": {
			"[Service, Route, Rule]", []string{service, producer, from("app", "own", toService), from("shop", "mine", toService), from("zoo", "other", toService)},
			[]string{
				"Service app/s > HTTPRoute app/p > HTTPRouteRule app/p#rule-1 | own",
				"Service app/s (clients in shop) > HTTPRoute app/p > HTTPRouteRule app/p#rule-1 | own mine",
				"Service app/s (clients in zoo) > HTTPRoute app/p > HTTPRouteRule app/p#rule-1 | own other",
			},
		},
		"the base path has no policy then": {
			"[Service]", []string{service, from("shop", "mine", toService)}, []string{"Service app/s (clients in shop) | mine"},
		},
		"a consumer's policy on its own consumer's path, and on no other": {
			"[Service, Route, Rule]", []string{service, consumer, from("shop", "mine", toService), from("zoo", "other", toService)},
			[]string{"Service app/s (clients in shop) > HTTPRoute shop/c > HTTPRouteRule shop/c#rule-1 | mine"},
		},
		"a policy of the Service's own namespace is no consumer's": {
			"[Service]", []string{service, from("app", "own", toService)}, []string{"Service app/s | own"},
		},
		"a policy on a port splits the paths by port": {
			"[Service]", []string{service, from("app", "own", toService), from("app", "port", "targetRefs: [{kind: Service, name: s, sectionName: p81}]")},
			[]string{"Service app/s#80 | own", "Service app/s#81 | own port"},
		},
		"by its number, too, and for the clients": {
			"[Service, Route, Rule]", []string{service, producer, from("shop", "mine", "targetRefs: [{kind: Service, name: s, namespace: app, port: 80}]"), from("app", "own", toService)},
			[]string{
				"Service app/s#80 > HTTPRoute app/p > HTTPRouteRule app/p#rule-1 | own",
				"Service app/s#80 (clients in shop) > HTTPRoute app/p > HTTPRouteRule app/p#rule-1 | own mine",
				"Service app/s#81 > HTTPRoute app/p > HTTPRouteRule app/p#rule-1 | own",
				"Service app/s#81 (clients in shop) > HTTPRoute app/p > HTTPRouteRule app/p#rule-1 | own",
			},
		},
		"a policy on a missing port does not": {
			"[Service]", []string{service, from("app", "own", toService), from("app", "port", "targetRefs: [{kind: Service, name: s, sectionName: p99}]")},
			[]string{"Service app/s | own"},
		},
		"nor does one on a Service without ports": {
			"[Service]", []string{worlds.ServiceDoc("app", "s"), from("app", "own", toService), from("app", "port", "targetRefs: [{kind: Service, name: s, port: 80}]")},
			[]string{"Service app/s | own"},
		},
		"a route on one port of it": {
			"[Service, Route, Rule]", []string{
				service, worlds.RouteTo("HTTPRoute", "app", "p", "[{}]", `{group: "", kind: Service, name: s, port: 81}`), from("app", "own", toService),
				from("app", "p80", "targetRefs: [{kind: Service, name: s, port: 80}]"), from("app", "p81", "targetRefs: [{kind: Service, name: s, port: 81}]"),
			},
			[]string{"Service app/s#81 > HTTPRoute app/p > HTTPRouteRule app/p#rule-1 | own p81"},
		},
		"a consumer's policy on the backend of a producer's route": {
			"[Service, Route, Backend]", []string{service, producer, worlds.ServiceDoc("app", "b", 80), from("app", "own", toService), from("shop", "mine", "targetRefs: [{kind: Service, name: b, namespace: app}]")},
			[]string{
				"Service app/s > HTTPRoute app/p > HTTPRouteRule app/p#rule-1 > Service app/b#80 | own",
				"Service app/s (clients in shop) > HTTPRoute app/p > HTTPRouteRule app/p#rule-1 > Service app/b#80 | own mine",
			},
		},
		"a gateway is a client of its own namespace": {
			"[Gateway, Route, Backend]", []string{
				gatewayDoc("g", "c", "http"), worlds.ServiceDoc("app", "b", 80), worlds.RouteTo("HTTPRoute", "app", "p", "[{backendRefs: [{name: b, port: 80}]}]", worlds.ToGateway("g")),
				from("infra", "mine", "targetRefs: [{kind: Service, name: b, namespace: app}]"), from("shop", "other", "targetRefs: [{kind: Service, name: b, namespace: app}]"),
			},
			[]string{"GatewayClass c > Gateway infra/g > Listener infra/g#http > HTTPRoute app/p > HTTPRouteRule app/p#rule-1 > Service app/b#80 | mine"},
		},
		"a missing Service": {
			"[Service, Route]", []string{producer, from("app", "p", "targetRefs: [{kind: HTTPRoute, name: p}]")}, nil,
		},
		"a kind without levels of the mesh does not start at a Service": {
			"[Gateway, Route]", []string{service, producer, from("app", "p", "targetRefs: [{kind: HTTPRoute, name: p}]")}, nil,
		},
		"one with both starts at either": {
			"[Gateway, Service, Route]", []string{
				service, gatewayDoc("g", "c", "http"), worlds.RouteTo("HTTPRoute", "app", "p", "[{}]", worlds.ToService("app", "s"), worlds.ToGateway("g")),
				from("app", "p", "targetRefs: [{kind: HTTPRoute, name: p}]"),
			},
			[]string{"GatewayClass c > Gateway infra/g > Listener infra/g#http > HTTPRoute app/p | p", "Service app/s > HTTPRoute app/p | p"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, chains(t, world(t, docs(append(test.objects, meshed(test.levels))...)), "Probe"))
		})
	}
}

// The namespace of a consumer path is that of the route.
func TestMeshPathElements(t *testing.T) {
	v := world(t, docs(meshed("[Service]"), worlds.ServiceDoc("app", "s", 80), from("shop", "mine", toService)))
	all := walked(t, v, effective.Scope{All: true})
	assert.Len(t, all, 1)
	assert.Equal(t, []api.PathElement{{Kind: "Service", Namespace: "app", Name: "s", Client: "shop"}}, all[0].API().Path)
	assert.Equal(t, "app", all[0].Path.Namespace())
}

// A policy on a port or for some clients splits a path into several, and one
// out of them when it is deleted: only its own rules change.
func TestCompareSplitMeshPaths(t *testing.T) {
	base := docs(meshed("[Service]"), worlds.ServiceDoc("app", "s", 80, 81), from("app", "own", toService))
	port := from("app", "port", "targetRefs: [{kind: Service, name: s, sectionName: p81}]")
	consumer := from("shop", "mine", toService)
	consumerOnPort := from("shop", "mine", "targetRefs: [{kind: Service, name: s, namespace: app, port: 80}]")
	tests := map[string]struct {
		objects []string
		put     string
		remove  api.Ref
		want    []string
	}{
		"by a port":        {put: port, want: []string{"~ Service app/s | own -> | own port"}},
		"by their clients": {put: consumer, want: []string{"~ Service app/s | own -> | own mine"}},
		"by both":          {put: consumerOnPort, want: []string{"~ Service app/s | own -> | own mine"}},
		"and are one again, of all ports": {
			objects: []string{port}, remove: probeRef("app", "port"), want: []string{"~ Service app/s#81 | own port -> | own"},
		},
		"and are one again, of all clients": {
			objects: []string{consumer}, remove: probeRef("shop", "mine"), want: []string{"~ Service app/s (clients in shop) | own mine -> | own"},
		},
		"and are one again, of both": {
			objects: []string{consumerOnPort}, remove: probeRef("shop", "mine"), want: []string{"~ Service app/s#80 (clients in shop) | own mine -> | own"},
		},
		"a port less": {
			objects: []string{port, consumer}, remove: probeRef("app", "port"),
			want: []string{"~ Service app/s#81 | own port -> | own", "~ Service app/s#81 (clients in shop) | own mine port -> | own mine"},
		},
		"a deleted Service has none": {
			objects: []string{consumer}, remove: api.Ref{Kind: "Service", Namespace: "app", Name: "s"},
			want: []string{"- Service app/s | own", "- Service app/s (clients in shop) | own mine"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := world(t, docs(append(test.objects, base)...))
			c := snapshot.Delete(test.remove)
			if test.put != "" {
				c = putChange(t, before, test.put)
			}
			assert.Equal(t, test.want, changedChains(t, before, c))
		})
	}
}

// In a mesh, a route often sends traffic to the Service that is its parent: policies on
// the Service are then above the route alone.
func TestServiceAsParentAndBackend(t *testing.T) {
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

// A consumer policy without an existing target does not split paths.
func TestConsumerWithoutTargetHasNoPath(t *testing.T) {
	v := world(t, docs(worlds.ClassProfileDoc("inherited", "Probe", "targets: {fields: [targetRefs], namespaces: consumer}\nlevels: [Service, Route]"),
		worlds.ServiceDoc("app", "s", 80),
		"kind: HTTPRoute\nmetadata: {namespace: app, name: r}\nspec: {parentRefs: [{group: '', kind: Service, name: s}], rules: [{}]}",
		policyDoc("Probe", "app", "p", "targetRefs: [{kind: Service, name: s}]\na: 1"),
		policyDoc("Probe", "shop", "q", "targetRefs: [{kind: Service, namespace: app, name: s, sectionName: none}]\na: 2")))
	assert.Equal(t, 1, outcomeOf(t, v, probeRef("app", "p")).Paths.Total)
}
