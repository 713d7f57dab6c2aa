package v1alpha1

import "slices"

// ChangeList is the output of the command diff.
type ChangeList struct {
	TypeMeta `json:",inline"`
	Items    []Change `json:"items"`
}

// Change is the difference that a change makes to one effective policy.
type Change struct {
	Object     Ref           `json:"object"`
	Operation  string        `json:"operation"`
	PolicyKind PolicyKind    `json:"policyKind"`
	Path       []PathElement `json:"path"`
	Rules      []RuleChange  `json:"rules"`
	// Lost names the rules that the path loses: in force before the change, and neither they
	// nor another value of the same rules after it. A group of rules has one name, such as
	// authentication. Those that protect come first, and are in LostProtection as well.
	Lost           []string `json:"lost,omitempty"`
	LostProtection []string `json:"lostProtection,omitempty"`
}

// CountLost adds the rules that the path of a change loses.
func (c *Change) CountLost(counts LostCounts) {
	for _, name := range c.Lost {
		counts.Add(LostRules{Rules: name, Paths: 1, Protects: slices.Contains(c.LostProtection, name)})
	}
}

// RuleChange is the difference of one rule. Before is absent if the rule is added,
// After if it is removed.
type RuleChange struct {
	Rule   string     `json:"rule"`
	Before *RuleValue `json:"before,omitempty"`
	After  *RuleValue `json:"after,omitempty"`
}

// RuleValue is the value of a rule and its origin.
type RuleValue struct {
	Value any `json:"value"`
	// Redacted is set if the value is omitted; it is null then.
	Redacted bool   `json:"redacted,omitempty"`
	From     Ref    `json:"from"`
	Block    string `json:"block"`
}
