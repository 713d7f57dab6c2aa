package worlds

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/internal/policykind"
)

// kindSchema is the kind of a document of a World that sets the schema of a
// policy kind.
const kindSchema = "Schema"

// SchemaDoc sets the schema of the spec of a kind of a World, in YAML.
func SchemaDoc(kind, spec string) string {
	return fmt.Sprintf("kind: %s\nof: %s\nschema:\n  type: object\n  required: [spec]\n  properties:\n    apiVersion: {type: string}\n"+
		"    kind: {type: string}\n    metadata: {type: object}\n    spec:\n      %s\n", kindSchema, kind, indented(indented(indented(spec))))
}

// schemas returns the schemas of a world by kind.
func schemas(t testing.TB, docs []string) map[string]*policykind.Schema {
	t.Helper()
	out := make(map[string]*policykind.Schema)
	for _, doc := range docs {
		if kindOf(t, doc) != kindSchema {
			continue
		}
		var s struct {
			Of     string                          `json:"of"`
			Schema apiextensionsv1.JSONSchemaProps `json:"schema"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(doc), &s), doc)
		out[s.Of] = policykind.PackSchema(&s.Schema)
	}
	return out
}
