package constraint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/test/tables"
)

// examples returns the constraints of the examples, by name.
func examples(t *testing.T) map[string]*constraint.Constraint {
	t.Helper()
	files, err := filepath.Glob("../../examples/constraints/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := make(map[string]*constraint.Constraint)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		for doc := range strings.SplitSeq(string(data), "\n---\n") {
			c := example(t, doc)
			require.NoError(t, c.Invalid, file)
			out[c.Ref().Name] = c
		}
	}
	return out
}

func example(t *testing.T, doc string) *constraint.Constraint {
	t.Helper()
	if strings.Contains(doc, "kind: PolicyConstraint\n") {
		var o api.PolicyConstraint
		require.NoError(t, yaml.UnmarshalStrict([]byte(doc), &o))
		return constraint.FromPolicyConstraint(&o)
	}
	var o api.ClusterPolicyConstraint
	require.NoError(t, yaml.UnmarshalStrict([]byte(doc), &o))
	return constraint.FromClusterPolicyConstraint(&o)
}

// exampleSchemas returns the schemas of the kinds in examples/crds.
func exampleSchemas(t *testing.T) map[api.PolicyKind]*apiextensionsv1.JSONSchemaProps {
	t.Helper()
	files, err := filepath.Glob("../../examples/crds/*.yaml")
	require.NoError(t, err)
	out := make(map[api.PolicyKind]*apiextensionsv1.JSONSchemaProps)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var crd apiextensionsv1.CustomResourceDefinition
		require.NoError(t, yaml.Unmarshal(data, &crd), file)
		out[api.PolicyKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	}
	return out
}

func TestExamplesMatchSchemas(t *testing.T) {
	schemas := exampleSchemas(t)
	for name, c := range examples(t) {
		require.Contains(t, schemas, c.PolicyKind(), name)
		assert.NoError(t, c.Check(constraint.Shape{
			Schema: schemas[c.PolicyKind()], Content: [][]string{{"spec"}, {"spec", "defaults"}, {"spec", "overrides"}},
		}), name)
	}
}

func TestExampleMessages(t *testing.T) {
	cases := tables.Read[map[string]struct {
		Name, Spec, Before, Origins string
		Want                        []string
	}](t, "testdata/tables/example-messages.yaml")
	all := examples(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			on := effective(t, c.Spec)
			on.Before, on.Origins = effective(t, "null").Effective, effective(t, "{}").Effective
			if c.Before != "" {
				on.Before = effective(t, c.Before).Effective
			}
			if c.Origins != "" {
				on.Origins = effective(t, c.Origins).Effective
			}
			on.Request = func() any { return m{"userInfo": m{"groups": []any{"dev"}}} }
			got, err := evaluate(all[c.Name], on, &meter{})
			require.NoError(t, err)
			assertUnmet(t, c.Want, got)
		})
	}
	on := effective(t, "request: 50s")
	on.Before = effective(t, "request: 10s").Effective
	on.Request = func() any { return m{"userInfo": m{"groups": []any{"system:masters"}}} }
	got, err := evaluate(all["timeouts-grow-slowly"], on, &meter{})
	require.NoError(t, err)
	assert.Empty(t, got, "an administrator may")
}
