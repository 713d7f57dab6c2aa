package watch

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestPolicyKindsAreFoundAmongTheResourcesOfAnAPIServer(t *testing.T) {
	list := metav1.Verbs{"get", "list"}
	found := known(t).served([]*metav1.APIResourceList{
		{GroupVersion: "not/a/group/version", APIResources: []metav1.APIResource{{Name: "authpolicies", Kind: "AuthPolicy", Verbs: list}}},
		{GroupVersion: "other.io/v1", APIResources: []metav1.APIResource{{Name: "authpolicies", Kind: "AuthPolicy", Verbs: list}}},
		{GroupVersion: "kuadrant.io/v1beta3", APIResources: []metav1.APIResource{
			{Name: "authpolicies/status", Kind: "AuthPolicy", Verbs: metav1.Verbs{"get"}},
			{Name: "authpolicies", Kind: "AuthPolicy", Namespaced: true, Verbs: list},
			{Name: "dnspolicies", Kind: "DNSPolicy", Namespaced: true, Verbs: list},
		}},
	})
	if assert.Len(t, found, 1) {
		assert.Equal(t, "authpolicies.kuadrant.io", found[0].name)
		assert.Equal(t, schema.GroupVersionResource{Group: "kuadrant.io", Version: "v1beta3", Resource: "authpolicies"}, found[0].resource)
		assert.True(t, found[0].namespaced)
	}
}

func TestAGroupThatIsUnavailableIsAProblemIfAPolicyKindIsOfIt(t *testing.T) {
	s := &survey{profiles: known(t)}
	s.unavailable(map[schema.GroupVersion]error{
		{Group: "kuadrant.io", Version: "v1"}:         errors.New("down"),
		{Group: "metrics.example.com", Version: "v1"}: errors.New("down"),
	})
	assert.Equal(t, []Problem{{"kuadrant.io/v1", errors.New("down")}}, s.problems)
}
