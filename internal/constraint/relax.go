package constraint

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Relaxes reports whether a write that c denies may be allowed by now, which replaces c
// and is nil if c is deleted. More validations and rules relax nothing, nor do other
// messages. Any other difference counts: which of two expressions is stricter cannot be
// decided.
func (c *Constraint) Relaxes(now *Constraint) bool {
	switch {
	case c.Invalid != nil || c.Enforcement != api.Deny:
		return false
	case now == nil || now.Invalid != nil || now.Enforcement != api.Deny || now.kind != c.kind:
		return true
	}
	return now.GracePeriod > c.GracePeriod || !equality.Semantic.DeepEqual(c.spec.Targets, now.spec.Targets) ||
		!isSubset(c.spec.Validations, now.spec.Validations, func(v api.ConstraintValidation) any { return v.Expression }) ||
		!isSubset(c.spec.Rules, now.spec.Rules, func(r api.ConstraintRule) any { r.Message = ""; return r })
}

// isSubset reports whether all of some requirements are among others, compared by what
// they require.
func isSubset[T any](requirements, others []T, content func(T) any) bool {
	return !slices.ContainsFunc(requirements, func(r T) bool {
		return !slices.ContainsFunc(others, func(o T) bool { return equality.Semantic.DeepEqual(content(r), content(o)) })
	})
}
