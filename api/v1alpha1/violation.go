package v1alpha1

// KindViolationList is the kind of ViolationList.
const KindViolationList = "ViolationList"

// ViolationList is what `violations` answers: what is wrong with the effective
// policies as they are, however it came to be.
type ViolationList struct {
	TypeMeta `json:",inline"`
	Items    []Violation `json:"items"`
}

// Violation is one thing that is wrong on one path: a constraint is violated
// (RequirementUnmet), an override is weakened (OverrideWeakened), the effective
// spec breaks its schema (EffectiveInvalid), or a limit on a route is bound to
// nothing of it (TriggerUnmatched). Or with one policy that is on no path: it breaks
// its schema by itself, or cannot be read (Invalid); the path is its first target.
type Violation struct {
	Code ReasonCode `json:"code"`
	// Action is what would be done about a write that introduced it.
	Action     Action        `json:"action"`
	PolicyKind PolicyKind    `json:"policyKind"`
	Path       []PathElement `json:"path"`
	Rule       string        `json:"rule,omitempty"`
	// Policy is the constraint that is violated, the policy whose override is
	// weakened or whose limit is bound to nothing, one that brings what breaks the
	// schema, or one that cannot be read.
	Policy  *Ref   `json:"policy,omitempty"`
	Message string `json:"message"`
}
