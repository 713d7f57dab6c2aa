package guard_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
	"overrule.dev/overrule/test/worlds"
)

// plainKinds are the kinds of the random worlds: paths that end at rules, at
// routes, at backends and at listeners; targets in other namespaces by grant, freely and
// not at all; overrides of routes that bind the routes of their namespace, and those of all;
// policies on backends that are read only if all backends of the rule have them.
var plainKinds = docs(
	worlds.ClassProfileDoc("inherited", "AtRule", `
targets: {fields: [targetRefs], unnamedRules: true, namespaces: referenceGrant, classFrom: ["*"]}
levels: [GatewayClass, GatewayNamespace, Gateway, ListenerSet, Listener, RouteNamespace, Route, Rule]
strategy: {allowed: [merge, atomic], field: strategy, bareField: strategy}
blocks: {defaults: [defaults], overrides: [overrides], when: when}`),
	worlds.ClassProfileDoc("inherited", "AtRoute", `
targets: {fields: [targetRefs]}
levels: [Gateway, Listener, Route]
strategy: {allowed: [merge, atomic], field: strategy, bareField: strategy}
blocks: {defaults: [defaults], overrides: [overrides], when: when}`),
	worlds.ClassProfileDoc("inherited", "AtBackend", `
targets: {fields: [targetRefs], namespaces: free, allBackends: [traefik.io/*]}
levels: [Gateway, Route, Backend]
routeOverridesBind: AllNamespaces
strategy: {allowed: [merge, atomic], field: strategy, bareField: strategy}
blocks: {defaults: [defaults], overrides: [overrides], when: when}`),
	worlds.ClassProfileDoc("inherited", "AtListener", `
targets: {fields: [targetRefs]}
levels: [Gateway, ListenerSet, Listener]
strategy: {allowed: [merge, atomic], field: strategy, bareField: strategy}
blocks: {defaults: [defaults], overrides: [overrides], when: when}`),
)

var plainKindsView = func() func(testing.TB) *snapshot.View {
	var once sync.Once
	var v *snapshot.View
	return func(t testing.TB) *snapshot.View {
		once.Do(func() { v = world(t, plainKinds) })
		return v
	}
}()

// plainWorld is all objects of a world, by kind, namespace and name.
type plainWorld []plainObject

func compareNames(a, b plainName) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func (w plainWorld) find(at plainName) (int, bool) {
	return slices.BinarySearchFunc(w, at, func(o plainObject, at plainName) int { return compareNames(o.key(), at) })
}

// with returns the world with an object put in, or taken out if it is nil.
func (w plainWorld) with(at plainName, o plainObject) plainWorld {
	out := slices.Clone(w)
	i, there := out.find(at)
	if there {
		out = slices.Delete(out, i, i+1)
	}
	if o != nil {
		out = slices.Insert(out, i, o)
	}
	return out
}

func (w plainWorld) has(at plainName) bool {
	_, there := w.find(at)
	return there
}

// all returns the objects of a type.
func all[T plainObject](w plainWorld) []T {
	var out []T
	for _, o := range w {
		if o, ok := o.(T); ok {
			out = append(out, o)
		}
	}
	return out
}

// get returns an object of a type, and whether it is there.
func get[T plainObject](w plainWorld, at plainName) (o T, ok bool) {
	i, ok := w.find(at)
	if ok {
		o, ok = w[i].(T)
	}
	return o, ok
}

// decoded reads an object as the guard gets it.
func decoded(t testing.TB, v *snapshot.View, o plainObject) snapshot.Object {
	t.Helper()
	doc := o.doc()
	data, err := json.Marshal(doc)
	require.NoError(t, err)
	kind, _ := doc["kind"].(string)
	ref := refOfKind(v, kind)
	out, err := snapshot.Decode(ref, v.Kind(ref), data, merge.Newest)
	require.NoError(t, err)
	return out
}

func refOfKind(v *snapshot.View, kind string) api.PolicyKind {
	switch {
	case kind == "Namespace" || kind == "Service":
		return api.PolicyKind{Kind: kind}
	case v.Kind(api.PolicyKind{Group: worlds.Group, Kind: kind}) != nil:
		return api.PolicyKind{Group: worlds.Group, Kind: kind}
	default:
		return api.PolicyKind{Group: api.GatewayGroup, Kind: kind}
	}
}

// String shows the world, one object a line.
func (w plainWorld) String() string {
	var out []string
	for _, o := range w {
		out = append(out, textOf(o))
	}
	return strings.Join(out, "\n")
}

func textOf(o plainObject) string {
	data, err := json.Marshal(o.doc())
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// view is a world as the guard gets it.
func (w plainWorld) view(t testing.TB) *snapshot.View {
	t.Helper()
	v := plainKindsView(t)
	var puts []snapshot.Change
	for _, o := range w {
		puts = append(puts, snapshot.Put(decoded(t, v, o)))
	}
	return v.With(puts...)
}
