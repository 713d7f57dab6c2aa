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

// discoverResources finds the kinds with the discovery API.
func (disc *discovery) discoverResources() error {
	lists, err := disc.clients.discovery.ServerPreferredResources()
	if partial := new(clientdiscovery.ErrGroupDiscoveryFailed); errors.As(err, &partial) {
		disc.failedGroups = partial.Groups
	} else if err != nil {
		return fmt.Errorf("discover the policy kinds: %w", err)
	}
	disc.definitions = definitionsFromResources(lists)
	return nil
}

// recordFailedGroups records a problem for each API group whose discovery failed and
// that a policy kind belongs to.
func (disc *discovery) recordFailedGroups() {
	for gv, err := range disc.failedGroups {
		for _, k := range disc.profiles.Known() {
			if k.Group == gv.Group {
				disc.problems = append(disc.problems, Problem{gv.String(), err})
				break
			}
		}
	}
}

// definitionsFromResources converts the resource lists of the discovery API.
func definitionsFromResources(lists []*metav1.APIResourceList) []*definition {
	var out []*definition
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // no profile can name such a group
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
