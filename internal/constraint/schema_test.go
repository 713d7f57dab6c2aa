package constraint_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/tables"
)

func schema(t testing.TB, text string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	var s apiextensionsv1.JSONSchemaProps
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &s), text)
	return &s
}

const paint = `
type: object
properties:
  spec:
    type: object
    properties:
      targetRefs: {type: array, items: {type: object}}
      limits:
        type: object
        additionalProperties:
          type: object
          properties:
            max: {type: integer}
            unit: {type: string}
            enabled: {type: boolean}
            rates: {type: array, items: {type: object, properties: {limit: {type: integer}}}}
      size: {x-kubernetes-int-or-string: true}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true}
      open: {type: object, additionalProperties: true}
      overrides: {type: object, properties: {limits: {type: object}, extra: {type: string}}}
`

func TestCheckAgainstSchema(t *testing.T) {
	cases := tables.Read[map[string]struct {
		Spec string
		Want []string
	}](t, "testdata/tables/check-against-schema.yaml")
	shape := constraint.Shape{Schema: schema(t, paint), Content: [][]string{{"spec"}, {"spec", "overrides"}, {"spec", "defaults"}}}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.Want, messages.Fields(t, valid(t, c.Spec).Check(shape)))
		})
	}
}

func TestUnknownSchemaIsNotChecked(t *testing.T) {
	c := valid(t, "validations: [{expression: effective.limitz.a == 1}]\nrules: [{path: limitz, required: true}]")
	spec := [][]string{{"spec"}}
	for name, shape := range map[string]constraint.Shape{
		"no schema":            {Content: spec},
		"no spec in it":        {Schema: schema(t, "type: object"), Content: spec},
		"anything may be in":   {Schema: schema(t, "{type: object, x-kubernetes-preserve-unknown-fields: true}"), Content: spec},
		"anything in spec":     {Schema: schema(t, "{type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}"), Content: spec},
		"any names in spec":    {Schema: schema(t, "{type: object, properties: {spec: {type: object, additionalProperties: {type: object}}}}"), Content: spec},
		"anything in a block":  {Schema: schema(t, "{type: object, properties: {spec: {type: object, properties: {o: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}"), Content: [][]string{{"spec"}, {"spec", "o"}}},
		"a spec of some type":  {Schema: schema(t, "{type: object, properties: {spec: {}}}"), Content: spec},
		"a content that lacks": {Schema: schema(t, paint), Content: [][]string{{"spec", "nothing"}}},
	} {
		t.Run(name, func(t *testing.T) { assert.NoError(t, c.Check(shape)) })
	}
}

func TestCheckCollectedSpecs(t *testing.T) {
	shape := constraint.Shape{Schema: schema(t, paint), Content: [][]string{{"spec"}}, List: true}
	require.NoError(t, valid(t, "validations: [{expression: 'effective.all(s, s.size == 1)'}]\nrules: [{path: '[*].size', max: 1}]").Check(shape))
	assert.Equal(t, []string{`spec.rules[0].path: Invalid value: "size"`}, messages.Fields(t, valid(t, "rules: [{path: size, max: 1}]").Check(shape)))
}

func TestCheckNamedContents(t *testing.T) {
	shape := constraint.Shape{Schema: schema(t, paint), Content: [][]string{{"spec"}}, Named: true}
	require.NoError(t, valid(t, "validations: [{expression: 'effective.red.size == 1'}]\nrules: [{path: red.size, max: 1}]").Check(shape))
	assert.Equal(t, []string{`spec.rules[0].path: Invalid value: "size.red"`}, messages.Fields(t, valid(t, "rules: [{path: size.red, max: 1}]").Check(shape)))
}

// The values of path have the types by which expressions are checked.
func TestPathVariableMatchesSchema(t *testing.T) {
	shape := constraint.Shape{Schema: schema(t, paint), Content: [][]string{{"spec"}}}
	var fits func(v any, at string)
	fits = func(v any, at string) {
		literal := ""
		switch v := v.(type) {
		case m:
			for name, held := range v {
				fits(held, at+"['"+name+"']")
			}
			return
		case []any:
			literal = "['']"
		case string:
			literal = "''"
		case int64:
			literal = "0"
		default:
			t.Errorf("%s is a %T", at, v)
		}
		at = regexp.MustCompile(`\['(\w+)'\]`).ReplaceAllString(at, ".$1")
		assert.NoError(t, valid(t, "validations: [{expression: \""+at+" == "+literal+"\"}]").Check(shape), at)
	}
	a, b, c := gatewayPath(), bySet(), inMesh(80)
	c.Member = "filters[1]"
	for _, p := range []any{constraint.PathOf(&a, world{}), constraint.PathOf(&b, world{}), constraint.PathOf(&c, world{})} {
		fits(p, "path")
	}
}
