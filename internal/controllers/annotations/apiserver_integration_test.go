//go:build integration

package annotations_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/jsonpath"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/controllers/annotations"
	"overrule.dev/overrule/test/env"
)

const objects = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: default, name: edge}
spec: {gatewayClassName: c, listeners: [{name: http, protocol: HTTP, port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: default, name: r, annotations: {overrule.dev/PaintAffected: "true", overrule.dev/effective-policy: theirs, team: toys}}
spec: {parentRefs: [{name: edge}]}
`

var (
	theRoute   = api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "default", Name: "r"}
	theGateway = api.Ref{Group: api.GatewayGroup, Kind: "Gateway", Namespace: "default", Name: "edge"}
)

func at(kind api.PolicyKind) (schema.GroupVersionResource, bool) {
	resource := map[string]string{"HTTPRoute": "httproutes", "Gateway": "gateways"}[kind.Kind]
	return schema.GroupVersionResource{Group: kind.Group, Version: "v1", Resource: resource}, resource != ""
}

// TestMarksOnAPIServer writes marks without webhooks, with only the permissions of the
// annotations controller.
func TestMarksOnAPIServer(t *testing.T) {
	e := env.Start(t)
	require.Zero(t, e.Apply(objects).Code)
	as := func(name string, rules ...rbacv1.PolicyRule) *annotations.APIServer {
		user := e.MustAddUser(t, name, []string{"system:authenticated"}, rules...)
		client, err := dynamic.NewForConfig(user.Config)
		require.NoError(t, err)
		return &annotations.APIServer{Client: client, ServedResource: at}
	}
	cluster := as("refresher",
		rbacv1.PolicyRule{APIGroups: []string{api.GatewayGroup}, Resources: []string{"httproutes", "gateways/status"}, Verbs: []string{"patch"}},
		rbacv1.PolicyRule{APIGroups: []string{api.GatewayGroup}, Resources: []string{"gateways"}, Verbs: []string{"get"}})
	admin, err := dynamic.NewForConfig(e.Config)
	require.NoError(t, err)
	field := func(ref api.Ref, path string) string {
		resource, _ := at(ref.PolicyKind())
		o, err := admin.Resource(resource).Namespace(ref.Namespace).Get(t.Context(), ref.Name, metav1.GetOptions{})
		require.NoError(t, err)
		j := jsonpath.New(path).AllowMissingKeys(true)
		require.NoError(t, j.Parse("{"+path+"}"))
		var out strings.Builder
		require.NoError(t, j.Execute(&out, o.Object))
		return out.String()
	}
	uid := func(ref api.Ref) types.UID { return types.UID(field(ref, ".metadata.uid")) }
	write := func(ref api.Ref, m *annotations.Marks) {
		t.Helper()
		require.NoError(t, cluster.Write(t.Context(), ref, uid(ref), m))
	}

	t.Run("removes annotations that other field managers own, too", func(t *testing.T) {
		write(theRoute, &annotations.Marks{Annotations: map[string]string{"overrule.dev/PaintAffected": "true"}})
		assert.Equal(t, "true", field(theRoute, `.metadata.annotations.overrule\.dev/PaintAffected`))
		assert.Empty(t, field(theRoute, `.metadata.annotations.overrule\.dev/effective-policy`))
		write(theRoute, &annotations.Marks{})
		assert.Empty(t, field(theRoute, `.metadata.annotations.overrule\.dev/PaintAffected`))
		assert.Equal(t, "toys", field(theRoute, ".metadata.annotations.team"))
	})

	condition := func(message string) *annotations.Marks {
		return &annotations.Marks{Conditions: []metav1.Condition{{
			Type: "overrule.dev/PaintAffected", Status: metav1.ConditionTrue, Reason: "Affected", Message: message, ObservedGeneration: 1,
		}}}
	}
	const ours = `.status.conditions[?(@.type=="overrule.dev/PaintAffected")]`
	t.Run("keeps the conditions of others, and transition times", func(t *testing.T) {
		others := field(theGateway, ".status.conditions[*].type")
		write(theGateway, condition("by a"))
		since := field(theGateway, ours+".lastTransitionTime")
		require.NotEmpty(t, since)
		require.Zero(t, e.Kubectl("-n", "default", "patch", "gateway/edge", "--subresource=status", "--type=json", "-p", fmt.Sprintf(
			`[{"op":"test","path":"/status/conditions/2/type","value":"overrule.dev/PaintAffected"},{"op":"replace","path":"/status/conditions/2/lastTransitionTime","value":%q}]`,
			"2020-01-01T00:00:00Z")).Code)
		write(theGateway, condition("by a and b"))
		assert.Equal(t, "2020-01-01T00:00:00Z by a and b", field(theGateway, ours+".lastTransitionTime")+" "+field(theGateway, ours+".message"))
		assert.Equal(t, others+" overrule.dev/PaintAffected", field(theGateway, ".status.conditions[*].type"))
	})
	t.Run("removes an unwanted condition", func(t *testing.T) {
		others := strings.ReplaceAll(field(theGateway, ".status.conditions[*].type"), " overrule.dev/PaintAffected", "")
		write(theGateway, &annotations.Marks{})
		assert.Equal(t, others, field(theGateway, ".status.conditions[*].type"))
	})

	t.Run("neither changes another object of the name nor creates one", func(t *testing.T) {
		marks := &annotations.Marks{Annotations: map[string]string{api.AnnotationEffectivePolicy: "x"}, Conditions: condition("").Conditions}
		require.Error(t, cluster.Write(t.Context(), theRoute, "another", marks))
		require.NoError(t, cluster.Write(t.Context(), theGateway, "another", marks))
		assert.Empty(t, field(theGateway, ours))
		absent := theRoute
		absent.Name = "absent"
		require.NoError(t, cluster.Write(t.Context(), absent, "another", marks))
		assert.NotZero(t, e.Kubectl("get", "httproute/absent").Code)
		require.NoError(t, cluster.Write(t.Context(), api.Ref{Group: "x", Kind: "Y", Name: "z"}, "u", marks), "its kind is not served")
	})

	t.Run("returns the missing permission", func(t *testing.T) {
		err := as("unprivileged").Write(t.Context(), theRoute, uid(theRoute), &annotations.Marks{})
		require.ErrorContains(t, err, `User "unprivileged" cannot patch resource "httproutes"`)
		reader := as("reader", rbacv1.PolicyRule{APIGroups: []string{api.GatewayGroup}, Resources: []string{"gateways"}, Verbs: []string{"get"}})
		err = reader.Write(t.Context(), theGateway, uid(theGateway), condition(""))
		require.ErrorContains(t, err, `User "reader" cannot patch resource "gateways/status"`)
	})
}
