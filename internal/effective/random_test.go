package effective_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// randomProfiles are kinds of every shape: where their paths start and end, how they
// select targets, and how policies on one target combine.
var randomProfiles = docs(
	worlds.ProfileDoc("Whole", `
levels: [Mesh, GatewayClass, GatewayNamespace, Gateway, ListenerSet, Listener, ServiceNamespace, Service, RouteNamespace, Route, Rule, Backend]
shortPaths: true
attachment: {extensionRef: true, parametersRef: true, annotation: example.com/by}
strategy: {allowed: [patch, atomic], bareField: strategy}
blocks: {overrides: [overrides], when: when}`),
	worlds.ClassProfileDoc("inherited", "AtGateway", `
targets: {fields: [targetRefs], namespaces: free, classFrom: ["*"]}
attachment: {parametersRef: true}
blocks: {bare: {field: a, overrides: ["1", ""], levels: [GatewayClass]}}
levels: [GatewayClass, Gateway]`),
	worlds.ClassProfileDoc("inherited", "AtListener", `
targets: {fields: [targetRefs], namespaces: referenceGrant, allOrNone: true, listeners: [First]}
levels: [GatewayNamespace, Gateway, ListenerSet, Listener]
sameTarget: fieldConflict`),
	worlds.ClassProfileDoc("inherited", "AtRoute", `
targets: {fields: [targetRefs], namespaces: free}
levels: [Gateway, Listener, RouteNamespace, Route]
sameTarget: none
strategy: {allowed: [atomic, merge], bareField: strategy, by: lower}`),
	worlds.ClassProfileDoc("inherited", "AtRule", `
targets: {fields: [targetRefs], unnamedRules: true, namespaces: referenceGrant, classFrom: [infra]}
attachment: {extensionRef: true}
sameTarget: oldestWins
strategy: {allowed: [merge]}`),
	worlds.ClassProfileDoc("direct", "AtBackend", `
targets: {fields: [targetRefs], namespaces: referenceGrant}
levels: [Gateway, Route, Rule, Backend]
joinedLevels: [[Rule, Backend]]
attachment: {annotation: example.com/by}
sameTarget: alone`),
	worlds.ClassProfileDoc("inherited", "InMesh", `
targets: {fields: [targetRefs], namespaces: consumer, implicit: {meshNamespace: infra}}
levels: [Mesh, ServiceNamespace, Service]
sameTarget: collect`),
	worlds.ClassProfileDoc("inherited", "ByMesh", `
targets: {fields: [targetRefs], namespaces: consumer}
levels: [ServiceNamespace, Service, Route, Backend]
ignoreOn: [{rules: [b], beside: AtBackend.example.com}]
strategy: {allowed: [merge]}`),
	worlds.ClassProfileDoc("inherited", "OfFields", `
targets: {fields: [targetRefs]}
strategy: {allowed: [merge]}
fields:
- {rule: a, route: "spec.rules[*].timeouts.request"}`),
	worlds.ProfileDoc("OfItems", `
strategy: {allowed: [merge]}
fields:
- {rule: b, route: "spec.rules[*].filters[*].value"}`),
	worlds.ClassProfileDoc("inherited", "Virtually", `
targets: {fields: [targetRefs], kinds: [{group: "*", kind: "*"}, {group: example.com, kind: Bucket, virtual: true}, {group: "", kind: Namespace, virtual: true}]}
levels: [Gateway, Route, Backend]`),
)

// randomKinds are the names of their kinds.
var randomKinds = []string{"Whole", "AtGateway", "AtListener", "AtRoute", "AtRule", "AtBackend", "InMesh", "ByMesh", "OfFields", "OfItems", "Virtually"}

// compiledKinds has them compiled, once for all worlds.
var compiledKinds = sync.OnceValue(func() func(testing.TB) *snapshot.View {
	var v *snapshot.View
	return func(t testing.TB) *snapshot.View {
		t.Helper()
		if v == nil {
			v = world(t, randomProfiles)
		}
		return v
	}
})()

type object = map[string]any

// dice generates objects with few names, so that they refer to each other.
type dice struct {
	*rand.Rand
	kinds []string // of the policies in this world: some, so that they meet
}

