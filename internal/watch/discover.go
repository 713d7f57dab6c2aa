package watch

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	api "overrule.dev/overrule/api/v1alpha1"
)

// discover finds the policy kinds with a built-in profile by what the API
// server says that it serves.
func (s *survey) discover() error {
	lists, err := s.clients.discovery.ServerPreferredResources()
	if partial := new(discovery.ErrGroupDiscoveryFailed); errors.As(err, &partial) {
		s.unavailable(partial.Groups)
	} else if err != nil {
		return fmt.Errorf("discover the policy kinds: %w", err)
	}
	for _, d := range s.profiles.served(lists) {
		s.policies(d)
	}
	return nil
}

// unavailable books the groups of policy kinds that an API server cannot tell
// about; what is wrong with others is no concern of ours.
func (s *survey) unavailable(groups map[schema.GroupVersion]error) {
	for gv, err := range groups {
		for ref := range s.profiles {
			if ref.Group == gv.Group {
				s.problems = append(s.problems, Problem{gv.String(), err})
				break
			}
		}
	}
}

// served returns the policy kinds among the resources of an API server.
func (p profiles) served(lists []*metav1.APIResourceList) []*definition {
	var out []*definition
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // it names no group that a profile is of
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			k := p[api.PolicyKind{Group: gv.Group, Kind: r.Kind}]
			if k == nil || !slices.Contains(r.Verbs, "list") {
				continue
			}
			out = append(out, &definition{
				name: r.Name + "." + gv.Group, resource: gv.WithResource(r.Name), namespaced: r.Namespaced, policy: k,
			})
		}
	}
	return out
}
