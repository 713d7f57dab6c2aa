package helm_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Each value changes the field that it is named after, in the Deployment's pods.
func TestPodValues(t *testing.T) {
	for name, c := range table[struct {
		Values values
		Field  string
		Want   any
	}](t, "pod-values.yaml") {
		t.Run(name, func(t *testing.T) {
			want, err := json.Marshal(c.Want)
			require.NoError(t, err)
			deployment := rendered(t, c.Values).get(t, "Deployment", "overrule")
			assert.JSONEq(t, string(want), at(t, deployment, strings.Split(c.Field, ".")...))
			before := rendered(t, nil).get(t, "Deployment", "overrule")
			assert.NotEqual(t, string(want), at(t, before, strings.Split(c.Field, ".")...), "the value differs from the default")
		})
	}
}

// at returns the field of an object, as JSON; a number is an index of a list.
func at(t *testing.T, object any, path ...string) string {
	t.Helper()
	for _, key := range path {
		switch in := object.(type) {
		case map[string]any:
			object = in[key]
		case []any:
			i := int(key[0] - '0')
			object = nil
			if i < len(in) {
				object = in[i]
			}
		}
	}
	out, err := json.Marshal(object)
	require.NoError(t, err)
	return string(out)
}

func TestFlagsFromValues(t *testing.T) {
	for name, c := range table[struct {
		Values values
		Want   []string
	}](t, "flags.yaml") {
		t.Run(name, func(t *testing.T) {
			got := at(t, rendered(t, c.Values).get(t, "Deployment", "overrule"), "spec", "template", "spec", "containers", "0", "args")
			want, err := json.Marshal(c.Want)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}

func TestOptionalObjects(t *testing.T) {
	kinds := func(o objects) (out []string) {
		for key := range o {
			if !slices.Contains(out, key.kind) {
				out = append(out, key.kind)
			}
		}
		return out
	}
	assert.NotContains(t, kinds(rendered(t, values{"replicas": 1})), "PodDisruptionBudget", "one replica may be drained")
	assert.Contains(t, kinds(rendered(t, nil)), "PodDisruptionBudget")
	assert.NotContains(t, kinds(rendered(t, values{"crds.install": false})), "CustomResourceDefinition")
	untrusted := rendered(t, values{"staticWebhooks.enabled": true})
	assert.NotContains(t, kinds(untrusted), "ValidatingWebhookConfiguration", "they would reject every write")
	assert.NotContains(t, untrusted, id{kind: "ClusterRole", name: "overrule-webhooks"})
}

func TestStaticWebhooksHaveTheFailurePolicyAndTheTimeout(t *testing.T) {
	objects := rendered(t, static.with(values{"failurePolicy": "Ignore", "webhookTimeoutSeconds": 10}))
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		hooks, _, err := unstructured.NestedSlice(objects.get(t, kind, "overrule"), "webhooks")
		require.NoError(t, err)
		require.NotEmpty(t, hooks)
		for _, hook := range hooks {
			want := "Ignore"
			if hook.(map[string]any)["name"] == "review.overrule.dev" {
				want = "Fail" // a dry run without an answer must fail
			}
			assert.Equal(t, want, hook.(map[string]any)["failurePolicy"], kind)
			seconds := int64(10)
			if hook.(map[string]any)["name"] == "system.validate.overrule.dev" {
				seconds = 1 // in every installation
			}
			assert.EqualValues(t, seconds, hook.(map[string]any)["timeoutSeconds"], kind)
		}
	}
}

func TestSchemaRejects(t *testing.T) {
	for name, c := range table[struct {
		Values values
		Says   string
	}](t, "rejected-values.yaml") {
		t.Run(name, func(t *testing.T) {
			_, err := template(t, namespace, c.Values)
			require.ErrorContains(t, err, "values don't meet the specifications of the schema")
			assert.ErrorContains(t, err, c.Says)
		})
	}
}
