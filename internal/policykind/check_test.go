package policykind_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/tables"
)

// paintSchema is the schema of a kind with blocks, named rules, lists, and fields of any
// type.
const paintSchema = `
type: object
properties:
  spec:
    type: object
    properties:
      targetRef: {type: object, properties: {name: {type: string}}}
      targetRefs: {type: array, items: {type: object, properties: {name: {type: string}}}}
      priority: {type: integer}
      mode: {type: string}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true}
      embedded: {type: object, x-kubernetes-embedded-resource: true}
      open: {type: object, additionalProperties: true}
      closed: {type: object, additionalProperties: false}
      bare: {type: object, properties: {only: {type: string}}}
      limits:
        type: object
        additionalProperties: {type: object, properties: {rates: {type: array, items: {type: object, properties: {name: {type: string}, limit: {type: integer}}}}}}
      defaults: &block
        type: object
        properties:
          when: {type: string}
          strategy: {type: string}
          rules: {type: object, properties: {a: {type: object, additionalProperties: {type: string}}, b: {type: object, properties: {x: {type: string}}}}}
      overrides: *block
      default: {type: object, properties: {colors: {type: object, properties: {red: {type: string}}}}}
`

func schema(t testing.TB, text string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	out := new(apiextensionsv1.JSONSchemaProps)
	unmarshalStrict(t, text, out)
	return out
}

func TestCheck(t *testing.T) {
	for sentence, c := range tables.Read[map[string]struct {
		Profile json.RawMessage
		Want    []string
	}](t, "testdata/tables/schema-checks.yaml") {
		t.Run(sentence, func(t *testing.T) {
			k := compiled(t, func(p *api.PolicyProfileSpec) {
				p.Blocks = api.ProfileBlocks{}
				unmarshalStrict(t, string(c.Profile), p)
			})
			assert.Equal(t, c.Want, paths(t, k.Check(schema(t, paintSchema))))
		})
	}
}

// paths returns the starts of messages: the field of the profile and the path that the
// schema does not have.
func paths(t *testing.T, all []string) []string {
	t.Helper()
	messages.Golden(t, all...)
	var out []string
	for _, text := range all {
		words := strings.Fields(text)
		require.Greater(t, len(words), 2, text)
		assert.Contains(t, words, "Paint.example.com")
		out = append(out, strings.Join(words[:2], " "))
	}
	return out
}

func TestCheckWithoutSchema(t *testing.T) {
	assert.Nil(t, compiled(t, nil).Check(nil))
}

func TestCheckSchemaWithoutSpec(t *testing.T) {
	k := compiled(t, func(p *api.PolicyProfileSpec) { p.Blocks = api.ProfileBlocks{} })
	assert.Equal(t, []string{
		"spec.targets.fields[0]: spec.targetRef",
		"spec.targets.fields[1]: spec.targetRefs",
	}, paths(t, k.Check(schema(t, "type: object"))))
}
