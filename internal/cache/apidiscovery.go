package cache

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"

	api "overrule.dev/overrule/api/v1alpha1"
)

// discover finds the kinds by what the API server says that it serves.
func (s *discovery) discoverResources() error {
	lists, err := s.clients.discovery.ServerPreferredResources()
	if partial := new(clientdiscovery.ErrGroupDiscoveryFailed); errors.As(err, &partial) {
		s.failedGroups = partial.Groups
	} else if err != nil {
		return fmt.Errorf("discover the policy kinds: %w", err)
	}
	s.definitions = definitionsFromResources(lists)
	return nil
}

// unavailable books the groups of policy kinds that an API server cannot tell
// about; what is wrong with others is no concern of ours.
func (s *discovery) recordFailedGroups() {
	for gv, err := range s.failedGroups {
		for _, k := range s.profiles.Known() {
			if k.Group == gv.Group {
				s.problems = append(s.problems, Problem{gv.String(), err})
				break
			}
		}
	}
}

// discovered returns what the resources of an API server tell of their kinds.
func definitionsFromResources(lists []*metav1.APIResourceList) []*definition {
	var out []*definition
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // it names no group that a profile is of
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if !slices.Contains(r.Verbs, "list") {
				continue
			}
			d := &definition{
				name: r.Name + "." + gv.Group, groupKind: api.PolicyKind{Group: gv.Group, Kind: r.Kind}, namespaced: r.Namespaced,
			}
			if !d.parseBuiltin(gv.WithResource(r.Name), func(version string) bool { return version == gv.Version }) {
				d.resource = gv.WithResource(r.Name)
			}
			out = append(out, d)
		}
	}
	return out
}
