// Package worlds makes small worlds out of YAML, for the tests of the engine.
package worlds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/store"
	"overrule.dev/overrule/merge"
)

// kinds are the policy kinds of the tests: the built-in ones, Paint, which
// allows patch, and Label, a direct one.
func kinds(t testing.TB) []*policykind.Kind {
	t.Helper()
	out, err := policykind.BuiltinKinds()
	require.NoError(t, err)
	for _, p := range []api.PolicyProfileSpec{
		{
			Group: "example.com", Kind: "Paint", Class: api.Inherited,
			Targets:  api.ProfileTargets{Fields: []string{"targetRefs"}},
			Blocks:   api.ProfileBlocks{Defaults: []string{"defaults"}, Overrides: []string{"overrides"}, When: "when"},
			Strategy: api.ProfileStrategy{Field: "strategy", BareField: "strategy", Allowed: []api.StrategyName{"atomic", "patch"}},
			Unset:    []string{"unset"},
		},
		{Group: "example.com", Kind: "Label", Class: api.Direct, Targets: api.ProfileTargets{Fields: []string{"targetRefs"}}},
	} {
		k, err := policykind.Compile(p, policykind.Builtin)
		require.NoError(t, err)
		out = append(out, k)
	}
	return out
}

// World returns a view of objects in YAML, one in each document. Those of Gateway
// API and the policies need no apiVersion, and a policy's targets no group.
func World(t testing.TB, text string) *store.View {
	t.Helper()
	v := (&store.View{}).WithKinds(kinds(t))
	for doc := range strings.SplitSeq(text, "\n---\n") {
		v = v.With(store.Put(Read(t, v, doc)))
	}
	return v
}

// Read reads one document of a World.
func Read(t testing.TB, v *store.View, doc string) store.Object {
	t.Helper()
	var head struct{ Kind string }
	require.NoError(t, yaml.Unmarshal([]byte(doc), &head), doc)
	data, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(doc, "{kind: ", "{group: gateway.networking.k8s.io, kind: ")))
	require.NoError(t, err)
	ref := api.PolicyKind{Group: api.GatewayGroup, Kind: head.Kind}
	if head.Kind == "Namespace" {
		ref.Group = ""
	}
	for _, k := range v.Kinds() {
		if k.Kind == head.Kind {
			ref = k.Ref()
		}
	}
	o, err := store.Decode(ref, v.Kind(ref), data, merge.Newest)
	require.NoError(t, err)
	return o
}

// GatewayDoc is a gateway in namespace infra, for World.
func GatewayDoc(name, class string, listeners ...string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "kind: Gateway\nmetadata: {namespace: infra, name: %s}\nspec:\n  gatewayClassName: %s\n  listeners:\n", name, class)
	for i, l := range listeners {
		fmt.Fprintf(&out, "  - {name: %s, port: %d, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}\n", l, 80+i)
	}
	return out.String()
}

// RouteDoc is an HTTPRoute in namespace app, for World; rules is YAML.
func RouteDoc(name string, rules string, gateways ...string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "kind: HTTPRoute\nmetadata: {namespace: app, name: %s}\nspec:\n  rules: %s\n  parentRefs:\n", name, rules)
	for _, g := range gateways {
		fmt.Fprintf(&out, "  - {namespace: infra, name: %s}\n", g)
	}
	return out.String()
}

// PolicyDoc is a policy; spec is YAML in lines.
func PolicyDoc(kind, namespace, name, spec string) string {
	return fmt.Sprintf("kind: %s\nmetadata: {namespace: %s, name: %s}\nspec:\n  %s\n",
		kind, namespace, name, strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  "))
}

// Docs joins documents.
func Docs(all ...string) string { return strings.Join(all, "\n---\n") }
