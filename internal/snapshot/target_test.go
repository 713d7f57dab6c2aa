package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// painting returns a view of routes r (red), s (red) and b (blue) in namespace app
// and z (red) in namespace zoo, with objects more, and a policy app/p of a kind.
func painting(t testing.TB, k *policykind.Kind, targets string, more ...snapshot.Object) (*snapshot.View, *policykind.Policy) {
	t.Helper()
	p := decodeAs(t, k.Ref(), k, "metadata: {namespace: app, name: p}\nspec: {a: 1, targetRefs: ["+targets+"]}").(*policykind.Policy)
	v := (&snapshot.View{}).WithKinds([]*policykind.Kind{k}).With(puts(p)...)
	for _, text := range []string{
		"{namespace: app, name: r, labels: {team: red}}", "{namespace: app, name: s, labels: {team: red, tier: web}}",
		"{namespace: app, name: b, labels: {team: blue}}", "{namespace: zoo, name: z, labels: {team: red}}",
	} {
		v = v.With(snapshot.Put(decode(t, routeKind, "metadata: "+text)))
	}
	return v.With(puts(more...)...), p
}

func TestTargets(t *testing.T) {
	const none = "no ReferenceGrant in namespace zoo allows policies of kind Paint in namespace app to target HTTPRoute zoo/z"
	grant := func(from, to string) snapshot.Object {
		return decode(t, api.PolicyKind{Group: api.GatewayGroup, Kind: "ReferenceGrant"},
			"metadata: {namespace: zoo, name: t}\nspec: {from: ["+from+"], to: [{group: gateway.networking.k8s.io, kind: HTTPRoute"+to+"}]}")
	}
	const paints = "{group: example.com, kind: Paint, namespace: app}"
	zoo := decode(t, api.PolicyKind{Kind: "Namespace"}, "metadata: {name: zoo, labels: {open: yes-it-is}}")
	tests := map[string]struct {
		targets string
		more    []snapshot.Object
		want    []string // each with why it is refused
	}{
		"by name":                              {"{kind: HTTPRoute, name: r}", nil, []string{"HTTPRoute app/r"}},
		"by name, although it is missing":      {"{kind: HTTPRoute, name: none}", nil, []string{"HTTPRoute app/none"}},
		"by label, in the own namespace":       {"{kind: HTTPRoute, selector: {matchLabels: {team: red}}}", nil, []string{"HTTPRoute app/r", "HTTPRoute app/s"}},
		"all, by an empty selector":            {"{kind: HTTPRoute, selector: {}}", nil, []string{"HTTPRoute app/b", "HTTPRoute app/r", "HTTPRoute app/s"}},
		"by an expression":                     {"{kind: HTTPRoute, selector: {matchExpressions: [{key: team, operator: NotIn, values: [red]}]}}", nil, []string{"HTTPRoute app/b"}},
		"by a label that none has":             {"{kind: HTTPRoute, selector: {matchLabels: {team: green}}}", nil, []string{"HTTPRoute with team=green"}},
		"of a kind that has none":              {"{kind: Gateway, selector: {matchLabels: {team: red}}}", nil, []string{"Gateway with team=red"}},
		"by name and label, counted once":      {"{kind: HTTPRoute, selector: {matchLabels: {team: red}}}, {kind: HTTPRoute, name: s}", nil, []string{"HTTPRoute app/r", "HTTPRoute app/s"}},
		"by label and name of all, still once": {"{kind: HTTPRoute, name: s}, {kind: HTTPRoute, selector: {matchLabels: {tier: web}}}", nil, []string{"HTTPRoute app/s"}},
		"by two labels, counted once":          {"{kind: HTTPRoute, selector: {matchLabels: {team: red}}}, {kind: HTTPRoute, selector: {matchLabels: {tier: web}}}", nil, []string{"HTTPRoute app/r", "HTTPRoute app/s"}},
		"a section of it is another target":    {"{kind: HTTPRoute, selector: {matchLabels: {tier: web}}, sectionName: x}, {kind: HTTPRoute, name: s}", nil, []string{"HTTPRoute app/s section x", "HTTPRoute app/s"}},
		"in another namespace without a grant": {"{kind: HTTPRoute, namespace: zoo, name: z}", nil, []string{"HTTPRoute zoo/z: " + none}},
		"in another namespace with a grant":    {"{kind: HTTPRoute, namespace: zoo, name: z}", []snapshot.Object{grant(paints, "")}, []string{"HTTPRoute zoo/z"}},
		"with a grant for that very object":    {"{kind: HTTPRoute, namespace: zoo, name: z}", []snapshot.Object{grant(paints, ", name: z")}, []string{"HTTPRoute zoo/z"}},
		"with a grant for another object":      {"{kind: HTTPRoute, namespace: zoo, name: z}", []snapshot.Object{grant(paints, ", name: other")}, []string{"HTTPRoute zoo/z: " + none}},
		"with a grant for another kind":        {"{kind: HTTPRoute, namespace: zoo, name: z}", []snapshot.Object{grant("{group: example.com, kind: Other, namespace: app}", "")}, []string{"HTTPRoute zoo/z: " + none}},
		"with a grant for another namespace":   {"{kind: HTTPRoute, namespace: zoo, name: z}", []snapshot.Object{grant("{group: example.com, kind: Paint, namespace: zoo}", "")}, []string{"HTTPRoute zoo/z: " + none}},
		"by label in any namespace": {
			"{kind: HTTPRoute, selector: {matchLabels: {team: red}}, namespaces: {from: All}}", nil,
			[]string{"HTTPRoute app/r", "HTTPRoute app/s", "HTTPRoute zoo/z: " + none},
		},
		"by label in any namespace, with a grant": {
			"{kind: HTTPRoute, selector: {matchLabels: {team: red}}, namespaces: {from: All}}", []snapshot.Object{grant(paints, "")},
			[]string{"HTTPRoute app/r", "HTTPRoute app/s", "HTTPRoute zoo/z"},
		},
		"by label in namespaces by their labels": {
			"{kind: HTTPRoute, selector: {}, namespaces: {from: Selector, selector: {matchLabels: {open: yes-it-is}}}}", []snapshot.Object{grant(paints, ""), zoo},
			[]string{"HTTPRoute app/b", "HTTPRoute app/r", "HTTPRoute app/s", "HTTPRoute zoo/z"},
		},
		"by label in namespaces whose labels do not match": {
			"{kind: HTTPRoute, selector: {}, namespaces: {from: Selector, selector: {matchLabels: {open: never}}}}", []snapshot.Object{grant(paints, ""), zoo},
			[]string{"HTTPRoute app/b", "HTTPRoute app/r", "HTTPRoute app/s"},
		},
		"in any namespace and in the own, counted once": {
			"{kind: HTTPRoute, selector: {matchLabels: {tier: web}}, namespaces: {from: All}}, {kind: HTTPRoute, selector: {matchLabels: {tier: web}}}", nil,
			[]string{"HTTPRoute app/s"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v, p := painting(t, choosy(t), test.targets, test.more...)
			var got []string
			for _, target := range v.Targets(p) {
				text := target.String()
				if target.Refused != "" {
					text += ": " + target.Refused
				}
				got = append(got, text)
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// For a kind whose policies can only target their own namespace, objects that a
// selector selects in other namespaces are refused.
func TestRefusedTargetIsNoDuplicate(t *testing.T) {
	v, p := painting(t, paint(t, "Paint"),
		"{kind: HTTPRoute, selector: {matchLabels: {tier: web}}, namespaces: {from: All}}, {kind: HTTPRoute, selector: {matchLabels: {tier: web}}}")
	var refused []bool
	for _, target := range v.Targets(p) {
		assert.Equal(t, "HTTPRoute app/s", target.String())
		refused = append(refused, target.Refused != "")
	}
	assert.Equal(t, []bool{true, false}, refused)
}

// Consumer targets are in other namespaces.
func TestConsumerTargets(t *testing.T) {
	k, err := policykind.Compile(api.PolicyProfileSpec{
		Group: "example.com", Kind: "Paint", Class: api.Inherited,
		Targets: api.ProfileTargets{Fields: []string{"targetRefs"}, Namespaces: api.NamespacesConsumer},
	}, policykind.Builtin)
	assert.NoError(t, err)
	v, p := painting(t, k, "{kind: HTTPRoute, selector: {matchLabels: {team: red}}, namespaces: {from: All}}")
	got := make(map[string]bool)
	for _, target := range v.Targets(p) {
		got[target.String()] = target.Consumer
	}
	assert.Equal(t, map[string]bool{"HTTPRoute app/r": false, "HTTPRoute app/s": false, "HTTPRoute zoo/z": true}, got)
}

// A change of a label of an object or its namespace changes the targets of a policy.
func TestOnFollowsLabels(t *testing.T) {
	v, _ := painting(t, choosy(t), "{kind: HTTPRoute, selector: {matchLabels: {team: red}}}")
	assert.Equal(t, []string{"Paint app/p"}, on(v, routeRef("r"), paintKind))
	assert.Empty(t, on(v, routeRef("b"), paintKind))
	v = v.With(puts(
		decode(t, routeKind, "metadata: {namespace: app, name: r}"),
		decode(t, routeKind, "metadata: {namespace: app, name: b, labels: {team: red}}"),
	)...)
	assert.Empty(t, on(v, routeRef("r"), paintKind))
	assert.Equal(t, []string{"Paint app/p"}, on(v, routeRef("b"), paintKind))
	assert.Empty(t, on(v.With(snapshot.Delete(routeRef("b"))), routeRef("b"), paintKind), "what is not there has no labels")
}
