package manifest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
	"overrule.dev/overrule/test/messages"
)

const gatewayAPI = "apiVersion: gateway.networking.k8s.io/v1\n"

func view(t *testing.T, text string) (*snapshot.View, *Set, *Kinds, error) {
	t.Helper()
	set, err := Read([]string{"-"}, strings.NewReader(text))
	require.NoError(t, err)
	kinds := NewKinds(nil)
	v, err := set.View(kinds, "here")
	return v, set, kinds, err
}

func crd(kind, label, scope string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + strings.ToLower(kind) + `.example.com, labels: {gateway.networking.k8s.io/policy: "` + label + `"}}
spec: {group: example.com, scope: ` + scope + `, names: {kind: ` + kind + `, plural: many, singular: single, shortNames: [m]}}
`
}

func TestViewNamespaces(t *testing.T) {
	v, _, kinds, err := view(t, gatewayAPI+`
kind: Gateway
metadata: {name: edge}
---
`+gatewayAPI+`
kind: HTTPRoute
metadata: {name: toys, namespace: there}
---
`+gatewayAPI+`
kind: GatewayClass
metadata: {name: istio, namespace: mistaken}
---
apiVersion: v1
kind: Namespace
metadata: {name: here}
---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {name: auth}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}}
---
apiVersion: example.com/v1
kind: Wide
metadata: {name: wide}
---
`+crd("Wide", "inherited", "Cluster"))
	require.NoError(t, err)
	for _, ref := range []api.Ref{
		{Group: api.GatewayGroup, Kind: "Gateway", Namespace: "here", Name: "edge"},
		{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "there", Name: "toys"},
		{Group: api.GatewayGroup, Kind: "GatewayClass", Name: "istio"},
		{Kind: "Namespace", Name: "here"},
		{Group: "kuadrant.io", Kind: "AuthPolicy", Namespace: "here", Name: "auth"},
		{Group: "example.com", Kind: "Wide", Name: "wide"},
	} {
		assert.NotNil(t, v.Get(ref), ref)
	}
	assert.Equal(t, []string{"many", "single", "m"}, kinds.Names(api.PolicyKind{Group: "example.com", Kind: "Wide"}))
}

func TestViewCreationTime(t *testing.T) {
	v, _, _, err := view(t, `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {name: old, creationTimestamp: "2025-01-01T00:00:00Z"}
---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {name: undated}
`)
	require.NoError(t, err)
	created := func(name string) int64 {
		p, ok := v.Get(api.Ref{Group: "kuadrant.io", Kind: "AuthPolicy", Namespace: "here", Name: name}).(*policykind.Policy)
		require.True(t, ok)
		return p.Created
	}
	assert.EqualValues(t, 1735689600, created("old"))
	assert.Equal(t, merge.Undated, created("undated"))
}

func TestKindsFromLabels(t *testing.T) {
	v, set, kinds, err := view(t, crd("Down", "inherited", "Namespaced")+"---"+crd("Flat", "direct", "Namespaced")+"---"+crd("Other", "", "Namespaced")+`
---
apiVersion: example.com/v1
kind: Down
metadata: {name: down}
---
{apiVersion: example.com/v1, kind: Other, metadata: {name: other}}
---
{apiVersion: v1, kind: Secret, metadata: {name: a}}
---
{apiVersion: v1, kind: Secret, metadata: {name: a}}
---
{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization}
`)
	require.NoError(t, err, "unknown kinds do no harm, not even twice or without a name")
	down, flat := kinds.Of(api.PolicyKind{Group: "example.com", Kind: "Down"}), kinds.Of(api.PolicyKind{Group: "example.com", Kind: "Flat"})
	require.NotNil(t, down)
	require.NotNil(t, flat)
	assert.Equal(t, api.Inherited, down.Class)
	assert.Equal(t, api.Direct, flat.Class)
	assert.Nil(t, kinds.Of(api.PolicyKind{Group: "example.com", Kind: "Other"}))
	assert.Equal(t, 1, v.Count(down.Ref()))
	assert.Same(t, down, v.Kind(down.Ref()), "a view knows a kind by its pointer")
	builtin := policykind.BuiltinKinds()
	assert.Len(t, v.Kinds(), len(builtin)+2, "the built-in ones and two more")
	assert.Equal(t, map[api.PolicyKind]int{
		{Kind: "Secret"}: 2, {Group: "example.com", Kind: "Other"}: 1, {Group: "kustomize.config.k8s.io", Kind: "Kustomization"}: 1,
	}, set.Ignored(kinds))
}

