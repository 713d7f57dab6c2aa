package v1alpha1

// Kinds of the lists.
const (
	KindEffectivePolicyList = "EffectivePolicyList"
	KindExplanationList     = "ExplanationList"
	KindOutcomeList         = "OutcomeList"
	KindChangeList          = "ChangeList"
	KindVerdictList         = "VerdictList"
)

// TypeMeta heads every document.
type TypeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// EffectivePolicyList is what `effective` answers.
type EffectivePolicyList struct {
	TypeMeta `json:",inline"`
	Items    []EffectivePolicy `json:"items"`
	Outcomes []Outcome         `json:"outcomes"`
}

// EffectivePolicy is what is in force on one path, of one policy kind.
type EffectivePolicy struct {
	PolicyKind PolicyKind    `json:"policyKind"`
	Path       []PathElement `json:"path"`
	// Spec is the effective spec, an object; in kinds whose policies all apply
	// side by side it is the list of their specs in order.
	Spec  any          `json:"spec"`
	Rules []RuleOrigin `json:"rules"`
	// Policies on the path, from the highest to the lowest.
	Policies []PolicyOnPath `json:"policies"`
	// Route is what the path's route comes to, in kinds that control fields of
	// routes.
	Route *EffectiveRoute `json:"route,omitempty"`
}

// EffectiveRoute is what a route comes to where policies control fields of it.
type EffectiveRoute struct {
	// Fields that are controlled, by their address in the route.
	Fields []EffectiveField `json:"fields"`
	// Spec of the route with these values, of its rules the path's alone.
	Spec map[string]any `json:"spec"`
}

// EffectiveField is a field of a route that policies control.
type EffectiveField struct {
	Field string `json:"field"`
	// Rule that controls it.
	Rule string `json:"rule"`
	// Value in force. Absent where neither the route nor a policy sets it.
	Value any    `json:"value,omitempty"`
	From  *Ref   `json:"from,omitempty"`
	Block string `json:"block,omitempty"`
	// ConflictsWith names the policy kinds that control the same field on the
	// path with another value; direct kinds win. They should not overlap.
	ConflictsWith []PolicyKind `json:"conflictsWith,omitempty"`
}

// RuleOrigin tells where a rule of the effective policy came from.
type RuleOrigin struct {
	Rule  string `json:"rule"`
	From  Ref    `json:"from"`
	Block string `json:"block"`
	// Item is the place in the spec, in kinds whose spec is a list.
	Item *int `json:"item,omitempty"`
}

// PolicyOnPath is what became of a policy on one path.
type PolicyOnPath struct {
	Policy Ref   `json:"policy"`
	State  State `json:"state"`
	// ReplacedBy is the policy that replaces it whole: its rules were lost
	// together, and not one by one.
	ReplacedBy *Ref `json:"replacedBy,omitempty"`
	// Message tells of a policy without a rule that it holds nothing.
	Message string     `json:"message,omitempty"`
	Lost    []LostRule `json:"lost,omitempty"`
}

// LostRule is a rule that has no effect, and what beat it.
type LostRule struct {
	Rule    string `json:"rule"`
	Block   string `json:"block"`
	To      Ref    `json:"to"`
	ToBlock string `json:"toBlock"`
	// InForce is the policy that is in force in the end, where To has lost the
	// rule in turn.
	InForce *Ref `json:"inForce,omitempty"`
	// Equal tells that the effective rule has an equal value.
	Equal bool `json:"equal,omitempty"`
}

// OutcomeList is what `outcome` answers.
type OutcomeList struct {
	TypeMeta `json:",inline"`
	Items    []Outcome `json:"items"`
}

// Outcome is what became of a policy over all its paths.
type Outcome struct {
	Policy Ref   `json:"policy"`
	State  State `json:"state"`
	// Message tells why, in the states Invalid, Conflicted, TargetNotFound and
	// NoPath, and of a policy without a rule that it holds nothing.
	Message string     `json:"message,omitempty"`
	Paths   PathCounts `json:"paths"`
	Targets []Target   `json:"targets"`
	// ReplacedBy are the policies that replace it whole, with the number of paths.
	ReplacedBy []PolicyCount `json:"replacedBy,omitempty"`
	// Lost rules with the number of paths where each was lost to that policy.
	Lost []LostCount `json:"lost,omitempty"`
}

// PathCounts counts the paths that a policy is on, by its state there.
type PathCounts struct {
	Total             int `json:"total"`
	Enforced          int `json:"enforced"`
	PartiallyEnforced int `json:"partiallyEnforced"`
	Overridden        int `json:"overridden"`
	Inactive          int `json:"inactive"`
}

// Target is a target of a policy, and whether the policy holds it. What a
// selector selects is one target each; a selector that selects nothing is one
// itself, without a name.
type Target struct {
	Target   Ref    `json:"target"`
	Section  string `json:"section,omitempty"`
	Port     int32  `json:"port,omitempty"`
	Selector string `json:"selector,omitempty"`
	Accepted bool   `json:"accepted"`
	// Reason is Conflicted, Invalid or TargetNotFound where not accepted.
	Reason State `json:"reason,omitempty"`
	// Refused tells why the policy may not target this, where it may not.
	Refused string `json:"refused,omitempty"`
	// By is the policy that holds the target of a Conflicted one.
	By *Ref `json:"by,omitempty"`
}

