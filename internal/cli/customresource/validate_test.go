package customresource

import (
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// kind returns a kind of which spec has a schema.
func kind(t *testing.T, spec string) *Kind {
	t.Helper()
	crd := new(apiextensionsv1.CustomResourceDefinition)
	text := `
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, x-kubernetes-preserve-unknown-fields: true}, spec: ` + spec + `}}}
  - {name: v2, served: true, storage: false}
  - {name: v0, served: false, storage: false}
`
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), crd))
	return New(crd)
}

func object(t *testing.T, version, more string) map[string]any {
	t.Helper()
	out := make(map[string]any)
	require.NoError(t, yaml.Unmarshal([]byte("apiVersion: example.com/"+version+"\nkind: Widget\nmetadata: {name: a}\n"+more), &out))
	return out
}

const simple = "{type: object, properties: {color: {type: string, default: red}, shape: {type: string}, any: {type: object, additionalProperties: {type: object, properties: {size: {type: integer}}}}}}"

// The messages are compared with those of the API server by a test of the commands.
func TestValidatePrunesAndDefaultsACopy(t *testing.T) {
	written := object(t, "v1", "spec: {shap: round, any: {a.b: {siz: 1}}}\nstatus: {x: y}")
	got, err := kind(t, simple).Validate(t.Context(), written, nil, "ns")
	require.NoError(t, err)
	assert.Equal(t, object(t, "v1", "spec: {color: red, any: {a.b: {}}}"), got.Object)
	assert.Equal(t, []Problem{
		{"spec.any.a.b.siz", `unknown field "spec.any.a.b.siz": did you mean "size"?`},
		{"spec.shap", `unknown field "spec.shap": did you mean "shape"?`},
	}, got.Unknown)
	assert.Empty(t, got.Invalid)
	assert.Equal(t, object(t, "v1", "spec: {shap: round, any: {a.b: {siz: 1}}}\nstatus: {x: y}"), written)
}

func TestUnknownFieldsHaveASuggestionIfOneIsClose(t *testing.T) {
	for field, want := range map[string]string{
		"spce: {}":                       `unknown field "spce": did you mean "spec"?`,
		"spec: {sizes: 1}":               `unknown field "spec.sizes"`,
		"metadata: {name: a, lables: 1}": `unknown field "metadata.lables": did you mean "labels"?`,
		"metadata: {name: a, other: 1}":  `unknown field "metadata.other"`,
		"spec: {any: {a: {sise: 1}}}":    `unknown field "spec.any.a.sise": did you mean "size"?`,
	} {
		written := map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "a"}}
		require.NoError(t, yaml.Unmarshal([]byte(field), &written))
		got, err := kind(t, simple).Validate(t.Context(), written, nil, "ns")
		require.NoError(t, err)
		require.NotEmpty(t, got.Unknown, field)
		assert.Equal(t, want, got.Unknown[len(got.Unknown)-1].Message)
	}
}

func TestAnUpdateKeepsTheStatus(t *testing.T) {
	old := object(t, "v1", "spec: {}\nstatus: {x: stored}")
	got, err := kind(t, simple).Validate(t.Context(), object(t, "v1", "status: {x: written}"), old, "ns")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"x": "stored"}, got.Object["status"])
}

func TestVersionsThatAreNotServed(t *testing.T) {
	for _, version := range []string{"v0", "v9"} {
		got, err := kind(t, simple).Validate(t.Context(), object(t, version, ""), nil, "ns")
		require.NoError(t, err)
		assert.Nil(t, got.Object)
		assert.Equal(t, []Problem{{"apiVersion", `no matches for kind "Widget" in version "example.com/` + version + `"; served versions: v1, v2`}}, got.Invalid)
	}
}

func TestDefinitionsThatAreNotValid(t *testing.T) {
	for name, c := range map[string]struct{ version, spec, want string }{
		"no schema":                    {"v2", simple, "schema.openAPIV3Schema is required"},
		"no type":                      {"v1", "{properties: {a: {}}}", "the schema is not structural"},
		"a list with many schemas":     {"v1", "{type: array, items: [{type: string}]}", "the schema is not structural"},
		"a rule that does not compile": {"v1", "{type: object, x-kubernetes-validations: [{rule: 'self.x =='}]}", "rule compile error: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kind(t, c.spec).Validate(t.Context(), object(t, c.version, "spec: {}"), nil, "ns")
			require.ErrorIs(t, err, ErrDefinition)
			assert.ErrorContains(t, err, "widgets.example.com: invalid CustomResourceDefinition: version "+c.version+": ")
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestBuiltinKindsCompile(t *testing.T) {
	files, err := os.ReadDir("builtin")
	require.NoError(t, err)
	assert.Greater(t, len(files), 12)
	for _, file := range files {
		data, err := builtinFiles.ReadFile(path.Join("builtin", file.Name()))
		require.NoError(t, err)
		crd, err := parse(data)
		require.NoError(t, err, file.Name())
		k := New(crd)
		for _, v := range k.versions {
			if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil && v.Served {
				assert.NoError(t, v.compile(), file.Name())
			}
		}
	}
	first := Builtin("gateway.networking.k8s.io", "HTTPRoute")
	assert.Same(t, first, Builtin("gateway.networking.k8s.io", "HTTPRoute"))
	assert.Nil(t, Builtin("example.com", "Widget"))
	_, err = parse([]byte("{"))
	assert.ErrorContains(t, err, "decode an embedded definition: ")
}
