package cache

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Served is a policy kind that the API server serves, in the version that is read.
type Served struct {
	Kind                     *policykind.Kind
	Group, Version, Resource string
	Namespaced               bool
	// Scales are the versions in which a scale subresource writes a field that the
	// kind reads.
	Scales []string
	// Status is true if the version that is read has a status subresource.
	Status bool
}

func compareServed(a, b Served) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource))
}

func (r *registry) allProblems() []Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Problem
	for name, err := range r.problems {
		out = append(out, Problem{Resource: name, Err: err})
	}
	return sortProblems(append(out, profileProblems(r.kinds)...))
}

func (r *registry) health() []SourceHealth {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []SourceHealth
	for _, k := range r.watched {
		h := k.health.get()
		if k.policy != nil {
			h.Kind = k.policy.Ref()
		}
		out = append(out, h)
	}
	return out
}

func (r *registry) reflectors() []*reflector {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*reflector
	for _, k := range r.watched {
		out = append(out, k.reflector)
	}
	return out
}

func (r *registry) discovered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.profilesListed
}

// served returns the policy kinds whose writes are to be evaluated.
func (r *registry) served() []Served {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Served
	for _, k := range r.watched {
		if k.policy == nil || k.isExcluded() {
			continue
		}
		d := r.kinds.DefinitionNamed(k.Name) // the current one: subresources do not affect how policies are read
		out = append(out, Served{
			Kind: k.policy, Group: k.Resource.Group, Version: k.Resource.Version,
			Resource: k.Resource.Resource, Namespaced: k.Namespaced, Scales: k.policy.Scales(d.ScalePaths), Status: d.Status,
		})
	}
	slices.SortFunc(out, compareServed)
	return out
}

// older returns the kinds of Gateway API that are read in another version than v1
// because v1 is not served.
func (r *registry) resourcesInOlderVersions() []schema.GroupVersionResource {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []schema.GroupVersionResource
	for _, k := range r.watched {
		if b := gatewayKindOf(k.Definition); b != nil && k.Resource.Version != b.versions[0] {
			out = append(out, k.Resource)
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionResource) int { return strings.Compare(a.Resource, b.Resource) })
	return out
}

// versionOf returns the version in which a builtin kind is read.
func (r *registry) versionOf(b *builtin) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.watched[snapshot.DefinitionName(b.kind)]; k != nil {
		return k.Resource.Version
	}
	return b.versions[0]
}

// resourceOf returns the resource in which objects of a kind are read, if it is read.
func (r *registry) resourceOf(kind api.PolicyKind) (schema.GroupVersionResource, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.watched {
		if k.Kind == kind {
			return k.Resource, true
		}
	}
	return schema.GroupVersionResource{}, false
}

// isExcluded reports whether a kind is known by its label alone and may not be read.
// No profile declares the kind as a policy kind, and a label must not suffice to
// block its writes.
func (k *watchedKind) isExcluded() bool {
	return k.forbidden != nil && !k.listed && !k.hasOldObjects && k.policy.Source == policykind.Label
}
