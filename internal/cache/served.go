package cache

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
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
	return sortProblems(append(out, r.profileProblems()...))
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
		out = append(out, Served{
			Kind: k.policy, Group: k.resource.Group, Version: k.resource.Version,
			Resource: k.resource.Resource, Namespaced: k.namespaced, Scales: r.scales(k), Status: r.hasStatus(k),
		})
	}
	slices.SortFunc(out, compareServed)
	return out
}

// scales returns the scale versions of a kind from its current definition: they do not
// affect how it is read.
func (r *registry) scales(k *watchedKind) []string {
	d := r.definitions[k.name]
	if d == nil {
		return nil
	}
	return k.policy.Scales(d.scalePaths)
}

// hasStatus reports whether the current definition of a kind has a status subresource.
func (r *registry) hasStatus(k *watchedKind) bool {
	d := r.definitions[k.name]
	return d != nil && d.hasStatus
}

// older returns the kinds of Gateway API that are read in another version than v1
// because v1 is not served.
func (r *registry) resourcesInOlderVersions() []schema.GroupVersionResource {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []schema.GroupVersionResource
	for _, k := range r.watched {
		if k.gateway != nil && k.resource.Version != k.gateway.versions[0] {
			out = append(out, k.resource)
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionResource) int { return strings.Compare(a.Resource, b.Resource) })
	return out
}

// versionOf returns the version in which a builtin kind is read.
func (r *registry) versionOf(b *builtin) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.watched[b.definition()]; k != nil {
		return k.resource.Version
	}
	return b.versions[0]
}

// resourceOf returns the resource in which objects of a kind are read, if it is read.
func (r *registry) resourceOf(kind api.PolicyKind) (schema.GroupVersionResource, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.watched {
		if k.groupKind == kind {
			return k.resource, true
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
