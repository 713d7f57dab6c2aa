package store

import (
	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
)

// Constraints returns the valid constraints on a kind, sorted.
func (v *View) Constraints(api.PolicyKind) []*constraint.Constraint { return nil }

// Constrained returns the kinds that have a valid constraint, sorted.
func (v *View) Constrained() []api.PolicyKind { return nil }
