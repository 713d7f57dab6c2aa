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

// Problems returns what should be read but is not, sorted by resource: kinds whose list
// is forbidden, kinds of Gateway API that are not served in a supported version, which
// count as not installed, and invalid profiles. A forbidden policy kind stays pending,
// and the store becomes ready without it; it does not become ready without
// PolicyProfiles or a kind of Gateway API.
func (r *registry) Problems() []Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Problem
	for name, err := range r.problems {
		out = append(out, Problem{Resource: name, Err: err})
	}
	return sortProblems(append(out, profileProblems(r.kinds)...))
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

// Discovered reports whether the definitions and the profiles have been listed. Before
// that, Served is incomplete.
func (r *registry) Discovered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.profilesListed
}

// Served returns the policy kinds whose writes are to be evaluated, sorted by group and
// resource: those that are read, and pending ones, since writes before the first list
// must not be admitted without evaluation.
//
// A kind that may not be listed is not included if it is known by its label alone (see
// Problems): otherwise users that can label a CRD could block its writes. A kind with a
// profile is included: it is configured to be evaluated, so the missing permission is
// an error.
func (r *registry) Served() []Served {
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

// ResourcesInOlderVersions returns the resources of Gateway API that are read in an older version because
// v1 is not served: rules for v1 do not match their writes.
func (r *registry) ResourcesInOlderVersions() []schema.GroupVersionResource {
	return r.resources(func(k *watchedKind) bool {
		b := fixedKindOf(k.Definition)
		return b != nil && k.Resource.Version != b.versions[0]
	})
}

// Selectable returns the resources of which the labels are read (snapshot.Kinds.Selectable).
func (r *registry) Selectable() []schema.GroupVersionResource {
	return r.resources(func(k *watchedKind) bool { return k.selectable && k.forbidden == nil })
}

// resources returns those kinds that count, in the versions that are read.
func (r *registry) resources(counts func(*watchedKind) bool) []schema.GroupVersionResource {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []schema.GroupVersionResource
	for _, k := range r.watched {
		if counts(k) {
			out = append(out, k.Resource)
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) })
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

// ServedResource returns the resource and version in which policies of a kind, or
// objects of a kind of Gateway API, are read; ok is false if they are not.
func (r *registry) ServedResource(kind api.PolicyKind) (schema.GroupVersionResource, bool) {
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