func TestDefinitionKeepsBuiltinProfile(t *testing.T) {
	kinds := NewKinds(nil)
	set, err := Read([]string{"../../../examples/crds"}, nil)
	require.NoError(t, err)
	copied := kinds.Clone()
	require.NoError(t, set.Define(copied))
	rate := api.PolicyKind{Group: "kuadrant.io", Kind: "RateLimitPolicy"}
	assert.Equal(t, policykind.Builtin, copied.Of(rate).Source)
	assert.Contains(t, copied.Names(rate), "rlp")
	before := len(kinds.All())
	assert.Len(t, copied.All(), before+2, "a clone leaves the original alone")
	for _, o := range set.Objects {
		require.NoError(t, copied.RemoveDefinition(o))
	}
	assert.Len(t, copied.All(), before-2, "what has no definition any more has no policies")
	assert.Nil(t, copied.Of(rate))
	require.NoError(t, set.Define(copied))
	assert.Len(t, copied.All(), before+2, "until it is defined again")
}

func TestViewErrors(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"an object twice, by default namespace too": {
			gatewayAPI + "kind: Gateway\nmetadata: {name: edge}\n---\n" + gatewayAPI + "kind: Gateway\nmetadata: {name: edge, namespace: here}\n",
			[]string{"standard input:5 (document 2): duplicate object: Gateway here/edge ", "standard input:1 (document 1)"},
		},
		"a definition twice": {
			crd("A", "direct", "Namespaced") + "---" + crd("A", "direct", "Namespaced"),
			[]string{"duplicate object: CustomResourceDefinition a.example.com"},
		},
		"no name": {
			gatewayAPI + "kind: HTTPRoute\nmetadata: {generateName: toys-}\n",
			[]string{"standard input:1 (document 1): HTTPRoute: metadata.name is required"},
		},
		"no metadata": {"apiVersion: kuadrant.io/v1\nkind: AuthPolicy\n", []string{"AuthPolicy: metadata.name is required"}},
		"an invalid time": {
			"apiVersion: kuadrant.io/v1\nkind: AuthPolicy\nmetadata: {name: a, creationTimestamp: 2026-01-31}\n",
			[]string{`standard input:1 (document 1): AuthPolicy a: invalid metadata.creationTimestamp "2026-01-31": must be an RFC 3339 time`},
		},
		"types that do not fit, in each object": {
			gatewayAPI + "kind: HTTPRoute\nmetadata: {name: a}\nspec: {rules: all}\n---\n" + gatewayAPI + "kind: Gateway\nmetadata: {name: b}\nspec: {listeners: [{port: high}]}\n",
			[]string{"HTTPRoute a is invalid", "HTTPRouteSpec.spec.rules", "Gateway b is invalid", "spec.listeners.port", "standard input:6 (document 2)"},
		},
		"a definition that does not fit": {
			"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\nspec: {names: all}\n",
			[]string{"CustomResourceDefinition x is invalid"},
		},
		"an empty definition": {
			"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\n",
			[]string{"spec.group", "spec.names.kind"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v, _, _, err := view(t, c.text)
			require.Error(t, err)
			assert.Nil(t, v)
			messages.Golden(t, err.Error())
			for _, part := range c.want {
				assert.ErrorContains(t, err, part)
			}
		})
	}
}

func TestRemoveInvalidDefinition(t *testing.T) {
	kinds := NewKinds(nil)
	assert.Error(t, kinds.RemoveDefinition(&Object{content: map[string]any{"spec": "x"}}))
}

func TestDecodeResetsCreationTime(t *testing.T) {
	set, err := Read([]string{"-"}, strings.NewReader("apiVersion: kuadrant.io/v1\nkind: AuthPolicy\nmetadata: {name: a, creationTimestamp: \"2025-01-01T00:00:00Z\"}\n"))
	require.NoError(t, err)
	kinds := NewKinds(nil)
	for resetCreation, want := range map[bool]int64{false: 1735689600, true: 7} {
		o, err := set.Objects[0].Decode(kinds, "here", 7, resetCreation)
		require.NoError(t, err)
		p, ok := o.(*policykind.Policy)
		require.True(t, ok)
		assert.Equal(t, want, p.Created)
	}
	_, err = (&Object{Kind: api.PolicyKind{Kind: "Pod"}}).Decode(kinds, "here", 7, false)
	require.ErrorIs(t, err, snapshot.ErrKind)
	assert.True(t, kinds.Reads(api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindGRPCRoute}))
}
