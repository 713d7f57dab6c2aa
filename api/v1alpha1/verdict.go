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
