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
	const sso = "rules.authentication.sso: {namespace: infra, block: overrides}\n"
	cases := map[string]struct {
		name, spec, before, origins string
		want                        []string
	}{
		"authentication by any name": {"public-routes-authenticate", "rules: {authentication: {sso: {jwt: {}}}}", "", "", nil},
		"anonymous is none":          {"public-routes-authenticate", "rules: {authentication: {sso: {jwt: {}}, all: {anonymous: {}}}}", "", "", []string{"spec.validations[0]: anonymous is no authentication"}},
		"no authentication":          {"public-routes-authenticate", "rules: {authorization: {a: {}}}", "", "", []string{"spec.rules[0].required: every route on a public gateway needs authentication"}},
		"no policy":                  {"public-routes-authenticate", "{}", "", "", []string{"spec.rules[0].required: every route on a public gateway needs authentication"}},

		"1000 a minute":         {"at-most-1000-a-minute", "limits: {a: {rates: [{limit: 1000, window: 1m}]}}", "", "", nil},
		"17 a second are more":  {"at-most-1000-a-minute", "limits: {a: {rates: [{limit: 17, window: 1s}]}}", "", "", []string{"spec.validations[0]: no limit may be above 1000 requests a minute"}},
		"no limit at all":       {"at-most-1000-a-minute", "{}", "", "", nil},
		"a limit without rates": {"at-most-1000-a-minute", "limits: {a: {when: [x]}}", "", "", nil},
		"a rate that is none":   {"at-most-1000-a-minute", "limits: {a: {rates: [{limit: many, window: 1m}]}}", "", "", []string{"spec.validations[0]: no limit may be above 1000 requests a minute; no such overload"}},

		"a modest limit":     {"modest-limits", "limits: {a: {rates: [{limit: 10, window: 10s}]}}", "", "", nil},
		"a large one":        {"modest-limits", "limits: {a: {rates: [{limit: 1001, window: 48h}]}}", "", "", []string{"spec.rules[0].max: limits.a.rates[0].limit is 1001", `spec.rules[1].max: limits.a.rates[0].window is "48h"`}},
		"overrides of infra": {"overrides-are-the-platforms", "{}", "", sso, nil},
		"overrides of app":   {"overrides-are-the-platforms", "{}", "", sso + "rules.authentication.own: {namespace: app, block: overrides}", []string{"spec.validations[0]: only policies of namespace infra may set overrides, not those that set rules.authentication.own"}},

		"twice as long":       {"timeouts-grow-slowly", "request: 20s", "request: 10s", "", nil},
		"more than twice":     {"timeouts-grow-slowly", "request: 21s", "request: 10s", "", []string{"spec.validations[0]: the request timeout goes from 10s to 21s: at most twice as long is allowed at once"}},
		"a path that is new":  {"timeouts-grow-slowly", "request: 60s", "", "", nil},
		"too long for anyone": {"timeouts-grow-slowly", "request: 61s", "", "", []string{`spec.rules[0].max: request is "61s"`}},
	}
	all := examples(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			on := effective(t, c.spec)
			on.Before, on.Origins = effective(t, "null").Effective, effective(t, "{}").Effective
			if c.before != "" {
				on.Before = effective(t, c.before).Effective
			}
			if c.origins != "" {
				on.Origins = effective(t, c.origins).Effective
			}
			on.Request = func() any { return m{"userInfo": m{"groups": []any{"dev"}}} }
			got, err := evaluate(all[c.name], on, &meter{})
			require.NoError(t, err)
			assertUnmet(t, c.want, got)
		})
	}
	on := effective(t, "request: 50s")
	on.Before = effective(t, "request: 10s").Effective
	on.Request = func() any { return m{"userInfo": m{"groups": []any{"system:masters"}}} }
	got, err := evaluate(all["timeouts-grow-slowly"], on, &meter{})
	require.NoError(t, err)
	assert.Empty(t, got, "an administrator may")
}
