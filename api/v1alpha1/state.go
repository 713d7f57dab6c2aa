package v1alpha1

// State is the state of a policy (SEMANTICS section 6).
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
