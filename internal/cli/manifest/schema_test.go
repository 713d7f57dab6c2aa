package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// schemaCRD defines AuthPolicy or a kind of its own, with one field in spec.
func schemaCRD(group, kind, field string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: many.%[1]s, labels: {gateway.networking.k8s.io/policy: direct}}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: %[2]s, plural: many}
  versions:
  - name: v0
    schema: {openAPIV3Schema: {type: object}}
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%[3]s: {type: string}}}}}}
`, group, kind, field)
}

func fieldsOf(t testing.TB, k *policykind.Kind) []string {
	t.Helper()
	require.NotNil(t, k.Schema())
	props, err := k.Schema().Structural()
	require.NoError(t, err)
	var out []string
	for name := range props.Properties["spec"].Properties {
		out = append(out, name)
	}
	return out
}

func define(t testing.TB, kinds *Kinds, text string) {
	t.Helper()
	set, err := Read([]string{"-"}, strings.NewReader(text))
	require.NoError(t, err)
	require.NoError(t, kinds.AddDefinition(set.Objects[0]))
}

func TestKindHasSchemaOfDefinition(t *testing.T) {
	rate := api.PolicyKind{Group: "kuadrant.io", Kind: "RateLimitPolicy"}
	v, _, kinds, err := view(t, schemaCRD("kuadrant.io", "RateLimitPolicy", "limits")+"---"+schemaCRD("example.com", "Own", "colors")+`
---
apiVersion: example.com/v1
kind: Own
metadata: {name: p}
`)
	require.NoError(t, err)
	assert.Equal(t, []string{"limits"}, fieldsOf(t, kinds.Of(rate)))
	assert.Equal(t, []string{"colors"}, fieldsOf(t, kinds.Of(ownKind)))
	assert.Same(t, v.Kind(ownKind), kinds.Of(ownKind), "a view knows a kind by its pointer")
	p, _ := v.Get(api.Ref{Group: "example.com", Kind: "Own", Namespace: "here", Name: "p"}).(*policykind.Policy)
	require.NotNil(t, p)
	assert.Same(t, v.Kind(ownKind), p.Kind)

	plain := NewKinds(nil)
	assert.Nil(t, plain.Of(rate).Schema(), "the built-in kind is shared, and has none")
}

func TestKindChangesWithSchema(t *testing.T) {
	_, _, kinds, err := view(t, schemaCRD("example.com", "Own", "colors"))
	require.NoError(t, err)
	was := kinds.Of(ownKind)
	copied := kinds.Clone()
	define(t, copied, schemaCRD("example.com", "Own", "colors"))
	assert.Same(t, was, copied.Of(ownKind), "what says the same leaves the kind the very same")
	define(t, copied, schemaCRD("example.com", "Own", "shades"))
	assert.Equal(t, []string{"shades"}, fieldsOf(t, copied.Of(ownKind)))
	assert.Same(t, was, kinds.Of(ownKind), "a clone leaves the original alone")

	given := NewKinds(snapshot.KindsOf(was))
	assert.Equal(t, []string{"colors"}, fieldsOf(t, given.Of(ownKind)), "a cluster's kind brings its schema")
	define(t, given, schemaCRD("example.com", "Own", "shades"))
	assert.Equal(t, []string{"shades"}, fieldsOf(t, given.Of(ownKind)))
}