func newDice(seed uint64) dice {
	d := dice{rand.New(rand.NewPCG(seed, 2026)), slices.Clone(randomKinds)}
	d.Shuffle(len(d.kinds), func(i, j int) { d.kinds[i], d.kinds[j] = d.kinds[j], d.kinds[i] })
	d.kinds = d.kinds[:4]
	if d.in(4) {
		d.kinds = []string{"AtListener", "AtRule", "AtBackend"} // those that need a ReferenceGrant
	}
	return d
}

func (d dice) of(list ...string) string { return list[d.IntN(len(list))] }

// in is true once in n times.
func (d dice) in(n int) bool { return d.IntN(n) == 0 }

func (d dice) namespace() string { return d.of("infra", "app", "shop") }

func (d dice) labels() object {
	if d.in(3) {
		return nil
	}
	return object{"team": d.of("red", "blue")}
}

func (d dice) meta(namespace, name string) object {
	return object{"namespace": namespace, "name": name, "labels": d.labels()}
}

// doc is an object with its kind.
func doc(kind string, meta, spec object) object {
	return object{"kind": kind, "metadata": meta, "spec": spec}
}

// throw generates one object of any kind.
func (d dice) throw() object {
	switch d.IntN(20) {
	case 0:
		return d.class()
	case 1:
		return doc("Namespace", object{"name": d.namespace(), "labels": d.labels()}, nil)
	case 2, 3:
		return d.gateway()
	case 4, 5:
		return d.set()
	case 6, 7:
		return d.service()
	case 8, 9:
		return d.grant()
	case 10, 11, 12:
		return d.route()
	default:
		return d.policy()
	}
}

func (d dice) class() object {
	spec := object{}
	if d.in(2) {
		spec["parametersRef"] = d.reference("Whole", "AtGateway")
		spec["parametersRef"].(object)["namespace"] = d.namespace()
	}
	return doc("GatewayClass", object{"name": d.of("c1", "c2"), "labels": d.labels()}, spec)
}

func (d dice) from(what ...string) object {
	from := d.of(what...)
	out := object{"from": from}
	if from == "Selector" {
		out["selector"] = object{"matchLabels": object{"team": d.of("red", "blue")}}
	}
	return out
}

func (d dice) listeners() []any {
	var out []any
	for _, name := range []string{"a", "b"}[:1+d.IntN(2)] {
		l := object{
			"name": name, "port": 80 + d.IntN(2), "protocol": d.of("HTTP", "HTTP", "HTTP", "TCP"),
			"allowedRoutes": object{"namespaces": d.from("All", "All", "All", "Same", "Selector")},
		}
		if d.in(4) {
			l["hostname"] = d.of("x.example", "*.example")
		}
		out = append(out, l)
	}
	return out
}

func (d dice) gateway() object {
	spec := object{
		"gatewayClassName": d.of("c1", "c2"), "listeners": d.listeners(),
		"allowedListeners": object{"namespaces": d.from("All", "All", "Same", "Selector", "None")},
	}
	if d.in(2) {
		spec["infrastructure"] = object{"parametersRef": d.reference("Whole", "AtGateway")}
	}
	return doc("Gateway", d.meta(d.of("infra", "infra", "app"), d.of("g1", "g2")), spec)
}

// reference returns a reference to a policy of one of some kinds.
func (d dice) reference(kinds ...string) object {
	return object{"group": worlds.Group, "kind": d.of(kinds...), "name": d.of("p1", "p2", "p3")}
}

// annotated adds the annotation that attaches policies to an object, to some.
func (d dice) annotated(meta object) object {
	if d.in(3) {
		meta["annotations"] = object{"example.com/by": d.of("p1", "p2, p3", "app:p1, shop:p2, infra:p3", "?")}
	}
	return meta
}

func (d dice) set() object {
	return doc("ListenerSet", d.meta(d.of("infra", "app"), d.of("s1", "s2")), object{
		"parentRef": object{"namespace": d.of("infra", "infra", "app"), "name": d.of("g1", "g2")}, "listeners": d.listeners(),
	})
}

func (d dice) service() object {
	ports := []any{object{"name": "p80", "port": 80}, object{"name": "p81", "port": 81}}
	return doc("Service", d.annotated(d.meta(d.of("app", "shop"), d.of("b1", "b2"))), object{"ports": ports[:d.IntN(3)]})
}