// LostCount is a lost rule over all paths.
type LostCount struct {
	Rule string `json:"rule"`
	To   Ref    `json:"to"`
	// InForce and Equal are as in LostRule.
	InForce *Ref `json:"inForce,omitempty"`
	Equal   bool `json:"equal,omitempty"`
	Paths   int  `json:"paths"`
	// Whole is the number of these paths on which To replaces the policy whole.
	Whole int `json:"whole,omitempty"`
}

// PolicyCount is a policy on a number of paths.
type PolicyCount struct {
	Policy Ref `json:"policy"`
	Paths  int `json:"paths"`
}

// ExplanationList is what `explain` answers.
type ExplanationList struct {
	TypeMeta `json:",inline"`
	Items    []Explanation `json:"items"`
}

// Explanation tells for one path and policy kind what each policy gave and
// lost, and to whom.
type Explanation struct {
	PolicyKind PolicyKind      `json:"policyKind"`
	Path       []PathElement   `json:"path"`
	Policies   []Contribution  `json:"policies"`
	Rules      []ExplainedRule `json:"rules"`
	// Bindings tell which of the rules in force are bound to the rule of the
	// route, in kinds whose rules bind by triggers of their own, in the order in
	// which they bind.
	Bindings []Binding `json:"bindings,omitempty"`
	// Weakened are rules that an override holds and another policy gates or
	// waters down.
	Weakened []WeakenedRule `json:"weakened,omitempty"`
	// Notes about conditions that could not be evaluated, or were skipped.
	Notes []string `json:"notes,omitempty"`
}

// Binding tells whether a rule of the effective policy is bound to the path's
// rule of the route.
type Binding struct {
	Rule  string `json:"rule"`
	From  Ref    `json:"from"`
	Block string `json:"block"`
	// State is Bound, Shadowed or Unmatched.
	State BindingState `json:"state"`
	// By are the matches of the route's rule that the triggers chose. Absent
	// where it has no triggers: it matches every rule.
	By []string `json:"by,omitempty"`
	// AlsoMatches are the rule's other matches, whose requests are bound, too.
	AlsoMatches []string `json:"alsoMatches,omitempty"`
	// Hostnames that requests must be for.
	Hostnames []string `json:"hostnames,omitempty"`
	// ShadowedBy is the rule that is bound in its place.
	ShadowedBy string `json:"shadowedBy,omitempty"`
}

// BindingState is what became of a rule that binds by triggers.
type BindingState string

// The states of a binding.
const (
	BindingBound     BindingState = "Bound"
	BindingShadowed  BindingState = "Shadowed"
	BindingUnmatched BindingState = "Unmatched"
)

// WeakenedRule is a rule that an override holds and another policy weakens.
type WeakenedRule struct {
	Rule string `json:"rule"`
	// Policy whose override it is.
	Policy Ref `json:"policy"`
	// How is "gate", if ByRule decides whether the rule has an effect, or
	// "alternative", if ByRule is enough in its place.
	How    string `json:"how"`
	By     Ref    `json:"by"`
	ByRule string `json:"byRule"`
}

// Contribution is what one policy did on a path.
type Contribution struct {
	Policy Ref `json:"policy"`
	// Target is the element of the path at which the policy is attached.
	Target      PathElement     `json:"target"`
	State       State           `json:"state"`
	Blocks      []ExplainedPart `json:"blocks,omitempty"`
	Unset       []string        `json:"unset,omitempty"`
	Contributed []string        `json:"contributed,omitempty"`
	// ReplacedBy and Message are as in PolicyOnPath.
	ReplacedBy *Ref       `json:"replacedBy,omitempty"`
	Message    string     `json:"message,omitempty"`
	Lost       []LostRule `json:"lost,omitempty"`
}

// ExplainedPart is one block of a policy on a path.
type ExplainedPart struct {
	Block    string   `json:"block"`
	Strategy string   `json:"strategy"`
	When     string   `json:"when,omitempty"`
	TookPart bool     `json:"tookPart"`
	Rules    []string `json:"rules"`
}

// ExplainedRule is one rule key with its effective value and its history.
type ExplainedRule struct {
	Rule string `json:"rule"`
	// Value in force. Absent where no policy's value is.
	Value any        `json:"value,omitempty"`
	From  *Ref       `json:"from,omitempty"`
	Block string     `json:"block,omitempty"`
	Lost  []LostFrom `json:"lost,omitempty"`
}

// LostFrom is a value of a rule that a policy gave and lost.
type LostFrom struct {
	Policy  Ref    `json:"policy"`
	Block   string `json:"block"`
	Value   any    `json:"value"`
	To      Ref    `json:"to"`
	ToBlock string `json:"toBlock"`
	// InForce and Equal are as in LostRule.
	InForce *Ref `json:"inForce,omitempty"`
	Equal   bool `json:"equal,omitempty"`
}
