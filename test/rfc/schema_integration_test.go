//go:build integration

package rfc

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/tables"
)

// policies returns a client of the RateLimitPolicies of a version, on an API
// server that has the CRD and no Overrule.
func policies(t *testing.T, e *env.Env, version string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(e.Config)
	require.NoError(t, err)
	return client.Resource(schema.GroupVersionResource{Group: "kuadrant.io", Version: version, Resource: "ratelimitpolicies"}).Namespace("default")
}

// policy returns a policy on the route with these additional fields.
func policy(t *testing.T, version, name, spec string) *unstructured.Unstructured {
	t.Helper()
	var rest map[string]any
	data, err := yaml.YAMLToJSON([]byte(spec))
	require.NoError(t, err, spec)
	require.NoError(t, json.Unmarshal(data, &rest), "not %s", data) // whole numbers stay integers
	object := map[string]any{"targetRef": map[string]any{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "toystore"}}
	maps.Copy(object, rest)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kuadrant.io/" + version, "kind": "RateLimitPolicy",
		"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": object,
	}}
}

// fieldErrors returns the errors of the API server for an invalid object, each
// with its field.
func fieldErrors(t *testing.T, err error) []string {
	t.Helper()
	var status *apierrors.StatusError
	require.ErrorAs(t, err, &status)
	if status.ErrStatus.Reason == metav1.StatusReasonBadRequest {
		_, said, _ := strings.Cut(status.ErrStatus.Message, "strict decoding error: ")
		return []string{said}
	}
	require.Equal(t, metav1.StatusReasonInvalid, status.ErrStatus.Reason, err)
	var out []string
	for _, cause := range status.ErrStatus.Details.Causes {
		if cause.Field != "<nil>" { // "rules are not checked because of earlier errors"
			out = append(out, cause.Field+": "+cause.Message)
		}
	}
	return out
}

func requireRejected(t *testing.T, to dynamic.ResourceInterface, p *unstructured.Unstructured) []string {
	t.Helper()
	_, err := to.Create(t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	require.Error(t, err)
	return fieldErrors(t, err)
}

func requireAccepted(t *testing.T, to dynamic.ResourceInterface, p *unstructured.Unstructured) {
	t.Helper()
	_, err := to.Create(t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	require.NoError(t, err)
}

// TestSchema tests the schema of the CRD in the API server.
func TestSchema(t *testing.T) {
	e := env.Start(t)
	t.Run("refuses a limit", func(t *testing.T) { rejectsLimits(t, e) })
	t.Run("accepts a limit", func(t *testing.T) { acceptsLimits(t, e) })
	t.Run("refuses a spec", func(t *testing.T) { rejectsSpecs(t, e) })
	t.Run("accepts a spec", func(t *testing.T) { acceptsSpecs(t, e) })
	t.Run("keeps what is written", func(t *testing.T) { keepsContent(t, e) })
	t.Run("leaves v1 as it was", func(t *testing.T) { keepsV1(t, e) })
}

// rejected is a limit or a spec, and the errors of the API server.
type rejected struct {
	Limit, Spec string
	Want        []string
}

func rejectedLimits(t *testing.T) map[string]rejected {
	t.Helper()
	all := tables.Read[map[string]rejected](t, "testdata/rejected-limits.yaml")
	maps.Copy(all, rejectedTriggers())
	return all
}

func acceptedLimits(t *testing.T) map[string]string {
	t.Helper()
	return tables.Read[map[string]string](t, "testdata/accepted-limits.yaml")
}

// rejectsLimits tests each limit in all places of a policy that may have one.
func rejectsLimits(t *testing.T, e *env.Env) {
	to := policies(t, e, "v2beta1")
	for name, c := range rejectedLimits(t) {
		t.Run(name, func(t *testing.T) {
			for _, block := range []string{"", "defaults.", "overrides."} {
				var want []string
				for _, line := range c.Want {
					want = append(want, strings.ReplaceAll(line, "spec.limits", "spec."+block+"limits"))
				}
				assert.ElementsMatch(t, want, requireRejected(t, to, policy(t, "v2beta1", "bad", in(block, c.Limit))), block)
			}
		})
	}
}

func acceptsLimits(t *testing.T, e *env.Env) {
	to := policies(t, e, "v2beta1")
	for name, limit := range acceptedLimits(t) {
		t.Run(name, func(t *testing.T) {
			for _, block := range []string{"", "defaults.", "overrides."} {
				requireAccepted(t, to, policy(t, "v2beta1", "good", in(block, limit)))
			}
		})
	}
}

// in returns a spec with a limit l in a block.
func in(block, limit string) string {
	if name, found := strings.CutSuffix(block, "."); found {
		return "{" + name + ": {limits: {l: " + limit + "}}}"
	}
	return "{limits: {l: " + limit + "}}"
}

func rejectsSpecs(t *testing.T, e *env.Env) {
	to := policies(t, e, "v2beta1")
	for name, c := range tables.Read[map[string]rejected](t, "testdata/rejected-specs.yaml") {
		t.Run(name, func(t *testing.T) {
			p := policy(t, "v2beta1", "bad", c.Spec)
			assert.ElementsMatch(t, c.Want, requireRejected(t, to, p))
		})
	}
	t.Run("that is not there", func(t *testing.T) {
		p := policy(t, "v2beta1", "bad", "{}")
		delete(p.Object, "spec")
		assert.Equal(t, []string{"spec: Required value"}, requireRejected(t, to, p))
	})
	t.Run("with more limits than the service is asked to hold", func(t *testing.T) {
		p := policy(t, "v2beta1", "bad", "{}")
		limits := make(map[string]any)
		for _, name := range names(257) {
			limits[name] = map[string]any{"rates": []any{map[string]any{"limit": int64(1), "unit": "second"}}}
		}
		require.NoError(t, unstructured.SetNestedMap(p.Object, limits, "spec", "limits"))
		assert.Equal(t, []string{"spec.limits: Too many: 257: must have at most 256 items"}, requireRejected(t, to, p))
		delete(limits, names(1)[0])
		require.NoError(t, unstructured.SetNestedMap(p.Object, limits, "spec", "limits"))
		requireAccepted(t, to, p)
	})
}

func acceptsSpecs(t *testing.T, e *env.Env) {
	to := policies(t, e, "v2beta1")
	for name, spec := range tables.Read[map[string]string](t, "testdata/accepted-specs.yaml") {
		t.Run(name, func(t *testing.T) { requireAccepted(t, to, policy(t, "v2beta1", "good", spec)) })
	}
}
