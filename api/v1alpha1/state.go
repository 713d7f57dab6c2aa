package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// State is the state of a policy (docs/semantics.md, Policy states).
type State string

// The states of a policy.
const (
	Enforced          State = "Enforced"
	PartiallyEnforced State = "PartiallyEnforced"
	Overridden        State = "Overridden"
	Conflicted        State = "Conflicted"
	Invalid           State = "Invalid"
	TargetNotFound    State = "TargetNotFound"
	NoPath            State = "NoPath"
	Inactive          State = "Inactive"
	// Unreached is the state of a policy on paths of which no request reaches any.
	Unreached State = "Unreached"
)

// The condition types of GEP-713 (November 2025).
const (
	// ConditionProgrammed is false for an accepted policy that has no effect.
	ConditionProgrammed = "Programmed"

	conditionPartial = "PartiallyProgrammed"
)

// OutcomeCondition is a condition that GEP-713 gives a policy. Overrule computes it and does
// not read it from the status.
type OutcomeCondition struct {
	// Type is Accepted or Programmed.
	Type   string                 `json:"type"`
	Status metav1.ConditionStatus `json:"status"`
	// Reason is one of the GEP: Accepted, Conflicted, Invalid, TargetNotFound, Programmed,
	// PartiallyProgrammed, Overridden. For states that the GEP does not have, it is the
	// name of the state.
	Reason string `json:"reason"`
}

// Conditions returns the conditions of a policy in the state. A policy that is not accepted
// has one, the others two.
func (s State) Conditions() []OutcomeCondition {
	accepted := OutcomeCondition{ConditionAccepted, metav1.ConditionTrue, ConditionAccepted}
	programmed := OutcomeCondition{ConditionProgrammed, metav1.ConditionTrue, ConditionProgrammed}
	switch s {
	case Invalid, Conflicted, TargetNotFound:
		return []OutcomeCondition{{ConditionAccepted, metav1.ConditionFalse, string(s)}}
	case Enforced:
	case PartiallyEnforced:
		programmed.Reason = conditionPartial
	default:
		programmed.Status, programmed.Reason = metav1.ConditionFalse, string(s)
	}
	return []OutcomeCondition{accepted, programmed}
}
