package policykind_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/tables"
)

func TestSchemaRoundTrip(t *testing.T) {
	s := policykind.PackSchema(schema(t, `
type: object
properties:
  spec:
    type: object
    description: words
    x-kubernetes-validations: [{rule: "self.size > 0"}]
    properties:
      size: {type: integer, default: 2, example: 7}
      either: {type: object, properties: {a: {type: string}}, oneOf: [{required: [a]}], anyOf: [{required: [a]}], allOf: [{required: [a]}], not: {required: [b]}}
      tags: {type: array, items: {type: string, title: words}}
      more: {type: object, additionalProperties: {type: string}}
`))
	got, err := s.Structural()
	require.NoError(t, err)
	spec := got.Properties["spec"]
	assert.Empty(t, spec.Description)
	assert.Equal(t, "self.size > 0", spec.XValidations[0].Rule)
	assert.Equal(t, int64(2), spec.Properties["size"].Default.Object)
	assert.Nil(t, spec.Properties["size"].Example.Object)
	either := spec.Properties["either"].ValueValidation
	assert.Equal(t, [][]string{{"a"}, {"a"}, {"a"}, {"b"}},
		[][]string{either.OneOf[0].Required, either.AnyOf[0].Required, either.AllOf[0].Required, either.Not.Required})
	assert.Equal(t, "string", spec.Properties["tags"].Items.Type)
	assert.Equal(t, "string", spec.Properties["more"].AdditionalProperties.Structural.Type)
}

func TestNonStructuralSchema(t *testing.T) {
	for sentence, c := range map[string]struct {
		props *apiextensionsv1.JSONSchemaProps
		want  string
	}{
		"no types":                  {schema(t, "properties: {spec: {properties: {a: {type: string}}}}"), "properties[spec].type: Required value"},
		"a reference":               {schema(t, "{type: object, $ref: other}"), "$ref"},
		"a default that is no JSON": {&apiextensionsv1.JSONSchemaProps{Type: "object", Default: &apiextensionsv1.JSON{Raw: []byte("{")}}, "encode"},
		"a list without items":      {schema(t, "{type: object, properties: {a: {type: array}}}"), "properties[a].items: Required value"},
		"a resource that is pruned": {schema(t, paintSchema), "properties[spec].properties[embedded].properties: Required value"},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := policykind.PackSchema(c.props)
			_, err := s.Structural()
			require.ErrorContains(t, err, c.want)
			messages.Golden(t, err.Error())
			_, again := s.Structural()
			assert.Equal(t, err, again)
		})
	}
}

func TestSchemaSame(t *testing.T) {
	pack := func(text string) *policykind.Schema { return policykind.PackSchema(schema(t, text)) }
	a := pack("{type: object, properties: {a: {type: string}, b: {type: string}}}")
	for sentence, c := range map[string]struct {
		b    *policykind.Schema
		want bool
	}{
		"itself":                          {a, true},
		"the same in another order":       {pack("{properties: {b: {type: string}, a: {type: string}}, type: object}"), true},
		"the same in other words":         {pack("{type: object, description: x, properties: {a: {type: string, title: words, externalDocs: {url: z}}, b: {type: string}}}"), true},
		"one more field":                  {pack("{type: object, properties: {a: {type: string}, b: {type: string}, c: {type: string}}}"), false},
		"another type below a definition": {pack("{type: object, properties: {a: {type: string}, b: {type: integer}}}"), false},
		"none":                            {nil, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, c.want, a.Same(c.b))
			assert.Equal(t, c.want, c.b.Same(a))
		})
	}
	assert.Nil(t, policykind.PackSchema(nil))
	assert.True(t, (*policykind.Schema)(nil).Same(nil))
}

func TestWithSchemaCopiesKind(t *testing.T) {
	kinds := policykind.BuiltinKinds()
	s := policykind.PackSchema(schema(t, "{type: object}"))
	k := kinds[0].WithSchema(s)
	assert.Same(t, s, k.Schema())
	assert.Nil(t, kinds[0].Schema(), "built-in kinds are shared")
	assert.Same(t, k, k.WithSchema(s))
	assert.Same(t, kinds[0], kinds[0].WithSchema(nil))
	assert.Nil(t, k.WithSchema(nil).Schema())
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			got, err := k.Schema().Structural()
			assert.NoError(t, err)
			assert.Equal(t, "object", got.Type)
		})
	}
	readers.Wait()
}

func TestLayout(t *testing.T) {
	for sentence, c := range tables.Read[map[string]struct {
		Profile string
		Want    policykind.Layout
	}](t, "testdata/tables/layouts.yaml") {
		t.Run(sentence, func(t *testing.T) {
			k := compiled(t, func(p *api.PolicyProfileSpec) {
				*p = api.PolicyProfileSpec{Group: "example.com", Kind: "Paint", Class: api.Inherited}
				unmarshalStrict(t, c.Profile, p)
			})
			assert.Equal(t, c.Want, k.Layout())
		})
	}
}
