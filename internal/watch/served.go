package watch

import (
	"cmp"
	"slices"
	"strings"

	"overrule.dev/overrule/internal/policykind"
)

// Served is a policy kind that the API server serves, in the version that is
// read.
type Served struct {
	Kind                     *policykind.Kind
	Group, Version, Resource string
	Namespaced               bool
}

func compareServed(a, b Served) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource))
}

func (r *registry) found() []Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Problem
	for name, err := range r.problems {
		out = append(out, Problem{Resource: name, Err: err})
	}
	return sortProblems(out)
}

func (r *registry) health() []SourceHealth {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []SourceHealth
	for _, k := range r.reading {
		out = append(out, k.contact.get())
	}
	return out
}

func (r *registry) isSurveyed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.surveyed
}

// served returns the policy kinds whose writes are to be judged.
func (r *registry) served() []Served {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Served
	for _, k := range r.reading {
		if k.policy == nil || k.outOfReach() {
			continue
		}
		out = append(out, Served{
			Kind: k.policy, Group: k.resource.Group, Version: k.resource.Version,
			Resource: k.resource.Resource, Namespaced: k.namespaced,
		})
	}
	slices.SortFunc(out, compareServed)
	return out
}

// outOfReach tells that a kind is known by its label alone, and that no one
// gave the right to read it: no one asked for it to be judged, and a label must
// not be enough to close a kind to writes.
func (k *kind) outOfReach() bool {
	return k.forbidden != nil && !k.listed && k.policy.Source == policykind.Label
}