func (d dice) grant() object {
	var from, to []any
	for range 1 + d.IntN(3) {
		f := object{"namespace": d.namespace(), "group": worlds.Group, "kind": d.of(d.kinds...)}
		switch d.IntN(6) {
		case 0, 1:
			f["group"], f["kind"] = api.GatewayGroup, d.of("HTTPRoute", "GRPCRoute")
		case 2:
			f["group"], f["kind"] = "", "Service"
		}
		from = append(from, f)
	}
	if d.in(2) {
		from = d.fromEverywhere()
	}
	for range 1 + d.IntN(3) {
		t := object{"group": api.GatewayGroup, "kind": d.of("Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute")}
		switch d.IntN(4) {
		case 0:
			t["group"], t["kind"] = "", "Service"
		case 1:
			t["group"], t["kind"] = worlds.Group, d.of("Bucket", "AtBackend", "AtBackend")
		}
		if d.in(3) {
			t["name"] = d.of("g1", "s1", "r1", "b1", "p1")
		}
		to = append(to, t)
	}
	return doc("ReferenceGrant", d.meta(d.namespace(), d.of("t1", "t2")), object{"from": from, "to": to})
}

// fromEverywhere returns a grant for all policies, HTTPRoutes and Services.
func (d dice) fromEverywhere() []any {
	var out []any
	for _, namespace := range []string{"infra", "app", "shop"} {
		out = append(out, object{"namespace": namespace, "group": api.GatewayGroup, "kind": "HTTPRoute"}, object{"namespace": namespace, "group": "", "kind": "Service"})
		for _, kind := range d.kinds {
			out = append(out, object{"namespace": namespace, "group": worlds.Group, "kind": kind})
		}
	}
	return out
}

func (d dice) route() object {
	kind := d.of("HTTPRoute", "HTTPRoute", "GRPCRoute", "TCPRoute")
	spec := object{}
	var parents, rules []any
	for range 1 + d.IntN(3) {
		parents = append(parents, d.parent())
	}
	for range d.IntN(5) / 2 {
		rules = append(rules, d.rule())
	}
	spec["parentRefs"], spec["rules"] = parents, rules
	if d.in(4) {
		spec["hostnames"] = []any{d.of("x.example", "y.example")}
	}
	return doc(kind, d.annotated(d.meta(d.of("app", "shop"), d.of("r1", "r2"))), spec)
}

func (d dice) parent() object {
	p := object{"namespace": d.of("infra", "infra", "app"), "name": d.of("g1", "g2")}
	switch d.IntN(4) {
	case 0:
		p["kind"], p["name"] = "ListenerSet", d.of("s1", "s2")
	case 1:
		p = object{"group": "", "kind": "Service", "namespace": d.of("app", "shop"), "name": d.of("b1", "b2")}
	}
	if p["kind"] != "Service" && d.in(6) {
		p["sectionName"] = d.of("a", "b")
	}
	if d.in(6) {
		p["port"] = 80 + d.IntN(2)
	}
	return p
}

func (d dice) rule() object {
	out := object{"matches": []any{object{"path": object{"value": d.of("/1", "/2", "/3")}}}}
	if d.in(3) {
		out["name"] = d.of("x", "rule-1")
	}
	var backends []any
	for range d.IntN(3) {
		b := object{"name": d.of("b1", "b2"), "namespace": d.of("app", "shop")}
		if d.in(4) {
			b["group"], b["kind"] = worlds.Group, "Bucket"
		} else {
			b["port"] = 80 + d.IntN(2)
		}
		backends = append(backends, b)
	}
	out["backendRefs"] = backends
	if d.in(3) {
		out["timeouts"] = object{"request": d.of("1s", "2s")}
	}
	var filters []any
	if d.in(3) {
		filters = []any{object{"type": "X"}, object{"type": "Y", "value": d.of("1", "2")}}
	}
	for range d.IntN(4) / 2 {
		filters = append(filters, object{"type": "ExtensionRef", "extensionRef": d.reference("Whole", "AtRule")})
	}
	if filters != nil {
		out["filters"] = filters
	}
	return out
}

