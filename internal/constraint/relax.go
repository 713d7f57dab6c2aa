package constraint

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Relaxes reports whether a write that c denies may pass if now is in its place,
// nil where c is deleted. More validations and rules relax nothing, nor do other
// messages; any other difference counts, as what an expression demands can be
// compared with nothing but itself.
func (c *Constraint) Relaxes(now *Constraint) bool {
	switch {
	case c.Invalid != nil || c.Enforcement != api.Deny:
		return false
	case now == nil || now.Invalid != nil || now.Enforcement != api.Deny || now.kind != c.kind:
		return true
	}
	return !equality.Semantic.DeepEqual(c.spec.Targets, now.spec.Targets) ||
		!isSubset(c.spec.Validations, now.spec.Validations, func(v api.ConstraintValidation) any { return v.Expression }) ||
		!isSubset(c.spec.Rules, now.spec.Rules, func(r api.ConstraintRule) any { r.Message = ""; return r })
}

// within reports whether all of some demands are among others, by what they demand.
func isSubset[T any](demands, others []T, requirement func(T) any) bool {
	return !slices.ContainsFunc(demands, func(d T) bool {
		return !slices.ContainsFunc(others, func(o T) bool { return equality.Semantic.DeepEqual(requirement(d), requirement(o)) })
	})
}
