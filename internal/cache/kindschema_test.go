package cache

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// fieldsOf returns the fields of spec in the schema of a kind.
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

// typedCRD adds types to the schema of a definition, as a structural schema has them.
func typedCRD(c crd) *snapshot.Definition {
	obj := c.obj()
	for _, v := range obj.Spec.Versions {
		root := v.Schema.OpenAPIV3Schema
		root.Type = "object"
		spec := root.Properties["spec"]
		spec.Type = "object"
		for name, f := range spec.Properties {
			f.Type = "string"
			spec.Properties[name] = f
		}
		root.Properties["spec"] = spec
	}
	return snapshot.ParseDefinition(obj)
}

func TestKindHasSchemaOfDefinition(t *testing.T) {
	auth, color := authCRD, colorCRD
	auth.specFields, color.specFields = []string{"rules"}, []string{"colors"}
	kinds := snapshot.NewKinds().With(snapshot.Put(typedCRD(auth)), snapshot.Put(typedCRD(color)))
	assert.Equal(t, []string{"rules"}, fieldsOf(t, kinds.Of(authKind)))
	assert.Equal(t, policykind.Builtin, kinds.Of(authKind).Source)
	assert.Nil(t, policykind.BuiltinKind(authKind).Schema(), "the built-in kind is shared, and has none")
	assert.Equal(t, []string{"colors"}, fieldsOf(t, kinds.Of(colorRef)), "a guess has one, too")
	props, err := kinds.Schema(colorRef)
	require.NoError(t, err)
	assert.Contains(t, props.Properties["spec"].Properties, "colors")
	none, err := kinds.Schema(paintKind)
	require.NoError(t, err)
	assert.Nil(t, none)
}

func TestServedKindHasCurrentSchema(t *testing.T) {
	r := newTestRegistry(t)
	color := colorCRD
	color.specFields = []string{"colors"}
	r.replace([]*snapshot.Definition{typedCRD(color)})
	r.list(colorCRD.obj().Name)
	v, _ := r.store.View()
	was := v.Kind(colorRef)
	require.NotNil(t, was)

	r.put(typedCRD(color))
	v, _ = r.store.View()
	assert.Same(t, was, v.Kind(colorRef), "the same definition leaves the kind the very same")

	color.specFields = []string{"shades"}
	r.put(typedCRD(color))
	r.list(colorCRD.obj().Name)
	v, _ = r.store.View()
	require.NotNil(t, v.Kind(colorRef))
	assert.Equal(t, []string{"shades"}, fieldsOf(t, v.Kind(colorRef)))
}