func (d dice) policy() object {
	spec := object{}
	for _, name := range []string{"a", "b", "c"} {
		if d.in(2) {
			spec[name] = d.of("1", "2")
		}
	}
	kind := d.of(d.kinds...)
	if kind == "Whole" && d.in(2) {
		spec["overrides"] = object{"a": d.of("1", "2")}
	}
	if (kind == "Whole" || kind == "AtRoute") && d.in(2) {
		spec["strategy"] = "atomic"
	}
	var targets []any
	for range 1 + d.IntN(2) {
		targets = append(targets, d.target())
	}
	if kind != "InMesh" || !d.in(3) {
		spec["targetRefs"] = targets
	}
	meta := d.meta(d.namespace(), d.of("p1", "p2", "p3"))
	if d.in(4) {
		delete(meta, "namespace")
	}
	meta["creationTimestamp"] = fmt.Sprintf("2026-01-0%dT00:00:00Z", 1+d.IntN(3))
	return doc(kind, meta, spec)
}

func (d dice) target() object {
	group, names, namespaces := api.GatewayGroup, []string{"g1", "g2"}, []string{"infra", "infra", "app"}
	kind := d.of("Gateway", "Gateway", "ListenerSet", "HTTPRoute", "HTTPRoute", "GRPCRoute", "Service", "Service", "GatewayClass", "Namespace", "Bucket")
	switch kind {
	case "ListenerSet":
		names = []string{"s1", "s2"}
	case "HTTPRoute", "GRPCRoute":
		names, namespaces = []string{"r1", "r2"}, []string{"app", "shop"}
	case "Service":
		group, names, namespaces = "", []string{"b1", "b2"}, []string{"app", "shop"}
	case "GatewayClass":
		names = []string{"c1", "c2"}
	case "Namespace":
		group, names = "", []string{"infra", "app", "shop"}
	case "Bucket":
		group, names, namespaces = worlds.Group, []string{"b1", "b2"}, []string{"app", "shop"}
	}
	out := object{"group": group, "kind": kind}
	if d.in(3) {
		out["selector"] = object{"matchLabels": object{"team": d.of("red", "blue")}}
		if d.in(2) {
			out["namespaces"] = d.from("All", "Selector")
		}
	} else {
		out["name"], out["namespace"] = d.of(names...), d.of(namespaces...)
	}
	switch {
	case d.in(4) && kind != "GatewayClass" && kind != "Namespace":
		out["sectionName"] = d.of("a", "b", "x", "rule-1", "rule-2", "p80")
	case kind == "Service" && d.in(3):
		out["port"] = 80 + d.IntN(2)
	}
	return out
}

// randomWorld is a view with its objects as JSON, for the output of failed tests.
type randomWorld struct {
	*snapshot.View
	texts map[api.Ref]string
}

func newRandomWorld(t testing.TB, d dice) *randomWorld {
	t.Helper()
	w := &randomWorld{compiledKinds(t), make(map[api.Ref]string)}
	for range 1 + d.IntN(5) { // without these there is no path at all
		for _, make := range []func() object{d.class, d.gateway, d.set, d.service, d.route, d.route, d.grant} {
			w.put(decodeObject(t, w.View, make()))
		}
	}
	for range 20 + d.IntN(80) {
		w.put(decodeObject(t, w.View, d.throw()))
	}
	return w
}

func (w *randomWorld) put(o snapshot.Object, text string) {
	w.View, w.texts[o.Ref()] = w.With(snapshot.Put(o)), text
}

func (w *randomWorld) remove(ref api.Ref) {
	w.View = w.With(snapshot.Delete(ref))
	delete(w.texts, ref)
}

// decodeObject decodes an object, and returns its text, too.
func decodeObject(t testing.TB, v *snapshot.View, o object) (snapshot.Object, string) {
	t.Helper()
	data, err := json.Marshal(o)
	require.NoError(t, err)
	kind, _ := o["kind"].(string)
	ref := api.PolicyKind{Group: api.GatewayGroup, Kind: kind}
	switch {
	case kind == "Namespace" || kind == "Service":
		ref.Group = ""
	case slices.Contains(randomKinds, kind):
		ref.Group = worlds.Group
	}
	out, err := snapshot.Decode(ref, v.Kind(ref), data, policykindCreated)
	require.NoError(t, err)
	return out, string(data)
}

const policykindCreated = 1000

// String returns the objects for the output of failed tests.
func (w *randomWorld) String() string {
	return strings.Join(slices.Sorted(maps.Values(w.texts)), "\n")
}
