package policykind_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/test/tables"
)

// schemaOf packs the schema of a spec, nil for none.
func schemaOf(t *testing.T, spec json.RawMessage) *policykind.Schema {
	t.Helper()
	if spec == nil {
		return nil
	}
	var props apiextensionsv1.JSONSchemaProps
	require.NoError(t, yaml.UnmarshalStrict(spec, &props))
	return policykind.PackSchema(&apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": props},
	})
}

func TestCoerceMatchesAPIServer(t *testing.T) {
	table := tables.Read[struct {
		Schemas map[string]json.RawMessage
		Rows    map[string]struct{ Is, Spec, Want string }
	}](t, "testdata/tables/coerce.yaml")
	for sentence, c := range table.Rows {
		t.Run(sentence, func(t *testing.T) {
			object := func(spec string) map[string]any {
				var out map[string]any
				require.NoError(t, yaml.Unmarshal([]byte("{apiVersion: example.com/v1, kind: Paint, metadata: {name: p}, spec: "+spec+"}"), &out))
				return integers(out).(map[string]any)
			}
			got := object(c.Spec)
			schemaOf(t, table.Schemas[c.Is]).Coerce(got)
			assert.Equal(t, object(c.Want), got)
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
