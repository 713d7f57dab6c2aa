package lookup

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// PolicySet is a set of policies.
type PolicySet map[*policykind.Policy]bool

// Add adds an object if it is a policy.
func (s PolicySet) Add(o snapshot.Object) {
	if p, ok := o.(*policykind.Policy); ok {
		s[p] = true
	}
}

// Sorted returns the policies by their references.
func (s PolicySet) Sorted() []*policykind.Policy {
	out := make([]*policykind.Policy, 0, len(s))
	for p := range s {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *policykind.Policy) int { return api.CompareRefs(a.Ref(), b.Ref()) })
	return out
}

// NamedPolicies returns the policies among the objects.
func (q *Query) NamedPolicies() PolicySet {
	out := make(PolicySet)
	for _, o := range q.Objects {
		out.Add(o)
	}
	return out
}

// AddTargeting adds the policies that belong to the result although they may be
// on no path: those that target an object, or without one all policies (of the
// namespace). For a request there are none.
func (q *Query) AddTargeting(to PolicySet) {
	if q.Asked != nil {
		return
	}
	for _, o := range q.Objects {
		for p := range q.View.On(o.Ref()) {
			if q.IncludesKind(p.Kind.Ref()) {
				to.Add(p)
			}
		}
	}
	if len(q.Objects) > 0 {
		return
	}
	for _, k := range q.View.Kinds() {
		for p := range q.View.Policies(k.Ref()) {
			if !p.None && q.IncludesKind(k.Ref()) && (q.Namespace == "" || p.Namespace == q.Namespace) {
				to.Add(p)
			}
		}
	}
}
