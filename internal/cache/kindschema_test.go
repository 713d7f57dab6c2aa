package cache

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/policykind"
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
func typedCRD(c crd) *definition {
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
	return parseDefinition(obj)
}

func TestKindHasSchemaOfDefinition(t *testing.T) {
	profiles := newProfiles(t)
	auth := authCRD
	auth.specFields = []string{"rules"}
	k, err := typedCRD(auth).policyKind(profiles)
	require.NoError(t, err)
	assert.Equal(t, []string{"rules"}, fieldsOf(t, k))
	assert.Equal(t, policykind.Builtin, k.Source)
	assert.Nil(t, profiles.Of(k.Ref()).Schema(), "the built-in kind is shared, and has none")

	color := colorCRD
	color.specFields = []string{"colors"}
	k, err = typedCRD(color).policyKind(profiles)
	require.NoError(t, err)
	assert.Equal(t, []string{"colors"}, fieldsOf(t, k), "a guess has one, too")

	found, err := (&definition{groupKind: k.Ref(), resource: typedCRD(color).resource, labelKind: k.WithSchema(nil)}).policyKind(profiles)
	require.NoError(t, err)
	assert.Nil(t, found.Schema(), "what discovery finds has none")
}

func TestServedKindHasCurrentSchema(t *testing.T) {
	r := newTestRegistry(t)
	color := colorCRD
	color.specFields = []string{"colors"}
	r.replace([]*definition{typedCRD(color)})
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
