package constraint

import (
	api "overrule.dev/overrule/api/v1alpha1"
)

// Constraint is a constraint, compiled. It is immutable and safe for concurrent
// use.
type Constraint struct {
	ref  api.Ref
	kind api.PolicyKind
	// Enforcement is what is done about a write that introduces a violation.
	Enforcement api.Action
	// Invalid tells why the constraint cannot be used, nil if it can. It then
	// takes no part.
	Invalid error
}

// Ref names the constraint.
func (c *Constraint) Ref() api.Ref { return c.ref }

// PolicyKind returns the kind whose effective policies are judged.
func (c *Constraint) PolicyKind() api.PolicyKind { return c.kind }

// Kinds of constraints.
var (
	Kind        = api.PolicyKind{Group: api.Group, Kind: api.KindPolicyConstraint}
	ClusterKind = api.PolicyKind{Group: api.Group, Kind: api.KindClusterPolicyConstraint}
)

// IsKind reports whether a kind is one of constraints.
func IsKind(k api.PolicyKind) bool { return k == Kind || k == ClusterKind }

// FromPolicyConstraint reads a PolicyConstraint. What is wrong with it is in
// its Invalid.
func FromPolicyConstraint(o *api.PolicyConstraint) *Constraint {
	return &Constraint{
		ref:  api.Ref{Group: api.Group, Kind: api.KindPolicyConstraint, Namespace: o.Namespace, Name: o.Name},
		kind: api.PolicyKind{Group: o.Spec.PolicyKind.Group, Kind: o.Spec.PolicyKind.Kind}, Enforcement: o.Spec.Enforcement,
	}
}

// FromClusterPolicyConstraint reads a ClusterPolicyConstraint. What is wrong
// with it is in its Invalid.
func FromClusterPolicyConstraint(o *api.ClusterPolicyConstraint) *Constraint {
	return &Constraint{
		ref:  api.Ref{Group: api.Group, Kind: api.KindClusterPolicyConstraint, Name: o.Name},
		kind: api.PolicyKind{Group: o.Spec.PolicyKind.Group, Kind: o.Spec.PolicyKind.Kind}, Enforcement: o.Spec.Enforcement,
	}
}
