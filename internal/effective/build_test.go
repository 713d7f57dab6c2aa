package effective_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
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

func unlimited() *effective.Budget {
	return effective.NewBudget(context.Background(), math.MaxUint64)
}

// walked collects the effective policies of a scope.
func walked(t testing.TB, v *store.View, s effective.Scope) []*effective.Effective {
	t.Helper()
	var out []*effective.Effective
	require.NoError(t, effective.NewEngine().Walk(v, s, false, unlimited(), func(e *effective.Effective) error {
		out = append(out, e)
		return nil
	}))
	return out
}

// pathsOf shows where effective policies are, as in
// "Paint istio edge/http r#rule-1".
func pathsOf(all []*effective.Effective) []string {
	var out []string
	for _, e := range all {
		out = append(out, pathOf(e))
	}
	return out
}

func pathOf(e *effective.Effective) string {
	return fmt.Sprintf("%s %s %s/%s %s#%s", e.Kind.Kind, e.Path.Gateway.Class, e.Path.Gateway.Name,
		e.Path.Gateway.Listeners[e.Path.Listener].Name, e.Path.Route.Name, e.Path.Route.RuleName(e.Path.Rule))
}

// rulesOf shows each effective policy as its path and its rules.
func rulesOf(all []*effective.Effective) []string {
	var out []string
	for _, e := range all {
		text := pathOf(e) + ":"
		for _, r := range e.Rules {
			text += fmt.Sprintf(" %s=%v %s/%s", r.Key, r.Value, r.From.Policy.Name, r.From.Block)
		}
		out = append(out, text)
	}
	return out
}

func gatewayRef(name string) api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: "Gateway", Namespace: "infra", Name: name}
}

func routeRef(name string) api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "app", Name: name}
}

func paintRef(namespace, name string) api.Ref {
	return api.Ref{Group: "example.com", Kind: "Paint", Namespace: namespace, Name: name}
}

// outcomeOf adds up all paths of the view and returns a policy's outcome.
func outcomeOf(t testing.TB, v *store.View, ref api.Ref) api.Outcome {
	t.Helper()
	var s effective.Outcomes
	for _, e := range walked(t, v, effective.Scope{All: true}) {
		s.Add(e)
	}
	p, ok := v.Get(ref).(*policykind.Policy)
	require.True(t, ok, "no %s", ref)
	return s.Of(v, p)
}
