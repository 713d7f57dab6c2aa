package v1alpha1

// VerdictList is what `check` answers.
type VerdictList struct {
	TypeMeta `json:",inline"`
	Items    []Verdict `json:"items"`
}

// Verdict is the judgement of one change.
type Verdict struct {
	Object    Ref    `json:"object"`
	Operation string `json:"operation"`
	Allowed   bool   `json:"allowed"`
	// Reasons to deny. With enforcement "warn" they are there and Allowed is
	// true.
	Reasons []Reason `json:"reasons,omitempty"`
	// Warnings are told and deny nothing.
	Warnings []Reason `json:"warnings,omitempty"`
	Changes  Changes  `json:"changes"`
}

// Reason is one finding.
type Reason struct {
	Code ReasonCode `json:"code"`
	Rule string     `json:"rule,omitempty"`
	// Policy is the other policy: the one that overrides, holds the target,
	// or loses its effect.
	Policy *Ref `json:"policy,omitempty"`
	// Whole marks what is said twice, of a policy that another one replaces as a
	// whole: of each rule, and, without a Rule, of all of them.
	Whole bool `json:"whole,omitempty"`
	// Message says who, where, what and what to do.
	Message string `json:"message"`
}

// Changes counts what a change does to effective policies.
type Changes struct {
	// Paths whose effective policy differs, of any kind.
	Paths int `json:"paths"`
	// Namespaces of the routes of these paths.
	Namespaces int `json:"namespaces"`
}

// ChangeList is what `diff` answers.
type ChangeList struct {
	TypeMeta `json:",inline"`
	Items    []Change `json:"items"`
}

// Change is the difference that a change makes to one effective policy. Before
// is absent where the path or the policy on it is new, After where it is gone.
type Change struct {
	Object     Ref           `json:"object"`
	Operation  string        `json:"operation"`
	PolicyKind PolicyKind    `json:"policyKind"`
	Path       []PathElement `json:"path"`
	Rules      []RuleChange  `json:"rules"`
}

// RuleChange is the difference of one rule.
type RuleChange struct {
	Rule   string     `json:"rule"`
	Before *RuleValue `json:"before,omitempty"`
	After  *RuleValue `json:"after,omitempty"`
}

// RuleValue is the value of a rule and its origin.
type RuleValue struct {
	Value any    `json:"value"`
	From  Ref    `json:"from"`
	Block string `json:"block"`
}

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
