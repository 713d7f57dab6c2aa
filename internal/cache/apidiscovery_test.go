package cache

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"overrule.dev/overrule/internal/snapshot"
)

func TestDefinitionsFromResources(t *testing.T) {
	list := metav1.Verbs{"get", "list"}
	found := definitionsFromResources([]*metav1.APIResourceList{
		{GroupVersion: "not/a/group/version", APIResources: []metav1.APIResource{{Name: "authpolicies", Kind: "AuthPolicy", Verbs: list}}},
		{GroupVersion: "other.io/v1", APIResources: []metav1.APIResource{{Name: "authpolicies", Kind: "AuthPolicy", Verbs: list}}},
		{GroupVersion: "kuadrant.io/v1beta3", APIResources: []metav1.APIResource{
			{Name: "authpolicies/status", Kind: "AuthPolicy", Verbs: metav1.Verbs{"get"}},
			{Name: "authpolicies", Kind: "AuthPolicy", Namespaced: true, Verbs: list},
			{Name: "paints", Kind: "Paint", Verbs: list},
		}},
		{GroupVersion: "gateway.networking.k8s.io/v1alpha3", APIResources: []metav1.APIResource{
			{Name: "tlsroutes", Kind: "TLSRoute", Namespaced: true, Verbs: list},
			{Name: "httproutes", Kind: "HTTPRoute", Namespaced: true, Verbs: list},
		}},
	})
	var names []string
	kinds := snapshot.NewKinds().With(found...)
	for _, c := range found {
		d, _ := c.Object.(*snapshot.Definition)
		policy, _ := kinds.Policy(d)
		names = append(names, fmt.Sprintf("%s in %s: policies %t, builtin %t, namespaced %t",
			d.Name, d.Resource.Version, policy != nil, fixedKindOf(d) != nil, d.Namespaced))
	}
	assert.Equal(t, []string{
		"authpolicies.other.io in v1: policies false, builtin false, namespaced false",
		"authpolicies.kuadrant.io in v1beta3: policies true, builtin false, namespaced true",
		"paints.kuadrant.io in v1beta3: policies false, builtin false, namespaced false",
		"tlsroutes.gateway.networking.k8s.io in v1alpha3: policies false, builtin true, namespaced true",
		"httproutes.gateway.networking.k8s.io in : policies false, builtin true, namespaced true",
	}, names, "HTTPRoutes are not read in v1alpha3")
}

func TestUnavailableGroupIsAProblem(t *testing.T) {
	s := &discovery{kinds: snapshot.NewKinds(), failedGroups: map[schema.GroupVersion]error{
		{Group: "kuadrant.io", Version: "v1"}:         errors.New("down"),
		{Group: "metrics.example.com", Version: "v1"}: errors.New("down"),
	}}
	s.recordFailedGroups()
	assert.Equal(t, []Problem{{"kuadrant.io/v1", errors.New("down")}}, s.problems)
}
