package replay

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "overrule.dev/overrule/api/v1alpha1"
)

const (
	policyBelow = "RateLimitPolicy app/toys"
	policyAbove = "RateLimitPolicy infra/gate"
	route       = "HTTPRoute app/toys"
	auth        = "AuthPolicy infra/auth"

	authDefinition  = "CustomResourceDefinition authpolicies.kuadrant.io"
	colorDefinition = "CustomResourceDefinition colorpolicies.policies.example.com"
)

func TestFindings(t *testing.T) {
	for name, c := range map[string]struct {
		history func(testing.TB) *story
		want    []string
	}{
		"two writes break a constraint together: the second is found": {
			func(t testing.TB) *story { return newStory(t, base).write(above).write(below) },
			[]string{"CREATE RateLimitPolicy app/toys 2 [RequirementUnmet]"},
		},
		"the same in the other order": {
			func(t testing.TB) *story { return newStory(t, base).write(below).write(above) },
			[]string{"CREATE RateLimitPolicy infra/gate 2 [RequirementUnmet]"},
		},
		"a violation of the initial state is not one of the writes after it": {
			func(t testing.TB) *story {
				return newStory(t, base+"---"+above+"---"+below).edit(route, func(o *Object) { o.SetLabels(map[string]string{"a": "b"}) })
			},
			nil,
		},
		"the first policy is deleted before the second is created, and created again": {
			func(t testing.TB) *story {
				return newStory(t, base).write(above).remove(policyAbove).write(below).remove(policyBelow).write(above)
			},
			nil,
		},
		"a policy is created again while the other one exists": {
			func(t testing.TB) *story {
				return newStory(t, base).write(above).remove(policyAbove).write(below).write(above)
			},
			[]string{"CREATE RateLimitPolicy infra/gate 4 [RequirementUnmet]"},
		},
		"a route moves below a policy that was edited": {
			func(t testing.TB) *story {
				return newStory(t, base+"---"+below).write(routeAt("other")).write(above).write(routeAt("edge"))
			},
			[]string{"UPDATE HTTPRoute app/toys 3 [RequirementUnmet]"},
		},
		"a route moves away first": {
			func(t testing.TB) *story {
				return newStory(t, base+"---"+below).write(routeAt("other")).write(above)
			},
			nil,
		},
		"a namespace gets the label that attaches its routes": {
			func(t testing.TB) *story {
				label := func(labels map[string]string) func(*Object) { return func(o *Object) { o.SetLabels(labels) } }
				return newStory(t, base+"---"+below).edit("Namespace app", label(nil)).write(above).
					edit("Namespace app", label(map[string]string{"routes": "allowed"}))
			},
			[]string{"UPDATE Namespace app 3 [RequirementUnmet]"},
		},
		"a constraint is written after a violation, and before it": {
			func(t testing.TB) *story {
				s := newStory(t, base)
				constraint := s.stored["ClusterPolicyConstraint not-both"]
				s.remove("ClusterPolicyConstraint not-both").write(above).write(below).put(constraint.DeepCopy())
				return s.remove(policyBelow).write(below)
			},
			[]string{"CREATE RateLimitPolicy app/toys 6 [RequirementUnmet]"},
		},
		"an override is deleted": {
			func(t testing.TB) *story { return newStory(t, base+"---"+gatewayAuth).remove(auth) },
			[]string{"DELETE AuthPolicy infra/auth 1 [OverrideRemoved]"},
		},
		"an override is deleted with a finalizer: only the request to delete it is found": {
			func(t testing.TB) *story { return newStory(t, base+"---"+gatewayAuth).terminate(auth).remove(auth) },
			[]string{"DELETE AuthPolicy infra/auth 1 [OverrideRemoved]"},
		},
		"an override is garbage collected with its owner: only the new owner is found": {
			func(t testing.TB) *story { return ownedOverride(t).remove("ConfigMap infra/owner").remove(auth) },
			[]string{"UPDATE AuthPolicy infra/auth 1 [OverrideEvaded]"},
		},
		"an override is deleted while its owner exists": {
			func(t testing.TB) *story { return ownedOverride(t).remove(auth) },
			[]string{"UPDATE AuthPolicy infra/auth 1 [OverrideEvaded]", "DELETE AuthPolicy infra/auth 2 [OverrideRemoved]"},
		},
		"an override is deleted with the namespace that has all its paths": {
			func(t testing.TB) *story {
				return newStory(t, base+"---"+gatewayAuth).terminate("Namespace infra").remove(auth).remove("Namespace infra")
			},
			nil,
		},
		"a kind is deleted: only the request to delete its definition is found": {
			func(t testing.TB) *story {
				return newStory(t, base+"---"+gatewayAuth).terminate(authDefinition).remove(auth).remove(authDefinition)
			},
			[]string{"DELETE CustomResourceDefinition authpolicies.kuadrant.io 1 [OverrideEvaded]"},
		},
		"policies of the server's namespace do not count": {
			func(t testing.TB) *story {
				return newStory(t, base).write(strings.ReplaceAll(gatewayAuth, "namespace: infra", "namespace: overrule-system")).remove("AuthPolicy overrule-system/auth")
			},
			nil,
		},
		"writes that change the status only are not evaluated": {
			func(t testing.TB) *story {
				return newStory(t, base+"---"+above).edit(policyAbove, func(o *Object) { o.Object["status"] = map[string]any{"a": "b"} })
			},
			nil,
		},
		"a kind becomes a policy kind by its profile": {
			func(t testing.TB) *story {
				return newStory(t, base).write(glazeDefinition).write(glaze("zero")).write(glazeProfile).write(glaze("first"))
			},
			[]string{"CREATE Glaze app/first 4 [Conflicted]"},
		},
		"a kind is no policy kind before its profile and after it": {
			func(t testing.TB) *story {
				return newStory(t, base).write(glazeDefinition).write(glaze("zero")).write(glaze("one")).
					write(glazeProfile).remove("PolicyProfile glaze").write(glaze("two"))
			},
			nil,
		},
		"a profile does not read overrides that exist": {
			func(t testing.TB) *story { return newStory(t, base+"---"+gatewayColor).write(colorProfile) },
			[]string{"CREATE PolicyProfile colors 1 [OverrideEvaded]"},
		},
		"a definition does not have the field of an override any more: then its policy can be deleted": {
			func(t testing.TB) *story {
				return newStory(t, base+"---"+gatewayColor).edit(colorDefinition, withoutOverrides).remove("ColorPolicy infra/colors")
			},
			[]string{"UPDATE CustomResourceDefinition colorpolicies.policies.example.com 1 [OverrideEvaded]"},
		},
		"an override is written while a profile does not read it": {
			func(t testing.TB) *story {
				return newStory(t, base).write(colorProfile).write(gatewayColor).remove("ColorPolicy infra/colors")
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.ElementsMatch(t, c.want, c.history(t).found())
		})
	}
}

// withoutOverrides removes the field overrides from the schema of a definition.
func withoutOverrides(o *Object) {
	versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
	unstructured.RemoveNestedField(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties", "overrides")
	_ = unstructured.SetNestedSlice(o.Object, versions, "spec", "versions")
}

// ownedOverride has an override that got an owner.
func ownedOverride(t testing.TB) *story {
	t.Helper()
	s := newStory(t, base+"---"+gatewayAuth+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: infra, name: owner}\n")
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: s.stored["ConfigMap infra/owner"].GetUID()}
	return s.edit(auth, func(o *Object) { o.SetOwnerReferences([]metav1.OwnerReference{owner}) })
}

func TestReportCounts(t *testing.T) {
	s := newStory(t, base).write(above).write(below).edit(policyBelow, func(o *Object) { o.Object["status"] = map[string]any{} })
	report, err := Replay(t.Context(), s.history())
	require.NoError(t, err)
	assert.Equal(t, []int{3, 2, 1}, []int{report.Writes, report.Evaluated, len(report.Findings)})
	assert.True(t, slices.Contains(report.Findings[0].Codes, api.ReasonRequirementUnmet))
	assert.Contains(t, report.Findings[0].String(), "both limits are set")
}
