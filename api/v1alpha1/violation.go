package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KindViolationList is the kind of ViolationList.
const KindViolationList = "ViolationList"

// ViolationList is the output of the command violations: the violations in existing
// policies.
type ViolationList struct {
	TypeMeta `json:",inline"`
	Items    []Violation `json:"items"`
}

// Violation is a violation on one path: a constraint is violated (RequirementUnmet),
// an override is weakened (OverrideWeakened), the effective spec does not match its
// schema (EffectiveInvalid), or a limit is not bound to any rule of its route
// (TriggerUnmatched). For a policy that is not on any path, it is that the policy
// itself does not match its schema (EffectiveInvalid) or cannot be read (Invalid);
// the path is then the first target of the policy.
type Violation struct {
	Code ReasonCode `json:"code"`
	// Action is the action for a write that would introduce the violation.
	Action     Action        `json:"action"`
	PolicyKind PolicyKind    `json:"policyKind"`
	Path       []PathElement `json:"path"`
	Rule       string        `json:"rule,omitempty"`
	// Policy is the violated constraint, the policy whose override is weakened or whose
	// limit is not bound, a policy with a rule that does not match the schema, or the
	// policy that cannot be read.
	Policy *Ref `json:"policy,omitempty"`
	// Object is the one to change, and Field the field of it, if one is known: the policy
	// that the violation names, or whose rule is in effect, else the end of the path.
	Object  Ref    `json:"object"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	// Until is when the grace period ends in which the violation is allowed; nil for none.
	Until *metav1.Time `json:"until,omitempty"`
}
