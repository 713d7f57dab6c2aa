package policykind_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/internal/policykind"
)

// schemaOf packs the schema of a spec, nil for "".
func schemaOf(t *testing.T, spec string) *policykind.Schema {
	t.Helper()
	if spec == "" {
		return nil
	}
	var props apiextensionsv1.JSONSchemaProps
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &props))
	return policykind.PackSchema(&apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": props},
	})
}

func TestCoerceMatchesAPIServer(t *testing.T) {
	const (
		open     = "{type: object, x-kubernetes-preserve-unknown-fields: true}"
		plain    = "{type: object, properties: {mode: {type: string}, blocks: {type: object, properties: {mode: {type: string}, size: {type: integer}}}}}"
		merge    = "{type: object, properties: {mode: {type: string, default: merge}, blocks: {type: object, properties: {mode: {type: string, default: merge}, size: {type: integer, default: 3}}}}}"
		atomic   = "{type: object, properties: {mode: {type: string, default: atomic}, blocks: {type: object, properties: {mode: {type: string}, size: {type: integer}}}}}"
		listed   = "{type: object, properties: {all: {type: array, items: {type: object, properties: {mode: {type: string, default: merge}}}}}}"
		unlisted = "{type: object, properties: {all: {type: array, items: {type: object, properties: {mode: {type: string}}}}}}"
		named    = "{type: object, properties: {all: {type: object, additionalProperties: {type: object, properties: {mode: {type: string, default: merge}}}}}}"
		unnamed  = "{type: object, properties: {all: {type: object, additionalProperties: {type: object, properties: {mode: {type: string}}}}}}"
		nullable = "{type: object, properties: {mode: {type: string, nullable: true}}}"
	)
	for sentence, c := range map[string]struct {
		was, is, spec, want string
	}{
		"without a schema all stays":                                {"", "", "{mode: merge, x: 1}", "{mode: merge, x: 1}"},
		"one that is not structural changes nothing":                {"", "{properties: {mode: {}}}", "{x: 1}", "{x: 1}"},
		"what the schema does not have goes":                        {"", plain, "{mode: merge, x: 1}", "{mode: merge}"},
		"unless it preserves unknown fields":                        {"", open, "{x: 1}", "{x: 1}"},
		"unknown fields are not preserved any more":                 {open, plain, "{mode: merge, x: 1}", "{mode: merge}"},
		"a default is filled in":                                    {plain, merge, "{}", "{mode: merge}"},
		"below a field that is there, too":                          {plain, merge, "{blocks: {}}", "{mode: merge, blocks: {mode: merge, size: 3}}"},
		"what is written is not replaced":                           {plain, merge, "{mode: atomic}", "{mode: atomic}"},
		"a default in the items of a list":                          {unlisted, listed, "{all: [{}, {mode: x}]}", "{all: [{mode: merge}, {mode: x}]}"},
		"a default below any name":                                  {unnamed, named, "{all: {a: {}}}", "{all: {a: {mode: merge}}}"},
		"a null that is allowed stays":                              {"", nullable, "{mode: null}", "{mode: null}"},
		"a null that is not goes":                                   {nullable, plain, "{mode: null}", "{}"},
		"a null that is not allowed is replaced by the default":     {nullable, merge, "{mode: null}", "{mode: merge}"},
		"a default that is removed may not be stored":               {merge, plain, "{mode: merge, blocks: {mode: merge, size: 3}}", "{blocks: {}}"},
		"in a list, too":                                            {listed, unlisted, "{all: [{mode: merge}]}", "{all: [{}]}"},
		"below any name, too":                                       {named, unnamed, "{all: {a: {mode: merge}}}", "{all: {a: {}}}"},
		"a default that changes may not be stored":                  {merge, atomic, "{mode: merge}", "{mode: atomic}"},
		"what is not the default is stored":                         {merge, atomic, "{mode: other, blocks: {size: 4}}", "{mode: other, blocks: {size: 4}}"},
		"a default that stays stays":                                {merge, merge, "{mode: merge}", "{mode: merge}"},
		"a default of what is gone goes with it":                    {merge, "{type: object}", "{mode: merge, blocks: {mode: merge}}", "{}"},
		"what was no list by the schema before is left as it is":    {merge, listed, "{all: [{}]}", "{all: [{mode: merge}]}"},
		"a list of what was no list by the schema before goes, too": {open, plain, "{all: [{}]}", "{}"},
	} {
		t.Run(sentence, func(t *testing.T) {
			object := func(spec string) map[string]any {
				var out map[string]any
				require.NoError(t, yaml.Unmarshal([]byte("{apiVersion: example.com/v1, kind: Paint, metadata: {name: p}, spec: "+spec+"}"), &out))
				return integers(out).(map[string]any)
			}
			got := object(c.spec)
			schemaOf(t, c.is).Coerce(got, schemaOf(t, c.was))
			assert.Equal(t, object(c.want), got)
		})
	}
}

// integers are the numbers of a value as the API server's decoder has them.
func integers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			v[name] = integers(child)
		}
	case []any:
		for i, child := range v {
			v[i] = integers(child)
		}
	case float64:
		return int64(v)
	}
	return value
}
