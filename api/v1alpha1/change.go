package v1alpha1

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
