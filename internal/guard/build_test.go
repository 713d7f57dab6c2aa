package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
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
	for _, p := range []policykind.Profile{
		{
			Group: "example.com", Kind: "Paint", Class: policykind.Inherited,
			Targets: policykind.Targets{Fields: []string{"targetRefs"}},
			Blocks: policykind.Blocks{
				Defaults: []string{"defaults"}, Overrides: []string{"overrides"}, When: "when",
				Strategy: policykind.Strategy{Field: "strategy", BareField: "strategy", Allowed: []string{"atomic", "patch"}},
			},
			Unset: []string{"unset"},
		},
		{Group: "example.com", Kind: "Label", Class: policykind.Direct, Targets: policykind.Targets{Fields: []string{"targetRefs"}}},
	} {
		k, err := policykind.Compile(p, policykind.Builtin)
		require.NoError(t, err)
		out = append(out, k)
	}
	return out
}

// world is a view of objects in YAML, one in each document. Those of Gateway
// API and the policies need no apiVersion, and a policy's targets no group.
func world(t testing.TB, text string) *store.View {
	t.Helper()
	v := (&store.View{}).WithKinds(kinds(t))
	for doc := range strings.SplitSeq(text, "\n---\n") {
		v = v.With(store.Put(read(t, v, doc)))
	}
	return v
}

func read(t testing.TB, v *store.View, doc string) store.Object {
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

// gatewayDoc and routeDoc are documents for world.
func gatewayDoc(name, class string, listeners ...string) string {
	out := fmt.Sprintf("kind: Gateway\nmetadata: {namespace: infra, name: %s}\nspec:\n  gatewayClassName: %s\n  listeners:\n", name, class)
	for i, l := range listeners {
		out += fmt.Sprintf("  - {name: %s, port: %d, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}\n", l, 80+i)
	}
	return out
}

func routeDoc(name string, rules string, gateways ...string) string {
	out := fmt.Sprintf("kind: HTTPRoute\nmetadata: {namespace: app, name: %s}\nspec:\n  rules: %s\n  parentRefs:\n", name, rules)
	for _, g := range gateways {
		out += "  - {namespace: infra, name: " + g + "}\n"
	}
	return out
}

// policyDoc is a policy; spec is YAML in lines.
func policyDoc(kind, namespace, name, spec string) string {
	return fmt.Sprintf("kind: %s\nmetadata: {namespace: %s, name: %s}\nspec:\n  %s\n",
		kind, namespace, name, strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  "))
}

func docs(all ...string) string { return strings.Join(all, "\n---\n") }

func routeRef(name string) api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "app", Name: name}
}

func paintRef(namespace, name string) api.Ref {
	return api.Ref{Group: "example.com", Kind: "Paint", Namespace: namespace, Name: name}
}

// judged judges the change of one document on top of a view: a CREATE, or an
// UPDATE of what the view has.
func judged(t testing.TB, v *store.View, doc string) *guard.Judgement {
	t.Helper()
	return judgedBy(t, &guard.Guard{Engine: effective.NewEngine()}, v, doc)
}

func judgedBy(t testing.TB, g *guard.Guard, v *store.View, doc string) *guard.Judgement {
	t.Helper()
	j, err := g.Judge(t.Context(), v, change(v, read(t, v, doc)), nil)
	require.NoError(t, err)
	return j
}

func change(v *store.View, after store.Object) guard.Change {
	c := guard.Change{Operation: guard.Create, After: after}
	if before := v.Get(after.Ref()); before != nil {
		c.Operation, c.Before = guard.Update, before
	}
	return c
}

func deleted(t testing.TB, v *store.View, ref api.Ref) *guard.Judgement {
	t.Helper()
	g := &guard.Guard{Engine: effective.NewEngine()}
	j, err := g.Judge(t.Context(), v, guard.Change{Operation: guard.Delete, Before: v.Get(ref)}, nil)
	require.NoError(t, err)
	return j
}

// told shows a judgement, as in "Deny Invalid: message".
func told(j *guard.Judgement) []string {
	var out []string
	for _, list := range [][]guard.Finding{j.Denials, j.Warnings, j.Audits} {
		for _, f := range list {
			out = append(out, fmt.Sprintf("%s %s: %s", f.Action, f.Code, f.Message()))
		}
	}
	return out
}

// codes shows a judgement without its messages, as in "Deny Invalid rule".
func codes(j *guard.Judgement) []string {
	var out []string
	for _, list := range [][]guard.Finding{j.Denials, j.Warnings, j.Audits} {
		for _, f := range list {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Action, f.Code, f.Rule)))
		}
	}
	return out
}
